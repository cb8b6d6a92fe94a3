/* Names and texts of errors. */
#include "sim.h"

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, driver_name, runtime_name, text) {code, driver_name, text},
#include "errors.def"
#undef ERROR
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    SIM_ENTER_ANY(cuGetErrorName);
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error && errors[i].name) *name = errors[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    SIM_ENTER_ANY(cuGetErrorString);
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error && errors[i].name) *text = errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
