# Each example three ways: nvcc's default (static cudart), NAME-shared, NAME-ptds (per-thread default stream).
EXAMPLES      := $(basename $(notdir $(wildcard examples/*.cu)))
EXAMPLE_BINS  := $(foreach n,$(EXAMPLES),$(addprefix $(BUILD)/examples/$n,- -shared -ptds))
EXAMPLE_BINS  := $(EXAMPLE_BINS:%-=%)
EXAMPLE_FLAGS := -g -Xcompiler -Wall,-Wextra

# Found on a GPU machine without a setting; LD_LIBRARY_PATH, so the driver in software, comes first.
CUDART_RPATH  := -Xlinker --enable-new-dtags -Xlinker -rpath=$(CUDA_HOME)/lib64

$(BUILD)/examples/%.o: examples/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(EXAMPLE_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(BUILD)/examples/%-ptds.o: examples/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(EXAMPLE_FLAGS) --default-stream per-thread -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/examples/%-shared: $(BUILD)/examples/%.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
$(BUILD)/examples/%: $(BUILD)/examples/%.o
	$(NVCC) $(NVCCFLAGS) $< -o $@

-include $(wildcard $(BUILD)/examples/*.d)

.PHONY: examples
examples: $(EXAMPLE_BINS)
# Programs without a sanitizer's runtime cannot preload a library that needs it.
ifeq ($(SAN),)
ALL += $(EXAMPLE_BINS)
endif
.SECONDARY: $(EXAMPLE_BINS:=.o)

.PHONY: demo
demo: deps
	@echo "building: a few minutes the first time"
	@$(MAKE) --no-print-directory --silent all
	@BUILD=$(BUILD) tests/demo.sh
