# Torture of memory and copies: linked with the fake driver (for sanitizers), and under the library, on the simulator or a GPU.
TORTURE_STEPS   ?= 10000000
TORTURE_SHORT   ?= 400000
TORTURE_THREADS ?= 4
TORTURE_SEED    ?= 1
TORTURE_DIRECT    := $(BUILD)/tests/torture/direct
TORTURE_PRELOADED := $(BUILD)/tests/torture/preloaded

$(TORTURE_DIRECT): $(BUILD)/obj/tests/torture/torture.o $(BUILD)/obj/tests/torture/direct.o $(HOSTMEM_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -pthread -o $@
$(TORTURE_PRELOADED): $(BUILD)/obj/tests/torture/torture.o $(BUILD)/obj/tests/torture/preloaded.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -pthread -ldl -o $@
ALL += $(TORTURE_DIRECT) $(if $(SAN),,$(TORTURE_PRELOADED))

.PHONY: torture check-torture
torture: $(TORTURE_DIRECT) $(if $(SAN),,$(TORTURE_PRELOADED) $(SHIM_LIB))
	@tests/torture/run.sh $(BUILD) $(TORTURE_STEPS) $(TORTURE_THREADS) $(TORTURE_SEED) $(SAN)

check-torture: $(TORTURE_DIRECT) $(if $(SAN),,$(TORTURE_PRELOADED) $(SHIM_LIB))
	@tests/torture/run.sh $(BUILD) $(TORTURE_SHORT) $(TORTURE_THREADS) $(TORTURE_SEED) $(SAN)
CHECKS += check-torture

# Lending against a model: on the simulator, and from a carried build on a GPU.
LEND_STEPS   ?= 1000000
LEND_SHORT   ?= 20000
LEND_THREADS ?= 2
LEND_SEED    ?= 1
TORTURE_LEND := $(BUILD)/tests/torture/lend
LEND_RUN      = ZCSHIM_REPORT=off ZCSHIM_STRESS_MOVES=7 ZCSHIM_LEND=auto ZCSHIM_LEND_MIN=2M ZCSHIM_HOST_MIN=2M

$(TORTURE_LEND).o: tests/torture/lend.cu tests/torture/lend_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -g -I. -Xcompiler -Wall,-Wextra -c $< -o $@
$(TORTURE_LEND): $(TORTURE_LEND).o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
ifeq ($(SAN),)
ALL += $(TORTURE_LEND)

.PHONY: torture-lend check-torture-lend gpu-torture-lend
torture-lend: $(TORTURE_LEND) $(SHIM_LIB) $$(SIM)
	env LD_LIBRARY_PATH=$(BUILD)/sim LD_PRELOAD=./$(SHIM_LIB) $(LEND_RUN) timeout 7200 $(TORTURE_LEND) $(LEND_STEPS) $(LEND_THREADS) $(LEND_SEED)
check-torture-lend: $(TORTURE_LEND) $(SHIM_LIB) $$(SIM)
	LD_LIBRARY_PATH=$(BUILD)/sim timeout 600 $(TORTURE_LEND) $(LEND_SHORT) $(LEND_THREADS) $(LEND_SEED)
	@for threads in 1 $(LEND_THREADS); do \
	  env LD_LIBRARY_PATH=$(BUILD)/sim LD_PRELOAD=./$(SHIM_LIB) $(LEND_RUN) timeout 600 $(TORTURE_LEND) $(LEND_SHORT) $$threads $(LEND_SEED) || exit 1; done
CHECKS += check-torture-lend
gpu-torture-lend:
	@for seed in 1 2 3; do \
	  env LD_PRELOAD=./$(SHIM_LIB) $(LEND_RUN) timeout 120 $(TORTURE_LEND) 40000 2 $$seed gpu || exit 1; done
GPU_CHECKS += gpu-torture-lend
endif
