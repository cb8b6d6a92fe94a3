# policy/: decisions, pure. The shim and the tests link these objects.
POLICY_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard policy/*.c))

UNIT_OBJS_policy_options := $(addprefix $(BUILD)/obj/policy/,options.o text.o)
UNIT_OBJS_policy_cost    := $(addprefix $(BUILD)/obj/policy/,cost.o text.o)
UNIT_OBJS_policy_rules   := $(addprefix $(BUILD)/obj/policy/,rules.o text.o)
UNIT_OBJS_policy_profile := $(addprefix $(BUILD)/obj/policy/,profile.o text.o)
UNIT_OBJS_policy_earn    := $(addprefix $(BUILD)/obj/policy/,earn.o earn_judge.o earn_run.o earn_stay.o periods.o sparse.o cost.o text.o)
UNIT_OBJS_policy_regret  := $(UNIT_OBJS_policy_earn) $(BUILD)/obj/tests/bench/policy_world.o
UNIT_OBJS_policy_fuzz    := $(addprefix $(BUILD)/obj/policy/,options.o cost.o rules.o profile.o text.o)
UNIT_OBJS_policy_lend    := $(BUILD)/obj/policy/lend.o
