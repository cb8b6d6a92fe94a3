/* Is the GPU idle? Asked before registrations are dropped where the program natively would not wait: unregistering may
 * wait for the GPU. */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hostmem_internal.h"

static void ask(struct context *context, void *argument)
{
    bool *quiet = argument, pushed;
    if (!*quiet) return;
    *quiet = context_enter(context, &pushed);
    if (!*quiet) return;
    *quiet = context_quiet(context);
    context_leave(pushed);
}

bool gpu_is_quiet(void)
{
    bool quiet = true;
    if (!gate_try_close()) return false;
    context_for_each(ask, &quiet);
    gate_open();
    return quiet;
}
