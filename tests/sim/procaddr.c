/* cuGetProcAddress: from a name and the version asked for to an exported symbol, always one of those that dlsym gives.
 * Names that the 13.0 driver exports and this one has not got answer NOT_SUPPORTED when called (unsupported.def). */
#include "sim.h"

struct entry_point {
    const char *name;
    int version;
    bool per_thread;
    void (*function)(void);
};
extern const struct entry_point entry_points[];

static CUresult look_up(const char *name, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, known = false;
    const struct entry_point *best = NULL;
    for (const struct entry_point *each = entry_points; each->name; each++) {
        if (strcmp(each->name, name)) continue;
        known = true;
        if (each->version > version || (each->per_thread && !per_thread)) continue;
        if (!best || (each->per_thread && !best->per_thread) ||
            (each->per_thread == best->per_thread && each->version > best->version))
            best = each;
    }
    *function = best ? (void *)best->function : NULL;
    if (status)
        *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    SIM_ENTER_ANY(cuGetProcAddress_v2);
    return look_up(name, function, version, flags, status);
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    SIM_ENTER_ANY(cuGetProcAddress);
    return look_up(name, function, version, flags, NULL);
}

/* The private tables are the vendor's; programs that need one do not run here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    SIM_ENTER_ANY(cuGetExportTable);
    (void)table, (void)id;
    return CUDA_ERROR_NOT_FOUND;
}
