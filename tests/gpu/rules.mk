# What runs on a GPU machine from a carried build: nothing here compiles then.
GPU_TESTS := $(BUILD)/tests/gpu
GPU_LOOPS := $(addprefix $(GPU_TESTS)/,micro loops lending)
GPU_USERS := $(patsubst tests/gpu/users/%.cu,$(GPU_TESTS)/users/%,$(wildcard tests/gpu/users/*.cu))
GPU_BINS  := $(GPU_LOOPS) $(GPU_USERS)

$(GPU_TESTS)/device_count: tests/gpu/device_count.c
	@mkdir -p $(@D)
	$(CC) -O1 -Wall -Wextra $< -ldl -o $@
$(GPU_BINS:%=%.o): $(GPU_TESTS)/%.o: tests/gpu/%.cu examples/example.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
$(GPU_LOOPS:%=%.o): $(GPU_TESTS)/%.o: tests/gpu/%_kernels.cuh
$(GPU_TESTS)/loops.o: tests/gpu/loops.h
$(GPU_USERS:%=%.o): $(wildcard tests/gpu/users/*.cuh)
$(GPU_BINS): %: %.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(GPU_BINS:%=%-shared): %-shared: %.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
ifeq ($(SAN),)
ALL += $(GPU_TESTS)/device_count $(GPU_BINS) $(GPU_BINS:%=%-shared)
endif

# The users' programs that need no framework, small, on the simulator: the same results bare and shimmed.
.PHONY: check-users
check-users: $(SHIM_LIB) $(GPU_USERS:%=%-shared) $(GPU_TESTS)/device_count $$(SIM)
	@LD_LIBRARY_PATH=$(BUILD)/sim BUILD=$(BUILD) OUT=$(BUILD)/tests/gpu BUDGET=60 $(PYTHON) tests/gpu/users.py --small --shared
ifeq ($(SAN),)
CHECKS += check-users
endif

bench-core:
	BUILD=$(BUILD) $(PYTHON) tests/bench/core_table.py
bench-auto:
	BUILD=$(BUILD) $(PYTHON) tests/bench/auto_table.py
bench-sparse:
	BUILD=$(BUILD) $(PYTHON) tests/bench/sparse_table.py
SUITES += bench-core bench-auto bench-sparse

gpu-frameworks:
	BUILD=$(BUILD) PYTHON=$(PYTHON) tests/gpu/frameworks.sh
gpu-sanitizer:
	BUILD=$(BUILD) tests/gpu/sanitizer.sh
GPU_CHECKS += gpu-frameworks gpu-sanitizer

bench-users:
	BUILD=$(BUILD) PYTHON=$(PYTHON) $(PYTHON) tests/gpu/users.py
SUITES += bench-users
