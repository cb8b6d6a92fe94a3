# policy/: decisions, pure. The shim and the tests link these objects.
POLICY_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard policy/*.c))
