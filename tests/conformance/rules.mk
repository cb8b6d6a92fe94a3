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
