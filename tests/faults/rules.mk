# Each driver call that the shim makes for itself fails in turn, on the driver in software.
FAULTS_PROGRAMS := $(BUILD)/examples/vector_add-shared $(BUILD)/examples/cg_solver-shared $(BUILD)/examples/ping_pong-shared \
  $(BUILD)/tests/programs/programs-shared

.PHONY: check-faults check-asan check-ubsan check-tsan
check-faults: $(SHIM_LIB) $(FAULTS_PROGRAMS) $$(SIM)
	@timeout 300 $(PYTHON) tests/faults/faults.py $(BUILD)

# The window core with threads, for ThreadSanitizer.
CORE_THREADS := $(BUILD)/tests/faults/core_threads
$(BUILD)/obj/tests/faults/core_threads.o: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL
$(CORE_THREADS): $(BUILD)/obj/tests/faults/core_threads.o $(WINDOW_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -pthread -o $@
ALL += $(CORE_THREADS)

# What a sanitizer run consists of; run with SAN=... by the checks below, in a build folder of its own.
.PHONY: sanitized-unit sanitized-programs sanitized-threads
sanitized-unit: $(UNIT_BINS) $(CORE_THREADS)
	@set -e; for t in $(UNIT_BINS); do echo "== $$t"; timeout 120 $$t -j2 --short-filename; done
	timeout 60 $(CORE_THREADS) 5000
# Under the shim: the snippets that are short and touch every family of hooks.
sanitized-programs: $(SHIM_LIB) $$(addprefix $$(PROGRAMS)/,programs-shared libnext.so plugin.so) $$(SIM)
	$(PYTHON) tests/programs/compare.py --library $(SHIM_LIB) --sim $(BUILD)/sim --timeout 100 --modes auto,stress1 \
	  --only 'copy_[123]|mix_|async_|graph_|freed|free_|threads_share|pageable|block_|malloc_r|attributes|proc_|lookup_a|registered' $(PROGRAMS)/programs-shared
sanitized-threads: $(CORE_THREADS) $(POLICY_THREADS) $$(REPORT_DIR)/room_threads $$(TORTURE_DIRECT)
	timeout 100 $(CORE_THREADS) 20000
	timeout 100 $(POLICY_THREADS)
	timeout 100 $(REPORT_DIR)/room_threads
	timeout 100 $(TORTURE_DIRECT) 30000 4 1 20

ifeq ($(SAN),)
# 77 where the compiler has no such runtime.
SANITIZED = echo 'int main(void) { return 0; }' | $(CC) -fsanitize=$1 -x c - -o $(BUILD)/sanitizer.probe 2>/dev/null && $(BUILD)/sanitizer.probe || \
  { echo "skipped: $(CC) has no -fsanitize=$1 here"; exit 77; }
check-asan:
	@$(call SANITIZED,address)
	@ASAN_OPTIONS=detect_leaks=0 $(MAKE) --no-print-directory SAN=asan BUILD=$(BUILD)/asan sanitized-unit
check-ubsan:
	@$(call SANITIZED,undefined)
	@UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) --no-print-directory SAN=ubsan BUILD=$(BUILD)/ubsan sanitized-unit sanitized-programs
check-tsan:
	@$(call SANITIZED,thread)
	@TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" $(MAKE) --no-print-directory SAN=tsan BUILD=$(BUILD)/tsan sanitized-threads
CHECKS += check-faults check-asan check-ubsan check-tsan
endif
