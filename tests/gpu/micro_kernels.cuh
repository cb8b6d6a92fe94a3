#pragma once

extern "C" __global__ void micro_nothing(void) {}
