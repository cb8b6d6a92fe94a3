/* What waits for what: synchronous calls, streams, events. */
#include "operations.h"

struct busy {
    const char *name;
    CUstream stream;
};

static CUstream stream_new(unsigned flags)
{
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, flags));
    return stream;
}

static void ask_operations(const char *size, const struct busy *busy, const struct operation *list,
                           const struct operands *on)
{
    for (; list->name; list++) {
        ASK_BEHIND(busy->stream, , list->run(on), "%s, %s, %s busy", list->name, size, busy->name);
    }
}

/* Synchronous calls of the legacy stream on a small buffer, behind work in each kind of stream. */
void order_legacy(void)
{
    const struct busy all[] = {{"legacy", CU_STREAM_LEGACY},
                               {"blocking", stream_new(CU_STREAM_DEFAULT)},
                               {"non-blocking", stream_new(CU_STREAM_NON_BLOCKING)},
                               {"per-thread", CU_STREAM_PER_THREAD}};
    struct operands small, large;
    operands_new(&small, 1024, NULL);
    operands_new(&large, 1 << 20, NULL);
    ask_operations("1 KiB", &all[0], operations_sync, &small);
    for (int i = 1; i < 4; i++) {
        for (const struct operation *each = operations_sync; each->name; each++) {
            if (strncmp(each->name, "HtoD", 4) != 0 && strncmp(each->name, "DtoH", 4) != 0 &&
                strcmp(each->name, "DtoD from") != 0 && strcmp(each->name, "MemsetD8") != 0) {
                continue;
            }
            ASK_BEHIND(all[i].stream, , each->run(&small), "%s, 1 KiB, %s busy", each->name, all[i].name);
        }
    }
    for (const struct operation *each = operations_sync; each < operations_sync + 5; each++) {
        ASK_BEHIND(NULL, , each->run(&large), "%s, 1 MiB, legacy busy", each->name);
        ASK_BEHIND(all[1].stream, , each->run(&large), "%s, 1 MiB, blocking busy", each->name);
        ASK_BEHIND(all[2].stream, , each->run(&large), "%s, 1 MiB, non-blocking busy", each->name);
    }
    unsigned on = 1;
    MUST(d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, small.device));
    for (const struct operation *each = operations_sync; each->name; each++) {
        if (strncmp(each->name, "DtoD", 4) != 0 && strncmp(each->name, "Memset", 6) != 0) continue;
        ASK_BEHIND(NULL, , each->run(&small), "%s, 1 KiB with SYNC_MEMOPS, legacy busy", each->name);
    }
}

static CUresult event_wait(CUevent event, CUstream stream)
{
    CUresult code = d.cuEventRecord(event, stream);
    return code ? code : d.cuEventSynchronize(event);
}

static CUresult event_ask(CUevent event, CUstream stream)
{
    CUresult code = d.cuEventRecord(event, stream);
    return code ? code : d.cuEventQuery(event);
}

/* Streams and events with nothing of their own enqueued, and the per-thread forms of the copies. */
void order_threads(void)
{
    const struct busy all[] = {{"legacy", CU_STREAM_LEGACY},
                               {"per-thread", CU_STREAM_PER_THREAD},
                               {"blocking", stream_new(CU_STREAM_DEFAULT)},
                               {"non-blocking", stream_new(CU_STREAM_NON_BLOCKING)},
                               {"other blocking", stream_new(CU_STREAM_DEFAULT)},
                               {"NULL", NULL}};
    CUevent event;
    MUST(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int busy = 0; busy < 4; busy++) {
        for (int asked = 0; asked < 6; asked++) {
            CUstream stream = all[asked].stream;
            ASK_BEHIND(all[busy].stream, , d.cuStreamQuery(stream), "cuStreamQuery of %s, %s busy", all[asked].name,
                       all[busy].name);
            ASK_BEHIND(all[busy].stream, , d.cuStreamSynchronize(stream), "cuStreamSynchronize of %s, %s busy",
                       all[asked].name, all[busy].name);
            ASK_BEHIND(all[busy].stream, , event_ask(event, stream), "cuEventQuery after a record in %s, %s busy",
                       all[asked].name, all[busy].name);
            ASK_BEHIND(all[busy].stream, , event_wait(event, stream),
                       "cuEventSynchronize after a record in %s, %s busy", all[asked].name, all[busy].name);
        }
        ASK_BEHIND(all[busy].stream, , d.cuCtxSynchronize(), "cuCtxSynchronize, %s busy", all[busy].name);
    }
    struct operands small;
    operands_new(&small, 64, NULL);
    for (int busy = 0; busy < 4; busy++) ask_operations("64 bytes", &all[busy], operations_ptds, &small);

    if (question("HtoD_ptds behind a legacy kernel, what the kernel sees")) {
        CUdeviceptr copy;
        int count = 1;
        MUST(d.cuMemAlloc(&copy, 64));
        int *source = small.pageable;
        source[0] = 1;
        launch(fix.ints_copy, NULL, (void *[]){&copy, &small.device, &count});
        MUST(d.cuMemcpyHtoD(small.device, source, 64));
        source[0] = 2;
        gate_close(NULL);
        launch(fix.ints_copy, NULL, (void *[]){&copy, &small.device, &count});
        MUST(d.cuMemcpyHtoD_ptds(small.device, source, 64));
        source[0] = 3;
        gate_open();
        d.cuCtxSynchronize();
        answer("kernel saw %d, then memory holds %d", int_at(copy), int_at(small.device));
    }
}
