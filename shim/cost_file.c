/* The calibration that `zcbench --calibrate` left for this GPU: $ZCSHIM_COST, else $XDG_CACHE_HOME/zcshim/<gpu uuid>.cost (~/.cache). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "shim/cost_file.h"
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
                "/zcshim/GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x.cost", u[0], u[1], u[2], u[3], u[4],
                u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    return true;
}

void cost_file_read(struct cost *cost)
{
    char path[1024], text[8192], message[256];
    bool named = *shim.options.cost;
    int error = errno;
    if (named) text_format(path, sizeof path, "%s", shim.options.cost);
    else if (!default_path(path, sizeof path)) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) close(fd);
    if (length < 0 && named) log_always("calibration %s could not be read; built-in costs are used", path);
    if (length >= 0 && !cost_parse(cost, text, (size_t)length, message, sizeof message))
        log_always("calibration %s: %s; built-in costs are used", path, message);
    errno = error;
}
