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
