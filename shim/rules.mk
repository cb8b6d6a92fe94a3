# The preload library. Objects: every .c of shim/ and shim/hooks/, and of policy/.
SHIM_SOURCES := $(wildcard shim/*.c shim/hooks/*.c)
SHIM_OBJS     = $(SHIM_SOURCES:%.c=$(BUILD)/obj/%.o) $(POLICY_OBJS)
SHIM_LIB     := $(BUILD)/libzcshim.so

$(BUILD)/obj/shim/% $(BUILD)/obj/policy/%: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fexceptions -fasynchronous-unwind-tables

$(BUILD)/obj/shim/kernel.o: OBJ_CFLAGS += -DCOPY_KERNELS='"$(BUILD)/kernels/copy_kernels"'
$(BUILD)/obj/shim/kernel.o: $(BUILD)/kernels/copy_kernels.ptx $(BUILD)/kernels/copy_kernels.fatbin

$(SHIM_LIB): $(SHIM_OBJS) shim/libzcshim.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -static-libgcc -Wl,--version-script=shim/libzcshim.map -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro \
	  -Wl,-Bsymbolic -Wl,--no-undefined -Wl,-soname,libzcshim.so $(SHIM_OBJS) -ldl -lgcc_eh -o $@

ALL += $(SHIM_LIB)

# Windows without a driver: unit tests and the look-up benchmark.
WINDOW_OBJS := $(addprefix $(BUILD)/obj/,shim/window.o shim/window_slots.o shim/context.o shim/context_wait.o shim/context_capture.o shim/backing.o shim/gate.o shim/buffer.o shim/arena.o policy/options.o policy/text.o)
UNIT_OBJS_window := $(WINDOW_OBJS)
UNIT_OBJS_gate   := $(BUILD)/obj/shim/gate.o
UNIT_OBJS_launch_reach := $(addprefix $(BUILD)/obj/,shim/reach.o policy/cost.o policy/text.o)
$(BUILD)/obj/tests/unit/window.o $(BUILD)/obj/tests/bench/lookup.o: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL

$(BUILD)/tests/bench/lookup: $(BUILD)/obj/tests/bench/lookup.o $(WINDOW_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@

ALL += $(BUILD)/tests/bench/lookup
