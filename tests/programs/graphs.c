/* Captured and explicit graphs with small buffers, replayed after other copies have gone to the same buffers. */
#include "programs.h"

enum { WORDS = 256, BYTES = 4 * WORDS };

static void fill_words(unsigned *words, unsigned first)
{
    for (int i = 0; i < WORDS; i++) words[i] = first + i;
}

/* Ordinary traffic, so that the buffer might move. */
static void use(unsigned *device, int rounds)
{
    unsigned host[WORDS], back[WORDS];
    for (int round = 0; round < rounds; round++) {
        fill_words(host, round);
        MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
        launch_add(device, 1, WORDS, 0);
        MUST(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
        if (back[WORDS - 1] != host[WORDS - 1] + 1) expect(false, "round %d", round);
    }
}

SNIPPET(graph_captured, "", "a captured upload, kernel, memset and download, replayed among other copies")
{
    unsigned *device, *other, *source, *landed;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t program;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&other, BYTES));
    MUST(cudaMallocHost((void **)&source, BYTES));
    MUST(cudaMallocHost((void **)&landed, BYTES));
    kernels_load();
    use(device, 40);
    use(other, 40);
    MUST(cudaDeviceSynchronize());
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMemcpyAsync(device, source, BYTES, cudaMemcpyHostToDevice, stream));
    launch_add(device, 5, WORDS, stream);
    MUST(cudaMemsetAsync(other, 0, BYTES, stream));
    MUST(cudaMemcpyAsync(other, device, BYTES / 2, cudaMemcpyDeviceToDevice, stream));
    launch_add(other, 1, WORDS, stream);
    MUST(cudaMemcpyAsync(landed, other, BYTES, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&program, graph, 0));
    for (unsigned replay = 0; replay < 20; replay++) {
        fill_words(source, 100 * replay);
        MUST(cudaGraphLaunch(program, stream));
        MUST(cudaStreamSynchronize(stream));
        if (landed[0] != 100 * replay + 6 || landed[WORDS - 1] != 1) expect(false, "replay %u: %u", replay, landed[0]);
        use(device, 5);
        use(other, 5);
        MUST(cudaDeviceSynchronize());
    }
    MUST(cudaGraphExecDestroy(program));
    MUST(cudaGraphDestroy(graph));
    use(device, 40);
    expect(landed[1] == 1907, "%016llx", (unsigned long long)hash_bytes(landed, BYTES));
    MUST(cudaFree(device));
    MUST(cudaFree(other));
    MUST(cudaFreeHost(source));
    MUST(cudaFreeHost(landed));
    MUST(cudaStreamDestroy(stream));
}

SNIPPET(graph_explicit, "", "memcpy and memset nodes added by hand, replayed, updated, replayed")
{
    unsigned *device, *source, *landed;
    cudaGraph_t graph;
    cudaGraphNode_t upload, clear, download;
    cudaGraphExec_t program;
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMallocHost((void **)&source, BYTES));
    MUST(cudaMallocHost((void **)&landed, BYTES));
    use(device, 40);
    struct cudaMemsetParams zero = {.dst = device, .elementSize = 4, .width = 8, .height = 1};
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemcpyNode1D(&upload, graph, NULL, 0, device, source, BYTES, cudaMemcpyHostToDevice));
    MUST(cudaGraphAddMemsetNode(&clear, graph, &upload, 1, &zero));
    MUST(cudaGraphAddMemcpyNode1D(&download, graph, &clear, 1, landed, device, BYTES, cudaMemcpyDeviceToHost));
    MUST(cudaGraphInstantiate(&program, graph, 0));
    for (unsigned replay = 0; replay < 10; replay++) {
        fill_words(source, 10 * replay);
        MUST(cudaGraphLaunch(program, 0));
        MUST(cudaStreamSynchronize(0));
        if (landed[7] != 0 || landed[8] != 10 * replay + 8)
            expect(false, "replay %u: %u %u", replay, landed[7], landed[8]);
        use(device, 5);
    }
    MUST(cudaGraphExecDestroy(program));
    MUST(cudaGraphDestroy(graph));
    expect(landed[9] == 99, "%016llx", (unsigned long long)hash_bytes(landed, BYTES));
    MUST(cudaFree(device));
    MUST(cudaFreeHost(source));
    MUST(cudaFreeHost(landed));
}

SNIPPET(graph_kernel_only, "", "a graph of kernels alone does not care where its buffers are")
{
    unsigned *device, value;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t program;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc((void **)&device, BYTES));
    kernels_load();
    use(device, 10);
    MUST(cudaDeviceSynchronize());
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch_add(device, 1, WORDS, stream);
    launch_add(device, 2, WORDS, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&program, graph, 0));
    for (unsigned replay = 0; replay < 50; replay++) {
        value = replay;
        MUST(cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice));
        MUST(cudaStreamSynchronize(0)); /* a per-thread upload is not ordered before other streams */
        MUST(cudaGraphLaunch(program, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost));
        if (value != replay + 3) expect(false, "replay %u: %u", replay, value);
    }
    expect(value == 52, "%u", value);
    MUST(cudaGraphExecDestroy(program));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(device));
    MUST(cudaStreamDestroy(stream));
}

SNIPPET(copies_during_capture, "", "copies of other buffers while a stream is being captured leave the capture intact")
{
    unsigned *device, *captured, host[WORDS], back[WORDS];
    cudaStream_t stream, other;
    cudaGraph_t graph;
    cudaGraphExec_t program;
    enum cudaStreamCaptureStatus status;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&captured, BYTES));
    MUST(cudaMemset(captured, 0, BYTES));
    kernels_load();
    use(device, 10);
    MUST(cudaDeviceSynchronize());
    fill_words(host, 1);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    launch_add(captured, 1, WORDS, stream);
    SHOW(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, other));
    launch_add(device, 1, WORDS, other);
    SHOW(cudaMemcpyAsync(back, device, BYTES, cudaMemcpyDeviceToHost, other));
    SHOW(cudaStreamSynchronize(other));
    SHOW(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    launch_add(captured, 1, WORDS, stream);
    SHOW(cudaStreamIsCapturing(stream, &status));
    printf("status %d\n", status);
    SHOW(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&program, graph, 0));
    MUST(cudaGraphLaunch(program, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(back, captured, BYTES, cudaMemcpyDeviceToHost));
    expect(back[3] == 2, "the captured kernels ran");
    MUST(cudaGraphExecDestroy(program));
    MUST(cudaGraphDestroy(graph));

    /* A synchronous copy while a blocking stream is captured is an error, and ends the capture. */
    cudaStream_t blocking;
    MUST(cudaStreamCreate(&blocking));
    MUST(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
    launch_add(captured, 1, WORDS, blocking);
    SHOW(cudaMemcpy(back, captured, BYTES, cudaMemcpyDeviceToHost));
    SHOW(cudaStreamEndCapture(blocking, &graph));
    use(device, 10);
    MUST(cudaStreamDestroy(blocking));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFree(device));
    MUST(cudaFree(captured));
}
