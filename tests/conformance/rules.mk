# The conformance program: the same questions to a real driver, to the software driver, and to both under the shim.
CONFORMANCE_DIR  := $(BUILD)/tests/conformance
CONFORMANCE      := $(CONFORMANCE_DIR)/conformance
CONFORMANCE_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/conformance/*.c))
CONFORMANCE_PTX  := $(CONFORMANCE_DIR)/conformance_kernels.ptx

$(CONFORMANCE_PTX): tests/conformance/conformance_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) -O2 -std=c++17 -ptx -arch=compute_75 -x cu $< -o $@

$(BUILD)/obj/tests/conformance/ask.o: OBJ_CFLAGS = -DKERNELS_PTX='"$(CONFORMANCE_PTX)"'
$(BUILD)/obj/tests/conformance/ask.o: $(CONFORMANCE_PTX)

$(CONFORMANCE): $(CONFORMANCE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -ldl -lpthread -o $@

ALL += $(CONFORMANCE)

# On the software driver.
CONFORMANCE_H200 := tests/conformance/h200.txt
CONFORMANCE_SIM   = $(BUILD)/sim/libcuda.so.1 $(BUILD)/sim/kernels/conformance.so
CONFORMANCE_EXCEPT = $$([ $$mode = off ] || echo tests/conformance/shim-exceptions.txt)
CONFORMANCE_MODES = off auto always
CONFORMANCE_RUN   = tests/conformance/compare.sh $(CONFORMANCE) $(CONFORMANCE_H200) $(CONFORMANCE_DIR)

.PHONY: conformance check-conformance check-conformance-shim gpu-conformance
conformance: check-conformance

check-conformance: $(CONFORMANCE) $(CONFORMANCE_SIM)
	@LD_LIBRARY_PATH=$(BUILD)/sim CONFORMANCE_JOBS=2 timeout 300 $(CONFORMANCE_RUN)/sim.txt

check-conformance-shim: $(CONFORMANCE) $(CONFORMANCE_SIM) $(BUILD)/libzcshim.so
	@code=0; for mode in $(CONFORMANCE_MODES); do echo "mode $$mode:"; \
	LD_LIBRARY_PATH=$(BUILD)/sim CONFORMANCE_JOBS=2 CONFORMANCE_PRELOAD=$(abspath $(BUILD))/libzcshim.so ZCSHIM_MODE=$$mode \
	ZCSHIM_REPORT=/dev/null timeout 300 $(CONFORMANCE_RUN)/sim-$$mode.txt $(CONFORMANCE_EXCEPT) || code=$$?; done; \
	exit $$code

# Sanitizers answer a wild pointer in their own way.
ifeq ($(SAN),)
CHECKS += check-conformance check-conformance-shim
endif

# On a real driver: bare, then under the shim. Every mode runs, so that one call shows all differences.
gpu-conformance:
	@export CONFORMANCE_JOBS=4; code=0; timeout 300 $(CONFORMANCE_RUN)/gpu.txt || code=$$?; [ $$code -ne 77 ] || exit 77; \
	for mode in $(CONFORMANCE_MODES); do echo "mode $$mode:"; \
	CONFORMANCE_PRELOAD=$(abspath $(BUILD))/libzcshim.so ZCSHIM_MODE=$$mode \
	ZCSHIM_REPORT=/dev/null timeout 300 $(CONFORMANCE_RUN)/gpu-$$mode.txt $(CONFORMANCE_EXCEPT) || code=$$?; done; \
	exit $$code

GPU_CHECKS += gpu-conformance
