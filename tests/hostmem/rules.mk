# Large host blocks: the hostmem objects alone on a fake driver, and malloc programs under the library.
HOSTMEM_SOURCES := $(filter-out shim/hostmem_quiet.c,$(wildcard shim/hostmem*.c))
HOSTMEM_OBJS    := $(HOSTMEM_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/shim/staging.o $(BUILD)/obj/shim/arena.o $(BUILD)/obj/shim/text.o $(BUILD)/obj/shim/log.o $(BUILD)/obj/shim/lend_watch.o \
  $(BUILD)/obj/tests/hostmem/fake_driver.o $(BUILD)/obj/tests/hostmem/stubs.o
$(BUILD)/obj/tests/hostmem/% $(BUILD)/obj/tests/unit/hostmem_% $(BUILD)/obj/tests/torture/%: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL

UNIT_OBJS_hostmem_copy    := $(HOSTMEM_OBJS)
UNIT_OBJS_hostmem_other   := $(HOSTMEM_OBJS)
UNIT_OBJS_hostmem_blocks  := $(HOSTMEM_OBJS)
UNIT_OBJS_hostmem_staging := $(HOSTMEM_OBJS)

# Malloc programs; they do not link with anything of ours.
HOSTMEM_PROGRAMS := matrix forks scopes resident vectors
HOSTMEM_BINS     := $(HOSTMEM_PROGRAMS:%=$(BUILD)/tests/hostmem/%) $(BUILD)/tests/hostmem/cplusplus $(BUILD)/tests/hostmem/early \
  $(BUILD)/tests/hostmem/scopes_plugin.so $(BUILD)/tests/hostmem/other_allocator.so

$(HOSTMEM_PROGRAMS:%=$(BUILD)/tests/hostmem/%): $(BUILD)/tests/hostmem/%: tests/hostmem/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin $< -pthread -ldl -o $@
$(BUILD)/tests/hostmem/cplusplus: tests/hostmem/cplusplus.cc
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -fno-builtin $< -pthread -o $@
$(BUILD)/tests/hostmem/%.so: tests/hostmem/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin -fPIC -shared $< -o $@
$(BUILD)/tests/hostmem/early: tests/hostmem/early.c $(BUILD)/tests/hostmem/resolver.so
	$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin $^ -o $@
ALL += $(if $(SAN),,$(HOSTMEM_BINS))

.PHONY: check-hostmem
check-hostmem: $(SHIM_LIB) $(HOSTMEM_BINS)
	@tests/hostmem/check.sh $(BUILD)
ifeq ($(SAN),)
CHECKS += check-hostmem
endif

# Measurements: one binary for a GPU (cudart inside), one for a short run on the simulator.
$(BUILD)/tests/hostmem/bench: tests/hostmem/bench.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(BUILD)/tests/hostmem/bench_shared: tests/hostmem/bench.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -cudart shared $< -o $@
$(BUILD)/tests/hostmem/cpu: tests/hostmem/cpu.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin $< -pthread -o $@
ALL += $(if $(SAN),,$(BUILD)/tests/hostmem/bench $(BUILD)/tests/hostmem/bench_shared $(BUILD)/tests/hostmem/cpu)

.PHONY: bench-hostmem
bench-hostmem:
	@$(PYTHON) tests/hostmem/bench.py $(BUILD) $${OUT:-docs/results}
SUITES += bench-hostmem

# Correctness on a driver: the simulator here, a GPU there.
$(BUILD)/tests/hostmem/device: tests/hostmem/device.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(BUILD)/tests/hostmem/device_shared: tests/hostmem/device.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -cudart shared $< -o $@
ALL += $(if $(SAN),,$(BUILD)/tests/hostmem/device $(BUILD)/tests/hostmem/device_shared)

HOSTMEM_FAULTS := cuMemHostRegister_v2:0:801 cuMemHostRegister_v2:1:712 cuMemHostRegister_v2:2:2 cuMemHostUnregister:1:713 \
  cuEventCreate:0:2 cuEventCreate:2:2 cuMemGetAddressRange_v2:0:1
.PHONY: check-hostmem-device gpu-hostmem
check-hostmem-device: $(SHIM_LIB) $(BUILD)/tests/hostmem/device_shared $$(SIM_LIBS)
	@FAULTS="$(HOSTMEM_FAULTS)" SETTINGS="ZCSHIM_COPY_THREADS=3 ZCSHIM_PIN_LIMIT=24M ZCSHIM_HOST=off" LD_LIBRARY_PATH=$(BUILD)/sim tests/hostmem/device.sh $(BUILD) $(BUILD)/tests/hostmem/device_shared
ifeq ($(SAN),)
CHECKS += check-hostmem-device
endif
gpu-hostmem:
	@tests/hostmem/device.sh $(BUILD) $(BUILD)/tests/hostmem/device
	@tests/hostmem/check.sh $(BUILD)
	@ZCSHIM_REPORT=off LD_PRELOAD=$(abspath $(BUILD)/libzcshim.so) timeout 300 $(BUILD)/tests/torture/preloaded 400000 8 1 20
GPU_CHECKS += gpu-hostmem

$(BUILD)/tests/hostmem/waits: tests/hostmem/waits.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $< -o $@
ALL += $(if $(SAN),,$(BUILD)/tests/hostmem/waits)
