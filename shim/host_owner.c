#include "shim/host_owner.h"

#include <string.h>
#include "shim/buffer.h"
#include "shim/shim.h"
#include "shim/site.h"

struct host_owner host_owner_count(size_t bytes)
{
    struct host_owner none = {NULL, 0}, owner = {NULL, bytes};
    if (!shim_active() || strcmp(shim.options.report, "off") == 0) return none;
    owner.site = site_capture_malloc();
    if (!owner.site) return none;
    buffer_count_host(owner.site, bytes);
    return owner;
}

void host_owner_uncount(struct host_owner owner)
{
    if (owner.bytes) buffer_uncount_host(owner.site, owner.bytes);
}
