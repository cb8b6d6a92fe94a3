# The simulator of policies: replays loops and traces against auto, always, never and the best in hindsight.
POLICY_SIM := $(BUILD)/tests/bench/policy_sim

$(POLICY_SIM): $(BUILD)/obj/tests/bench/policy_sim.o $(BUILD)/obj/tests/bench/policy_world.o $(POLICY_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@

POLICY_THREADS := $(BUILD)/tests/bench/policy_threads

$(POLICY_THREADS): $(BUILD)/obj/tests/bench/policy_threads.o $(POLICY_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -lpthread -o $@

ALL += $(POLICY_SIM) $(POLICY_THREADS)

.PHONY: policy-sim
policy-sim: $(POLICY_SIM)
	$(POLICY_SIM) $(TRACES)

check-policy-sim: $(POLICY_SIM) $(POLICY_THREADS)
	timeout 120 $(POLICY_SIM) --check --worlds 2000
	timeout 120 $(POLICY_SIM) --check --worlds 500 --seed 1000000 --regret 0.5
	timeout 120 $(POLICY_SIM) --check tests/bench/traces/*.trace
	timeout 120 $(POLICY_SIM) --check --slower 370 tests/bench/traces/*.trace
	timeout 120 $(POLICY_THREADS)
	timeout 120 $(POLICY_SIM) --record $(BUILD)/tests/bench/copies.trace $(BUILD)/tests/bench/copies.trace

CHECKS += check-policy-sim
