# Small programs that each show one trap, as one executable by way of linking:
#   programs, programs-ptds                static cudart, for a GPU only; legacy and per-thread default stream
#   programs-shared, programs-shared-ptds  shared cudart, for a GPU and for the driver in software
#   driver-linked, driver-dlopen           driver API by -lcuda and by dlsym
PROGRAMS         := $(BUILD)/tests/programs
PROGRAMS_C       := $(filter-out driver driver_start next plugin,$(basename $(notdir $(wildcard tests/programs/*.c))))
PROGRAMS_SHARED  := programs-shared programs-shared-ptds driver-linked driver-dlopen
PROGRAMS_STATIC  := $(if $(SAN),,programs programs-ptds)
PROGRAMS_BINS    := $(addprefix $(PROGRAMS)/,$(PROGRAMS_SHARED) $(PROGRAMS_STATIC) libnext.so plugin.so)
PROGRAMS_CPP     := $(CPPFLAGS) -Itests/programs
PROGRAMS_C_ONLY  := $(CFLAGS) -O1 -fPIC
PROGRAMS_CXX     := $(CXXFLAGS) -O1 -fPIC
PROGRAMS_NVCC    := $(NVCCFLAGS) -g -Itests/programs -Xcompiler -Wall,-Wextra,-fPIC
PROGRAMS_CUDART  := $(CUDA_HOME)/lib64
PROGRAMS_LINK    := $(SAN_FLAGS) -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN:$(CUDA_HOME)/lib64' -L$(PROGRAMS) -lnext -L$(PROGRAMS_CUDART)
PROGRAMS_OBJS     = $(addprefix $(PROGRAMS)/$1/,$(PROGRAMS_C:=.o) cplusplus.o kernels.o)

$(PROGRAMS)/legacy/%.o: tests/programs/%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) $(PROGRAMS_C_ONLY) $(DEPFLAGS) -c $< -o $@
$(PROGRAMS)/ptds/%.o: tests/programs/%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) -DCUDA_API_PER_THREAD_DEFAULT_STREAM $(PROGRAMS_C_ONLY) $(DEPFLAGS) -c $< -o $@
$(PROGRAMS)/legacy/%.o: tests/programs/%.cc
	@mkdir -p $(@D)
	$(CXX) $(PROGRAMS_CPP) $(PROGRAMS_CXX) $(DEPFLAGS) -c $< -o $@
$(PROGRAMS)/ptds/%.o: tests/programs/%.cc
	@mkdir -p $(@D)
	$(CXX) $(PROGRAMS_CPP) -DCUDA_API_PER_THREAD_DEFAULT_STREAM $(PROGRAMS_CXX) $(DEPFLAGS) -c $< -o $@
$(PROGRAMS)/legacy/%.o: tests/programs/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(PROGRAMS_NVCC) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(PROGRAMS)/ptds/%.o: tests/programs/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(PROGRAMS_NVCC) --default-stream per-thread -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(PROGRAMS)/programs.ptx: tests/programs/programs_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) -O2 -std=c++17 -ptx -arch=compute_75 -x cu $< -o $@
$(PROGRAMS)/linked/%.o $(PROGRAMS)/dlopen/%.o: PROGRAMS_CPP += -DPROGRAMS_PTX='"$(PROGRAMS)/programs.ptx"'
$(PROGRAMS)/linked/%.o: tests/programs/%.c $(PROGRAMS)/programs.ptx
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) $(PROGRAMS_C_ONLY) $(DEPFLAGS) -c $< -o $@
$(PROGRAMS)/dlopen/%.o: tests/programs/%.c $(PROGRAMS)/programs.ptx
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) -DDRIVER_DLOPEN $(PROGRAMS_C_ONLY) $(DEPFLAGS) -c $< -o $@

$(PROGRAMS)/libnext.so: tests/programs/next.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) $(PROGRAMS_C_ONLY) -shared -Wl,-soname,libnext.so $< -o $@
$(PROGRAMS)/plugin.so: tests/programs/plugin.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAMS_CPP) -O1 -fPIC -shared -Wall -Wextra $< -o $@

PROGRAMS_STATIC_LIBS := -l:libcudart_static.a -ldl -lrt -lpthread
$(PROGRAMS)/programs: $(call PROGRAMS_OBJS,legacy) $(PROGRAMS)/legacy/gpu_only.o $(PROGRAMS)/libnext.so
	$(CXX) $(filter %.o,$^) $(PROGRAMS_LINK) $(PROGRAMS_STATIC_LIBS) -o $@
$(PROGRAMS)/programs-ptds: $(call PROGRAMS_OBJS,ptds) $(PROGRAMS)/ptds/gpu_only.o $(PROGRAMS)/libnext.so
	$(CXX) $(filter %.o,$^) $(PROGRAMS_LINK) $(PROGRAMS_STATIC_LIBS) -o $@
$(PROGRAMS)/programs-shared: $(call PROGRAMS_OBJS,legacy) $(PROGRAMS)/libnext.so
	$(CXX) $(filter %.o,$^) $(PROGRAMS_LINK) -lcudart -lpthread -o $@
$(PROGRAMS)/programs-shared-ptds: $(call PROGRAMS_OBJS,ptds) $(PROGRAMS)/libnext.so
	$(CXX) $(filter %.o,$^) $(PROGRAMS_LINK) -lcudart -lpthread -o $@
DRIVER_OBJS = $(addprefix $(PROGRAMS)/$1/,driver.o driver_start.o) $(PROGRAMS)/legacy/main.o
$(PROGRAMS)/driver-linked: $(call DRIVER_OBJS,linked)
	$(CC) $^ $(SAN_FLAGS) -L$(PROGRAMS_CUDART)/stubs -lcuda -lpthread -o $@
$(PROGRAMS)/driver-dlopen: $(call DRIVER_OBJS,dlopen)
	$(CC) $^ $(SAN_FLAGS) -ldl -lpthread -o $@

-include $(wildcard $(PROGRAMS)/*/*.d)

.PHONY: test-programs
test-programs: $(PROGRAMS_BINS)
ALL += $(PROGRAMS_BINS)

COMPARE        := tests/programs/compare.py --library $(BUILD)/libzcshim.so
EXAMPLES_SMALL  = $(foreach n,$(filter-out round_trip,$(EXAMPLES)),--command '$(BUILD)/examples/$n$1 --small') \
                  --command '$(BUILD)/examples/round_trip$1 --check --iterations 50' \
                  --command '$(BUILD)/examples/round_trip$1 --check --iterations 50 --bytes 4' \
                  --command '$(BUILD)/examples/round_trip$1 --check --iterations 50 --mode zero-copy'

# Programs without a sanitizer's runtime cannot preload a library that needs it, and some programs do what sanitizers forbid.
ifneq ($(SAN),)
COMPARE += --timeout 200 --skip 'deepbind_plugin|operator_new|copy_unreadable|copy_truncated|copy_unmapped'
check-programs: export ASAN_OPTIONS = detect_leaks=0:allocator_may_return_null=1
check-programs: export TSAN_OPTIONS = die_after_fork=0:allocator_may_return_null=1
else
check-programs: $(EXAMPLES:%=$(BUILD)/examples/%-shared)
check-programs: MORE_PROGRAMS = --lacking $(call EXAMPLES_SMALL,-shared) --plain
endif
check-programs: $(addprefix $(PROGRAMS)/,$(PROGRAMS_SHARED) libnext.so plugin.so) $(BUILD)/libzcshim.so $$(SIM)
	$(PYTHON) $(COMPARE) --sim $(BUILD)/sim $(addprefix $(PROGRAMS)/,programs-shared driver-linked driver-dlopen) $(MORE_PROGRAMS)
	$(PYTHON) $(COMPARE) --sim $(BUILD)/sim --modes auto,always,stress1,stress2 $(PROGRAMS)/programs-shared-ptds
CHECKS += check-programs

# Every mode for nvcc's default way of linking, fewer for the others.
gpu-programs:
	$(PYTHON) $(COMPARE) --gpu --jobs 10 --timeout 40 --modes off,observe,auto,always,stress1,stress2 $(PROGRAMS)/programs \
	  $(PROGRAMS)/driver-linked $(PROGRAMS)/driver-dlopen --plain
	$(PYTHON) $(COMPARE) --gpu --jobs 10 --timeout 40 --modes auto,always,stress3 $(PROGRAMS)/programs-ptds $(call EXAMPLES_SMALL,-ptds)
	$(PYTHON) $(COMPARE) --gpu --jobs 10 --timeout 40 --modes always,stress2 $(PROGRAMS)/programs-shared $(call EXAMPLES_SMALL,-shared)
gpu-examples:
	$(PYTHON) $(COMPARE) --gpu --jobs 4 --timeout 60 --modes auto,always,stress1,stress2 \
	  $(foreach n,$(filter-out round_trip,$(EXAMPLES)),$(foreach v,- -shared -ptds,--command '$(BUILD)/examples/$n$(v:-=)'))
GPU_CHECKS += gpu-programs gpu-examples

# What a program cannot see of its loans: an idle GPU is not found busy by the call that ends one.
check-lend-report: $(PROGRAMS)/programs-shared $(BUILD)/libzcshim.so $$(SIM)
	@env LD_LIBRARY_PATH=$(BUILD)/sim LD_PRELOAD=./$(BUILD)/libzcshim.so ZCSHIM_LEND=auto ZCSHIM_LEND_MIN=2M ZCSHIM_HOST_MIN=2M ZCSHIM_STRESS_MOVES=9 \
	  ZCSHIM_REPORT=$(PROGRAMS)/lend_several.%p.txt sh -c 'rm -f $(PROGRAMS)/lend_several.*.txt; exec $(PROGRAMS)/programs-shared lend_several' >/dev/null
	@grep -q 'loans copied to the device later' $(PROGRAMS)/lend_several.*.txt && ! grep 'because the GPU was busy' $(PROGRAMS)/lend_several.*.txt
ifeq ($(SAN),)
CHECKS += check-lend-report
endif
