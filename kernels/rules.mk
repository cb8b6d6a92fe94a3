# The shim's copy kernel as PTX, and zcbench.
# The language version is lowered so that drivers older than the toolkit load it; ptxas confirms that it still is valid.
COPY_PTX := $(BUILD)/kernels/copy_kernels.ptx

$(COPY_PTX): kernels/copy_kernels.cu kernels/copy_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) -ptx -arch=compute_75 -O3 -std=c++17 -I. $< -o $@.new
	sed -i 's/^\.version .*/.version 6.4/' $@.new
	$(dir $(NVCC))ptxas -arch=sm_75 $@.new -o /dev/null
	mv $@.new $@

# The same as machine code, since compiling PTX takes a process 0.1 s and more; the last code of each generation that the toolkit knows
# runs on all of it.
COPY_CODE := $(BUILD)/kernels/copy_kernels.fatbin

$(COPY_CODE): kernels/copy_kernels.cu kernels/copy_kernels.cuh
	@mkdir -p $(@D)
	codes="$$($(NVCC) --list-gpu-code)"; options=; for arch in 75 80 90 100 120; do \
	  case "$$codes" in *sm_$$arch*) options="$$options -gencode arch=compute_$$arch,code=sm_$$arch";; esac; done; \
	$(NVCC) -fatbin $$options -O3 -std=c++17 -I. $< -o $@

# One set of objects, linked twice: with the toolkit's static runtime for GPUs, and with a shared one, which may also be
# the simulator's.
ZCBENCH        := $(BUILD)/zcbench
ZCBENCH_SHARED := $(BUILD)/kernels/zcbench-shared
ZCBENCH_CU     := $(patsubst kernels/%.cu,$(BUILD)/kernels/%.o,$(wildcard kernels/zcbench*.cu))
ZCBENCH_OBJS   := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard kernels/zcbench*.c)) $(ZCBENCH_CU)
ZCBENCH_OBJS   += $(BUILD)/obj/policy/cost.o $(BUILD)/obj/policy/text.o $(BUILD)/obj/cli/json.o $(BUILD)/obj/cli/input.o
ZCBENCH_LINK    = $(NVCC) $(addprefix -Xcompiler=,$(SAN_FLAGS)) $(ZCBENCH_OBJS) -lm

$(ZCBENCH_CU): $(BUILD)/kernels/%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -I. -MD -MF $(@:.o=.d) -c $< -o $@

$(ZCBENCH): $(ZCBENCH_OBJS)
	$(ZCBENCH_LINK) -cudart static -o $@

$(ZCBENCH_SHARED): $(ZCBENCH_OBJS)
	$(ZCBENCH_LINK) -cudart shared -o $@

-include $(wildcard $(BUILD)/kernels/*.d)

ALL += $(COPY_PTX) $(COPY_CODE) $(ZCBENCH) $(ZCBENCH_SHARED)

# The same kernels as host functions on the software driver, and what a device that cannot map host memory answers.
ZCBENCH_HEADERS := $(wildcard kernels/*_kernels.cuh)
ifneq ($(wildcard tests/sim/rules.mk),)
ZCBENCH_SIM := $(BUILD)/sim/libcuda.so.1 $(BUILD)/sim/libcudart.so.13 $(ZCBENCH_HEADERS:kernels/%_kernels.cuh=$(BUILD)/sim/kernels/%.so)
endif

check-kernels: $(ZCBENCH_SHARED) $(ZCBENCH_SIM)
	@kernels/check.sh $(BUILD) $(ZCBENCH_HEADERS:kernels/%_kernels.cuh=%)

CHECKS += check-kernels

# On a GPU; these run what was built and compile nothing.
gpu-kernels:
	timeout 300 $(ZCBENCH) --check

GPU_CHECKS += gpu-kernels

bench-kernels:
	@kernels/bench.sh $(ZCBENCH) "$${OUT:-docs/results}"

SUITES += bench-kernels

# The report, the plots and the document's tables from the last results; needs no GPU.
.PHONY: doc-kernels
doc-kernels: $(ZCBENCH)
	$(ZCBENCH) --from=docs/results/kernels.json --plot=docs/results/kernels.svg >docs/results/kernels.txt
	$(PYTHON) kernels/document.py docs/results/kernels.json docs/when-zero-copy-wins.md

UNIT_OBJS_kernels_decide := $(BUILD)/obj/kernels/zcbench_decide.o
UNIT_OBJS_kernels_output := $(patsubst %,$(BUILD)/obj/kernels/zcbench_%.o,decide export load map plot report svg) \
  $(BUILD)/obj/cli/json.o $(BUILD)/obj/cli/input.o
