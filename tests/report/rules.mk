# The report room behind stand-in hooks: no driver, no simulator.
REPORT_DIR  := $(BUILD)/tests/report
REPORT_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out shim/shim.c,$(wildcard shim/report*.c shim/symbols*.c) \
  $(addprefix shim/,arena.c log.c text.c file.c modules.c site.c python.c python_code.c buffer.c emitter.c)))
REPORT_FAKE := $(REPORT_DIR)/libfakeshim.so
REPORT_FLAGS = $(CPPFLAGS) $(CFLAGS) -O1 -fno-unroll-loops -no-canonical-prefixes -ffile-prefix-map=$(CURDIR)/=

$(BUILD)/obj/tests/report/fake_shim.o: OBJ_CFLAGS := -D__CUDA_API_VERSION_INTERNAL -fvisibility=hidden -ftls-model=initial-exec -fexceptions -fasynchronous-unwind-tables

$(REPORT_FAKE): $(BUILD)/obj/tests/report/fake_shim.o $(REPORT_OBJS) $(POLICY_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -static-libgcc -Wl,-z,nodelete -Wl,-z,now -Wl,--no-undefined -Wl,-soname,libfakeshim.so $^ -ldl -lgcc_eh -o $@

REPORT_LINK := -L$(REPORT_DIR) -lfakeshim -Wl,-rpath,'$$ORIGIN',-rpath,'$$ORIGIN/../report'

$(REPORT_DIR)/%: tests/report/%.c $(REPORT_FAKE) tests/report/fake_shim.h
	$(CC) $(REPORT_FLAGS) $< $(REPORT_LINK) -ldl -o $@
$(REPORT_DIR)/names: tests/report/names.cc $(REPORT_FAKE) tests/report/fake_shim.h
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -O1 $< $(REPORT_LINK) -Wl,--no-as-needed -lstdc++ -o $@
# A program without the C++ library, and so without its demangler.
$(REPORT_DIR)/names_alone: tests/report/names.cc $(REPORT_FAKE) tests/report/fake_shim.h
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -O1 $< $(REPORT_LINK) -Wl,--as-needed -lstdc++ -o $@
$(REPORT_DIR)/stripped: $(REPORT_DIR)/program
	strip -s $< -o $@
$(REPORT_DIR)/bare: tests/report/program.c $(REPORT_FAKE)
	$(CC) $(REPORT_FLAGS) -g0 $< $(REPORT_LINK) -ldl -o $@

REPORT_LIBRARIES := $(REPORT_DIR)/plugin.so $(REPORT_DIR)/libcublas.so.99 $(REPORT_DIR)/libcudart.so.99
$(REPORT_LIBRARIES): tests/report/library.c tests/report/library.h $(REPORT_FAKE)
	$(CC) $(REPORT_FLAGS) -fPIC -shared $< $(REPORT_LINK) -o $@

REPORT_PROGRAMS := $(addprefix $(REPORT_DIR)/,program names names_alone stripped bare room_bench room_threads) $(REPORT_LIBRARIES)
ALL += $(REPORT_PROGRAMS)

# A CUDA program of known leaks, for the checks on the software driver and on a GPU.
FORGETFUL := $(REPORT_DIR)/forgetful $(REPORT_DIR)/forgetful-shared
$(REPORT_DIR)/forgetful.o: tests/report/forgetful.cu examples/example.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(EXAMPLE_FLAGS) -I. -c $< -o $@
$(REPORT_DIR)/forgetful: $(REPORT_DIR)/forgetful.o
	$(NVCC) $(NVCCFLAGS) $< -o $@
$(REPORT_DIR)/forgetful-shared: $(REPORT_DIR)/forgetful.o
	$(NVCC) $(NVCCFLAGS) -cudart shared $(CUDART_RPATH) $< -o $@
ifeq ($(SAN),)
ALL += $(FORGETFUL)
endif
# The same leaks under compute-sanitizer and under the shim.
bench-leaks:
	BUILD=$(BUILD) $(PYTHON) tests/report/leaks.py
SUITES += bench-leaks

.PHONY: check-report-gpu check-report check-report-page check-report-sim report-sim-golden report-golden bench-report
check-report: $(REPORT_PROGRAMS)
	timeout 300 $(PYTHON) tests/report/check.py $(REPORT_DIR)
	timeout 60 $(REPORT_DIR)/room_bench 10 # ten times the bars: a capture of a known stack then has 1.5 us
# Rewrites the expected reports: look at the difference before committing it.
report-golden: $(REPORT_PROGRAMS)
	timeout 300 $(PYTHON) tests/report/check.py $(REPORT_DIR) --update
# The real library and examples on the software driver.
REPORT_EXAMPLES := $(addprefix $(BUILD)/examples/,leaky-shared vector_add-shared bfs_levels-shared)
check-report-sim: $(SHIM_LIB) $(CLI) $(SIM) $(REPORT_EXAMPLES) $(REPORT_DIR)/forgetful-shared
	timeout 300 $(PYTHON) tests/report/check_sim.py $(BUILD)
report-sim-golden: $(SHIM_LIB) $(CLI) $(SIM) $(REPORT_EXAMPLES) $(REPORT_DIR)/forgetful-shared
	timeout 300 $(PYTHON) tests/report/check_sim.py $(BUILD) --update
# The page in a headless browser, its controls clicked; skipped where there is none.
check-report-page: $(CLI) $(REPORT_PROGRAMS)
	timeout 120 $(PYTHON) tests/report/check_page.py $(BUILD)
# On a real driver, from what is already built.
check-report-gpu:
	timeout 300 $(PYTHON) tests/report/check_gpu.py $(BUILD)
GPU_CHECKS += check-report-gpu
bench-report: $(REPORT_DIR)/room_bench
	$<
CHECKS += check-report check-report-sim check-report-page

UNIT_OBJS_arena           := $(BUILD)/obj/shim/arena.o
UNIT_OBJS_log_text        := $(addprefix $(BUILD)/obj/shim/,log.o text.o)
UNIT_OBJS_emitter_json    := $(addprefix $(BUILD)/obj/shim/,emitter.o text.o)
UNIT_OBJS_file             := $(addprefix $(BUILD)/obj/shim/,file.o text.o)
UNIT_OBJS_buffer_table    := $(addprefix $(BUILD)/obj/shim/,buffer.o arena.o)
UNIT_OBJS_report_suppress := $(addprefix $(BUILD)/obj/shim/,report_suppress.o report_model.o text.o)
UNIT_OBJS_python_code     := $(addprefix $(BUILD)/obj/shim/,python_code.o arena.o)
UNIT_OBJS_site_capture    := $(REPORT_FAKE)
UNIT_LIBS_site_capture    := -Wl,-rpath,'$$ORIGIN/../report' -ldl
$(BUILD)/obj/tests/unit/site_capture.o: OBJ_CFLAGS := -DFAKE_PROGRAM='"$(REPORT_DIR)/program"' -fno-optimize-sibling-calls
$(BUILD)/tests/unit/site_capture: | $(REPORT_DIR)/program
