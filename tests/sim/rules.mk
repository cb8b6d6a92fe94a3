# The CUDA driver in software: libcuda.so.1, libcudart.so.13, and kernel files compiled for the CPU.
# Always built without sanitizers, so that a program built with one may load them.
SIM_DIR     := $(BUILD)/sim
SIM_CFLAGS  := -std=gnu11 -O2 -g $(WARNINGS) -fPIC -fvisibility=hidden -pthread
SIM_CUDA    := $(patsubst tests/sim/%.c,$(SIM_DIR)/obj/%.o,$(filter-out tests/sim/selftest.c,$(wildcard tests/sim/*.c)))
SIM_CUDART  := $(patsubst tests/sim/%.c,$(SIM_DIR)/obj/%.o,$(wildcard tests/sim/cudart/*.c))
SIM_LIBS    := $(SIM_DIR)/libcuda.so.1 $(SIM_DIR)/libcudart.so.13

# Kernel files, one for each NAME_kernels.cuh of the rooms that have kernels.
KERNEL_DIRS  := examples kernels tests/programs tests/conformance tests/sim tests/gpu tests/gpu/users tests/torture
KERNEL_FILES := $(patsubst %_kernels.cuh,$(SIM_DIR)/kernels/%.so,$(notdir $(wildcard $(KERNEL_DIRS:%=%/*_kernels.cuh))))
# What a program needs to run on the simulator: prerequisites for other rooms' checks.
SIM := $(SIM_LIBS) $(KERNEL_FILES)
ALL += $(SIM)

$(SIM_DIR)/obj/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) $(DEPFLAGS) -c $< -o $@

$(SIM_DIR)/libcuda.so.1: $(SIM_CUDA)
	$(CC) -shared -pthread -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,defs -o $@ $^ -ldl
	ln -sf libcuda.so.1 $(@D)/libcuda.so

$(SIM_DIR)/libcudart.so.13: $(SIM_CUDART) tests/sim/cudart/symbols.map
	$(CC) -shared -pthread -Wl,-soname,libcudart.so.13 -Wl,--version-script=tests/sim/cudart/symbols.map -Wl,-z,defs \
		-o $@ $(SIM_CUDART) -ldl
	ln -sf libcudart.so.13 $(@D)/libcudart.so

define KERNEL_RULE
$(SIM_DIR)/kernels/%.so: $(1)/%_kernels.cuh tests/sim/kernels.sh tests/sim/device.h tests/sim/kernel_abi.h
	@mkdir -p $$(@D)
	tests/sim/kernels.sh $$< >$$(@:.so=.cpp)
	$$(CXX) -std=c++17 -O2 -g -Wall -Wno-unused -fPIC -shared -fvisibility=hidden -I. -I$(1) -isystem $$(CUDA_HOME)/include \
		-include tests/sim/device.h -MMD -MP -MF $$(@:.so=.d) -MT $$@ $$(@:.so=.cpp) -o $$@
endef
$(foreach dir,$(KERNEL_DIRS),$(eval $(call KERNEL_RULE,$(dir))))

-include $(wildcard $(SIM_DIR)/obj/*.d $(SIM_DIR)/obj/cudart/*.d $(SIM_DIR)/kernels/*.d)

# The simulator's own test, an ordinary program (with the sanitizer, if there is one).
SIM_SELFTEST := $(SIM_DIR)/selftest
$(SIM_SELFTEST): $(BUILD)/obj/tests/sim/selftest.o $(SIM_LIBS)
	$(CC) $(CFLAGS) $< -L$(SIM_DIR) -lcuda -l:libcudart.so.13 -lpthread -o $@

.PHONY: check-sim
check-sim: $(SIM_SELFTEST) $(SIM_DIR)/kernels/selftest.so
	@LD_LIBRARY_PATH=$(SIM_DIR) timeout 60 $(SIM_SELFTEST)
ALL    += $(SIM_SELFTEST)
CHECKS += check-sim
