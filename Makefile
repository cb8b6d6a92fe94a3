# libzcshim: builds the preload library, the command, the examples and the tests into $(BUILD).
#
#   make            library, command, examples, tests
#   make demo       an unmodified example, bare and under the shim
#   make check      every test that needs no GPU
#   make gpu-check  every correctness test on a real GPU (runs what is already built)
#   make gpu-bench SUITE=core|hostmem|auto|kernels|leaks|sparse
#
# Each room adds to the lists below from its own rules.mk.
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

SAN       ?=
BUILD     ?= build$(if $(SAN),/$(SAN))
CC        := gcc
CXX       := g++
PYTHON    := python3
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) nvcc)
NVCC_ARCH ?= -gencode arch=compute_90,code=[sm_90,compute_90] -gencode arch=compute_75,code=compute_75
NVCCFLAGS ?= -O2 -std=c++17 $(NVCC_ARCH)

SAN_asan  := -fsanitize=address -fno-omit-frame-pointer
SAN_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SAN_tsan  := -fsanitize=thread
SAN_FLAGS := $(SAN_$(SAN))

WARNINGS  := -Wall -Wextra -Werror
CPPFLAGS  += -I. -isystem $(CUDA_HOME)/include -D_GNU_SOURCE
CFLAGS    ?= -O2 -g
CFLAGS    += -std=gnu11 $(WARNINGS) $(SAN_FLAGS)
CXXFLAGS  ?= -O2 -g
CXXFLAGS  += -std=c++17 $(WARNINGS) $(SAN_FLAGS)
DEPFLAGS   = -MMD -MP

ALL        :=
CHECKS     :=
GPU_CHECKS :=
SUITES     :=
CLEAN      := $(BUILD)

.PHONY: all
all:

include $(wildcard */rules.mk tests/*/rules.mk)

all: $(ALL)

# Objects of the C rooms: $(BUILD)/obj/<path>.o, position independent.
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(OBJ_CFLAGS) -fPIC $(DEPFLAGS) -c $< -o $@

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

.PHONY: check gpu-check gpu-bench $(CHECKS) $(GPU_CHECKS) $(SUITES) clean
check: deps
	@$(MAKE) --no-print-directory --silent all
	@tests/runner.sh $(MAKE) $(CHECKS)

gpu-check:
	@tests/runner.sh $(MAKE) $(GPU_CHECKS)

SUITE ?= core
gpu-bench:
	@$(MAKE) --no-print-directory bench-$(SUITE)

# What a bare machine lacks; the script installs it or says in one line how to.
.PHONY: deps
deps:
	@tests/install-deps.sh

clean:
	rm -rf $(CLEAN)
