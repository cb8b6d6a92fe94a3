# Large host blocks: the hostmem objects alone on a fake driver, and malloc programs under the library.
HOSTMEM_SOURCES := $(wildcard shim/hostmem*.c)
HOSTMEM_OBJS    := $(HOSTMEM_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/shim/arena.o $(BUILD)/obj/shim/text.o $(BUILD)/obj/shim/log.o \
  $(BUILD)/obj/tests/hostmem/fake_driver.o $(BUILD)/obj/tests/hostmem/stubs.o
$(BUILD)/obj/tests/hostmem/% $(BUILD)/obj/tests/unit/hostmem_% $(BUILD)/obj/tests/torture/%: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL

UNIT_OBJS_hostmem_copy   := $(HOSTMEM_OBJS)
UNIT_OBJS_hostmem_blocks := $(HOSTMEM_OBJS)
