# What needs no run: format, static analysis, what the library needs and shows, the other architecture.
.PHONY: check-lint check-aarch64
check-lint: $(SHIM_LIB)
	@tests/lint/lint.sh $(BUILD)

# The file of the copy kernel is only named: nothing is assembled.
check-aarch64:
	@tests/lint/aarch64.sh $(CPPFLAGS) $(filter-out $(SAN_FLAGS),$(CFLAGS)) -D__CUDA_API_VERSION_INTERNAL -fvisibility=hidden \
	  -ftls-model=initial-exec -fno-plt -fexceptions -fasynchronous-unwind-tables -fPIC '-DCOPY_KERNELS="copy_kernels"'

ifeq ($(SAN),)
CHECKS += check-lint check-aarch64
endif
