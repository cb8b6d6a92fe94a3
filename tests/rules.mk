# Unit tests: tests/unit/NAME.c is linked with the objects in UNIT_OBJS_NAME and Criterion.
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/*.c))
UNIT_BINS  := $(UNIT_TESTS:%=$(BUILD)/tests/unit/%)

.SECONDEXPANSION:
$(UNIT_BINS): $(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $$(UNIT_OBJS_$$*)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ $(UNIT_LIBS_$*) -lcriterion -lm -o $@

check-unit: $(UNIT_BINS)
	@set -e; for t in $(UNIT_BINS); do echo "== $$t"; timeout 120 $$t -j2 --short-filename; done

CHECKS += check-unit

# What the README says is what options.def and docs/results say.
check-docs:
	$(PYTHON) tests/readme.py && $(PYTHON) tests/measured.py

CHECKS += check-docs
