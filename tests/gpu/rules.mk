# What runs on a GPU machine from a carried build: nothing here compiles then.
GPU_TESTS := $(BUILD)/tests/gpu
GPU_BINS  := $(addprefix $(GPU_TESTS)/,device_count micro micro-shared loops loops-shared lending lending-shared)

$(GPU_TESTS)/device_count: tests/gpu/device_count.c
	@mkdir -p $(@D)
	$(CC) -O1 -Wall -Wextra $< -ldl -o $@
$(GPU_TESTS)/micro.o: tests/gpu/micro.cu examples/example.h tests/gpu/micro_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
$(GPU_TESTS)/micro: $(GPU_TESTS)/micro.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(GPU_TESTS)/micro-shared: $(GPU_TESTS)/micro.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
$(GPU_TESTS)/loops.o: tests/gpu/loops.cu tests/gpu/loops.h examples/example.h tests/gpu/loops_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
$(GPU_TESTS)/loops: $(GPU_TESTS)/loops.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(GPU_TESTS)/loops-shared: $(GPU_TESTS)/loops.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
$(GPU_TESTS)/lending.o: tests/gpu/lending.cu examples/example.h tests/gpu/lending_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
$(GPU_TESTS)/lending: $(GPU_TESTS)/lending.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(GPU_TESTS)/lending-shared: $(GPU_TESTS)/lending.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
GPU_USERS := $(patsubst tests/gpu/users/%.cu,$(GPU_TESTS)/users/%,$(wildcard tests/gpu/users/*.cu))
$(GPU_USERS): $(GPU_TESTS)/users/%: $(GPU_TESTS)/users/%.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(GPU_USERS:%=%-shared): $(GPU_TESTS)/users/%-shared: $(GPU_TESTS)/users/%.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
$(GPU_USERS:%=%.o): $(GPU_TESTS)/users/%.o: tests/gpu/users/%.cu $(wildcard tests/gpu/users/*.cuh) examples/example.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
ifeq ($(SAN),)
ALL += $(GPU_BINS) $(GPU_USERS) $(GPU_USERS:%=%-shared)
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
