/* The calibration that `zcbench --calibrate` left for this GPU: $ZCSHIM_COST, else $XDG_CACHE_HOME/zcshim/<gpu
 * uuid>.cost (~/.cache). */
#include <stdlib.h>
#include "shim/cost_file.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/shim.h"

static bool default_path(char *path, size_t capacity)
{
    CUuuid uuid;
    CUdevice device;
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const unsigned char *u = (const unsigned char *)uuid.bytes;
    if (shim.real.cuCtxGetDevice(&device) != CUDA_SUCCESS || !shim.real.cuDeviceGetUuid_v2 ||
        shim.real.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS || (!cache && !home))
        return false;
    size_t length = cache ? text_format(path, capacity, "%s", cache) : text_format(path, capacity, "%s/.cache", home);
    if (length + 64 > capacity) return false;
    text_format(path + length, capacity - length,
                "/zcshim/GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x.cost", u[0], u[1],
                u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    return true;
}

void cost_file_read(struct cost *cost)
{
    char path[1024], message[256];
    size_t length = 0;
    bool named = *shim.options.cost;
    if (named)
        text_format(path, sizeof path, "%s", shim.options.cost);
    else if (!default_path(path, sizeof path))
        return;
    char *text = file_read(path, 65536, &length);
    if (!text && named) log_always("calibration %s could not be read; built-in costs are used", path);
    if (text && !cost_parse(cost, text, length, message, sizeof message))
        log_always("calibration %s: %s; built-in costs are used", path, message);
}
