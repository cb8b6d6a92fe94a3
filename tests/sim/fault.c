/* What every exported function does first: be counted, and fail if it was told to.
 *
 * ZCSIM_FAULT=cuMemHostRegister_v2:3:801[,name:count:code]  the count-th call of that name (0: every call) fails with
 * code ZCSIM_CALLS=path   at exit, appends "calls name" for every entry point that was called
 */
#include "sim.h"
#include <fcntl.h>
#include <unistd.h>

struct fault {
    char name[64];
    unsigned long count;
    CUresult code;
};
static struct fault faults[32];
static int fault_count = -1;
static pthread_once_t faults_once = PTHREAD_ONCE_INIT;
static struct call_site *_Atomic sites;

static void faults_read(void)
{
    const char *text = getenv("ZCSIM_FAULT");
    int count = 0;
    while (text && *text && count < 32) {
        struct fault *fault = &faults[count];
        int code;
        if (sscanf(text, "%63[^:]:%lu:%d", fault->name, &fault->count, &code) != 3) {
            fprintf(stderr, "ZCSIM_FAULT: cannot read \"%s\"\n", text);
            break;
        }
        fault->code = (CUresult)code;
        count++;
        text = strchr(text, ',');
        if (text) text++;
    }
    fault_count = count;
}

CUresult call_enter(struct call_site *site, int needs)
{
    if (!atomic_exchange(&site->listed, true)) {
        struct call_site *first = atomic_load(&sites);
        do site->next = first;
        while (!atomic_compare_exchange_weak(&sites, &first, site));
    }
    unsigned long call = atomic_fetch_add(&site->calls, 1) + 1;
    if (fault_count < 0) pthread_once(&faults_once, faults_read);
    for (int i = 0; i < fault_count; i++)
        if ((!faults[i].count || faults[i].count == call) && !strcmp(faults[i].name, site->name)) return faults[i].code;
    if (!needs) return CUDA_SUCCESS;
    if (sim.shut_down) return CUDA_ERROR_DEINITIALIZED;
    if (sim.forked || !sim.initialized) return CUDA_ERROR_NOT_INITIALIZED;
    return needs == 1 && in_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

void calls_report(void)
{
    const char *path = getenv("ZCSIM_CALLS");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (file < 0) return;
    for (struct call_site *site = atomic_load(&sites); site; site = site->next)
        dprintf(file, "%lu %s\n", atomic_load(&site->calls), site->name);
    close(file);
}
