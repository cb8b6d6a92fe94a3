# The PTX analysis against kernels with known answers and against mutated text. Without nvcc there is no PTX: skipped.
PTX_DIR     := $(BUILD)/tests/ptx
PTX_OBJS    := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard policy/ptx*.c) shim/module_image.c shim/unpack.c)
PTX_SOURCE  := tests/fuzz/ptx_corpus.cu
PTX_ARCHS   := 75 90 120
PTX_EXACT   := $(PTX_ARCHS:%=$(PTX_DIR)/%.ptx)
PTX_SOUND   := $(PTX_DIR)/O0.ptx $(PTX_DIR)/G.ptx
PTX_FATBINS := $(patsubst %,$(PTX_DIR)/%.fatbin,none speed size balance all)
# Mutations of each text; a sanitizer's run is the thorough one.
PTX_MUTATIONS ?= $(if $(SAN),34000,3000)

$(BUILD)/tests/ptx-dump: $(BUILD)/obj/tests/fuzz/ptx_dump.o $(PTX_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -ldl -o $@

$(PTX_DIR)/ptx-%: $(BUILD)/obj/tests/fuzz/ptx_%.o $(PTX_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -ldl -o $@

PTX_NVCC = @mkdir -p $(@D); echo "nvcc $@"; $(NVCC) -w -std=c++17 $(1) $< -o $@

$(PTX_EXACT): $(PTX_DIR)/%.ptx: $(PTX_SOURCE)
	$(call PTX_NVCC,-arch=compute_$* -ptx)
$(PTX_DIR)/O0.ptx: $(PTX_SOURCE)
	$(call PTX_NVCC,-arch=compute_90 -Xcicc -O0 -ptx)
$(PTX_DIR)/G.ptx: $(PTX_SOURCE)
	$(call PTX_NVCC,-arch=compute_90 -G -ptx)
$(PTX_DIR)/all.fatbin: $(PTX_SOURCE)
	$(call PTX_NVCC,-arch=sm_90 -fatbin -Xfatbin -compress-all)
$(PTX_DIR)/%.fatbin: $(PTX_SOURCE)
	$(call PTX_NVCC,-arch=compute_90 -fatbin -Xfatbin -compress-mode=$*)

.SECONDARY: $(PTX_OBJS) $(patsubst %,$(BUILD)/obj/tests/fuzz/ptx_%.o,dump corpus fuzz)

PTX_HAS_NVCC := $(shell command -v $(NVCC) 2>/dev/null)
ifeq ($(PTX_HAS_NVCC),)
check-ptx-corpus check-ptx-fuzz:
	@echo "skipped: no nvcc to make PTX with"; exit 77
else
check-ptx-corpus: $(PTX_DIR)/ptx-corpus $(PTX_EXACT) $(PTX_SOUND) $(PTX_FATBINS)
	timeout 300 $< exact $(PTX_EXACT) $(PTX_FATBINS)
	timeout 300 $< sound $(PTX_SOUND)

check-ptx-fuzz: $(PTX_DIR)/ptx-fuzz $(PTX_EXACT) $(PTX_SOUND)
	cd $(PTX_DIR) && timeout 1800 ./ptx-fuzz $(PTX_MUTATIONS) 90.ptx 120.ptx O0.ptx
endif

ALL    += $(BUILD)/tests/ptx-dump
CHECKS += check-ptx-corpus check-ptx-fuzz

UNIT_OBJS_policy_ptx    := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard policy/ptx*.c))
UNIT_OBJS_module_image  := $(patsubst %,$(BUILD)/obj/%.o,shim/module_image shim/unpack)
UNIT_LIBS_module_image  := -ldl
UNIT_OBJS_kernel_facts  := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard policy/ptx*.c) $(addprefix shim/,kernels.c module_image.c unpack.c modules.c program_images.c arena.c))
UNIT_LIBS_kernel_facts  := -ldl -rdynamic
$(BUILD)/obj/tests/unit/kernel_facts.o: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL
$(BUILD)/tests/unit/kernel_facts: | $(BUILD)/tests/unit/kernel_facts.plugin.so
$(BUILD)/tests/unit/kernel_facts.plugin.so: tests/fuzz/constructor.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared $< -o $@
