# The shim's copy kernel as PTX, and zcbench.
# The language version is lowered so that drivers older than the toolkit load it; ptxas confirms that it still is valid.
COPY_PTX := $(BUILD)/kernels/copy_kernels.ptx

$(COPY_PTX): kernels/copy_kernels.cu kernels/copy_kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) -ptx -arch=compute_75 -O3 -std=c++17 -I. $< -o $@.new
	sed -i 's/^\.version .*/.version 6.4/' $@.new
	$(dir $(NVCC))ptxas -arch=sm_75 $@.new -o /dev/null
	mv $@.new $@

ALL += $(COPY_PTX)
