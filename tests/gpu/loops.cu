// Loops of programs that know nothing of the shim: some whose small buffers belong on the host, most whose buffers must
// stay on the device. One JSON line on stdout.
//     loops NAME [--seconds S] [--iterations N] [--first N] [--small] [--bytes N] [--places N] [--same]
//   friendly   trip       --bytes copied in, one pass, copied out
//   hostile    table      look-ups all over a table of --bytes; 64 bytes are copied in, to --places places in turn
//              histogram  1 KiB of bins under atomics, copied in and out
//              counter    4 bytes under float atomics, set to zero and copied out
//              passes     16 KiB read again and again by every block
//              phases     the same 4 KiB by turns as in trip and as in table
//              long       fast round trips of 16 KiB, now and then a kernel that reads them long (--same: it is the
//                         same kernel with more to do)
//              async      round trips through pinned memory on a stream that is never idle, at times synchronous ones
//              graphs     a graph with a hammered table and a copy node, replayed between copies
//   mixed      four       256 B, 1 KiB, 4 KiB, 16 KiB in one loop, two of them better on the host
//              sparse     --bytes (64 MiB) allocated again and again; 64 bytes in, 1000 scattered reads
//   untouched  multiply, stencil    launches only
// It runs until both --seconds and --iterations are reached. marks are [iterations, ms] along the way: what a shorter
// run would have taken. setup_ms is from the context's creation to the first iteration.
#include "loops.h"
#include <functional>

static void trip(run *run, size_t bytes, long)
{
    const int count = bytes / sizeof(unsigned), grid = (count + 255) / 256;
    std::vector<unsigned> cells = random_words(count, 1);
    unsigned *device, expected = cells[count - 1];
    CUDA(cudaMalloc((void **)&device, bytes));
    run_start(run);
    while (run_next(run)) {
        CUDA(cudaMemcpy(device, cells.data(), bytes, cudaMemcpyHostToDevice));
        loops_touch<<<grid, 256>>>(device, count, (unsigned)run->done);
        CUDA(cudaMemcpy(cells.data(), device, bytes, cudaMemcpyDeviceToHost));
        expected = expected * LOOPS_FACTOR + (unsigned)run->done;
        expect(run, cells[count - 1] == expected);
    }
    run->hash = checksum(cells.data(), bytes);
    CUDA(cudaFree(device));
}

static void look_ups(run *run, size_t bytes, long places)
{
    const int grid = grid_of(run, 1056), lookups = 32;
    table table = {random_words(bytes / sizeof(unsigned), 2), NULL, 0, places ? (size_t)places : bytes / 64};
    unsigned *out;
    CUDA(cudaMalloc((void **)&table.device, bytes));
    CUDA(cudaMalloc((void **)&out, grid * 256 * sizeof(unsigned)));
    CUDA(cudaMemcpy(table.device, table.host.data(), bytes, cudaMemcpyHostToDevice));
    run_start(run);
    while (run_next(run)) {
        table_update(&table);
        loops_look_up<<<grid, 256>>>(out, table.device, table.host.size() - 1, lookups);
    }
    check_look_ups(run, out, grid * 256, table, lookups);
    CUDA(cudaFree(table.device));
    CUDA(cudaFree(out));
}

static void histogram(run *run, size_t, long)
{
    const int count = grid_of(run, 1024) * 256, bins = 256;
    const std::vector<unsigned> data = random_words(count, 3);
    std::vector<unsigned> expected(bins), found(bins), zero(bins);
    for (unsigned value : data) expected[value % bins]++;
    unsigned *device_data, *device_bins;
    CUDA(cudaMalloc((void **)&device_data, count * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_bins, bins * sizeof(unsigned)));
    CUDA(cudaMemcpy(device_data, data.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
    run_start(run);
    while (run_next(run)) {
        CUDA(cudaMemcpy(device_bins, zero.data(), bins * sizeof(unsigned), cudaMemcpyHostToDevice));
        loops_histogram<<<count / 256, 256>>>(device_bins, device_data, count, bins - 1);
        CUDA(cudaMemcpy(found.data(), device_bins, bins * sizeof(unsigned), cudaMemcpyDeviceToHost));
        expect(run, found == expected);
    }
    run->hash = checksum(found.data(), bins * sizeof(unsigned));
    CUDA(cudaFree(device_data));
    CUDA(cudaFree(device_bins));
}

static void counter(run *run, size_t, long)
{
    const int count = grid_of(run, 256) * 256;
    float *device, found = 0;
    CUDA(cudaMalloc((void **)&device, sizeof(float)));
    run_start(run);
    while (run_next(run)) {
        CUDA(cudaMemset(device, 0, sizeof(float)));
        loops_count<<<count / 256, 256>>>(device, count);
        CUDA(cudaMemcpy(&found, device, sizeof(float), cudaMemcpyDeviceToHost));
        expect(run, found == (float)count);
    }
    run->hash = checksum(&found, sizeof(found));
    CUDA(cudaFree(device));
}

static void passes(run *run, size_t, long)
{
    const int words = 4096, grid = grid_of(run, 264), passes = run->small ? 2 : 16;
    std::vector<unsigned> host = random_words(words, 4), out(256);
    unsigned *device, *device_out;
    CUDA(cudaMalloc((void **)&device, words * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_out, grid * 256 * sizeof(unsigned)));
    run_start(run);
    while (run_next(run)) {
        host[run->done % words]++;
        CUDA(cudaMemcpy(device, host.data(), words * sizeof(unsigned), cudaMemcpyHostToDevice));
        loops_passes<<<grid, 256>>>(device_out, device, words, passes);
        CUDA(cudaMemcpy(out.data(), device_out, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
        const unsigned thread = run->done % 256;
        expect(run, out[thread] == passes_on_cpu(thread, host.data(), words, passes));
    }
    run->hash = checksum(out.data(), 256 * sizeof(unsigned));
    CUDA(cudaFree(device));
    CUDA(cudaFree(device_out));
}

static void phases(run *run, size_t, long)
{
    const int words = 1024, bytes = words * sizeof(unsigned), grid = grid_of(run, 1056), lookups = 32;
    const long friendly = run->small ? 60 : 1500, hostile = run->small ? 40 : 1000;
    table table = {random_words(words, 5), NULL, 0, bytes / 64};
    std::vector<unsigned> back(words);
    unsigned *out;
    CUDA(cudaMalloc((void **)&table.device, bytes));
    CUDA(cudaMalloc((void **)&out, grid * 256 * sizeof(unsigned)));
    run_start(run, friendly + hostile);
    while (run_next(run)) {
        if ((run->done - 1) % run->unit < friendly) {
            const unsigned turn = (unsigned)run->done, expected = table.host[7] * LOOPS_FACTOR + turn;
            CUDA(cudaMemcpy(table.device, table.host.data(), bytes, cudaMemcpyHostToDevice));
            loops_touch<<<words / 256, 256>>>(table.device, words, turn);
            CUDA(cudaMemcpy(table.host.data(), table.device, bytes, cudaMemcpyDeviceToHost));
            expect(run, table.host[7] == expected);
        } else {
            table_update(&table);
            loops_look_up<<<grid, 256>>>(out, table.device, words - 1, lookups);
        }
    }
    check_look_ups(run, out, grid * 256, table, lookups);
    CUDA(cudaFree(table.device));
    CUDA(cudaFree(out));
}

static void long_kernel(run *run, size_t, long same)
{
    const int words = 4096, grid = grid_of(run, 132), much = run->small ? 4 : 2000, lookups = run->small ? 8 : 32000;
    std::vector<unsigned> host = random_words(words, 6), out(256);
    unsigned *device, *device_out;
    CUDA(cudaMalloc((void **)&device, words * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_out, grid * 256 * sizeof(unsigned)));
    run_start(run, run->small ? 50 : 2000);
    while (run_next(run)) {
        const int now = run->done % run->unit == 0;
        const unsigned thread = run->done % 256;
        host[run->done % words]++;
        CUDA(cudaMemcpy(device, host.data(), words * sizeof(unsigned), cudaMemcpyHostToDevice));
        if (now && !same)
            loops_look_up<<<grid, 256>>>(device_out, device, words - 1, lookups);
        else
            loops_passes<<<grid, 256>>>(device_out, device, words, now ? much : 1);
        CUDA(cudaMemcpy(out.data(), device_out, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
        if (now && !same)
            expect(run, out[thread] == look_up_on_cpu(thread * 2654435761u, host.data(), words - 1, lookups));
        else
            expect(run, out[thread] == passes_on_cpu(thread, host.data(), words, now ? much : 1));
    }
    run->hash = checksum(out.data(), 256 * sizeof(unsigned));
    CUDA(cudaFree(device));
    CUDA(cudaFree(device_out));
}

#define ASYNC_SLOTS 16

static void async(run *run, size_t, long)
{
    const int words = 256, passes = run->small ? 10 : 800;
    const size_t bytes = words * sizeof(unsigned);
    const long synchronous = run->small ? 30 : 256;
    unsigned *device_in, *device_out, *pinned_in, *pinned_out;
    cudaStream_t stream;
    cudaEvent_t arrived[ASYNC_SLOTS];
    CUDA(cudaMalloc((void **)&device_in, bytes));
    CUDA(cudaMalloc((void **)&device_out, bytes));
    CUDA(cudaMallocHost((void **)&pinned_in, ASYNC_SLOTS * bytes));
    CUDA(cudaMallocHost((void **)&pinned_out, ASYNC_SLOTS * bytes));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t &event : arrived) CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    uint64_t random = 7;
    for (int i = 0; i < ASYNC_SLOTS * words; i++) pinned_in[i] = random_next(&random);
    const auto right = [&](int slot) {
        const unsigned thread = run->done % 256;
        return pinned_out[slot * words + thread] == passes_on_cpu(thread, pinned_in + slot * words, words, passes);
    };
    run_start(run, run->small ? 120 : 2048);
    while (run_next(run)) {
        const long step = (run->done - 1) % run->unit, busy = step - synchronous;
        const int slot = step % ASYNC_SLOTS;
        unsigned *in = pinned_in + slot * words, *out = pinned_out + slot * words;
        if (busy >= ASYNC_SLOTS) {
            CUDA(cudaEventSynchronize(arrived[slot]));
            expect(run, right(slot));
        }
        in[run->done % words]++;
        if (busy < 0) {
            CUDA(cudaMemcpy(device_in, in, bytes, cudaMemcpyHostToDevice));
            loops_passes<<<1, 256>>>(device_out, device_in, words, passes);
            CUDA(cudaMemcpy(out, device_out, bytes, cudaMemcpyDeviceToHost));
            expect(run, right(slot));
        } else {
            CUDA(cudaMemcpyAsync(device_in, in, bytes, cudaMemcpyHostToDevice, stream));
            loops_passes<<<1, 256, 0, stream>>>(device_out, device_in, words, passes);
            CUDA(cudaMemcpyAsync(out, device_out, bytes, cudaMemcpyDeviceToHost, stream));
            CUDA(cudaEventRecord(arrived[slot], stream));
        }
        if (step == run->unit - 1) CUDA(cudaStreamSynchronize(stream));
    }
    for (int slot = 0; slot < ASYNC_SLOTS; slot++) expect(run, right(slot));
    run->hash = checksum(pinned_out, ASYNC_SLOTS * bytes);
    for (cudaEvent_t &event : arrived) CUDA(cudaEventDestroy(event));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFreeHost(pinned_in));
    CUDA(cudaFreeHost(pinned_out));
    CUDA(cudaFree(device_in));
    CUDA(cudaFree(device_out));
}

static void graphs(run *run, size_t, long)
{
    const int words = 1024, grid = grid_of(run, 1056), lookups = 32, count = 256;
    table table = {random_words(words, 8), NULL, 0, words / 16};
    std::vector<unsigned> state = random_words(count, 9);
    unsigned *out, *device_state, *pinned;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaMalloc((void **)&table.device, words * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&out, grid * 256 * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_state, count * sizeof(unsigned)));
    CUDA(cudaMallocHost((void **)&pinned, count * sizeof(unsigned)));
    CUDA(cudaMemcpy(table.device, table.host.data(), words * sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    loops_look_up<<<grid, 256, 0, stream>>>(out, table.device, words - 1, lookups);
    loops_touch<<<1, 256, 0, stream>>>(device_state, count, 5);
    CUDA(cudaMemcpyAsync(pinned, device_state, count * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    run_start(run);
    while (run_next(run)) {
        table_update(&table);
        state[0] += (unsigned)run->done;
        CUDA(cudaMemcpy(device_state, state.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect(run, pinned[0] == state[0] * LOOPS_FACTOR + 5 && pinned[255] == state[255] * LOOPS_FACTOR + 5);
        state[1] = pinned[1];
    }
    check_look_ups(run, out, grid * 256, table, lookups);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(table.device));
    CUDA(cudaFree(out));
    CUDA(cudaFree(device_state));
    CUDA(cudaFreeHost(pinned));
}

static void four(run *run, size_t, long)
{
    const int grid = grid_of(run, 264), lookups = run->small ? 4 : 32, words = 4096, bins = 1024, results = 256;
    const int count = grid * 256;
    table table = {random_words(words, 10), NULL, 0, words / 16};
    const std::vector<unsigned> data = random_words(count, 11);
    std::vector<unsigned> parameters = random_words(64, 12), result(results), found(bins), expected(bins);
    for (unsigned value : data) expected[value % bins]++;
    unsigned *device_data, *device_parameters, *device_result, *device_bins;
    CUDA(cudaMalloc((void **)&device_data, count * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_parameters, 64 * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_result, results * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_bins, bins * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&table.device, words * sizeof(unsigned)));
    CUDA(cudaMemcpy(device_data, data.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(table.device, table.host.data(), words * sizeof(unsigned), cudaMemcpyHostToDevice));
    run_start(run);
    while (run_next(run)) {
        parameters[run->done % 64]++;
        CUDA(cudaMemcpy(device_parameters, parameters.data(), 64 * sizeof(unsigned), cudaMemcpyHostToDevice));
        table_update(&table);
        CUDA(cudaMemset(device_bins, 0, bins * sizeof(unsigned)));
        loops_histogram<<<grid, 256>>>(device_bins, device_data, count, bins - 1);
        loops_mix<<<grid, 256>>>(device_result, device_parameters, table.device, words - 1, lookups);
        CUDA(cudaMemcpy(result.data(), device_result, results * sizeof(unsigned), cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(found.data(), device_bins, bins * sizeof(unsigned), cudaMemcpyDeviceToHost));
        const unsigned thread = run->done % results;
        expect(run, result[thread] ==
                        look_up_on_cpu(thread + parameters[thread & 63], table.host.data(), words - 1, lookups));
        expect(run, found == expected);
    }
    run->hash = checksum(result.data(), results * sizeof(unsigned));
    CUDA(cudaFree(device_data));
    CUDA(cudaFree(device_parameters));
    CUDA(cudaFree(device_result));
    CUDA(cudaFree(device_bins));
    CUDA(cudaFree(table.device));
}

// An iteration is an allocation with 1000 updates and gathers, and prints the time of these.
static void sparse(run *run, size_t bytes, long)
{
    const int reads = 1000, turns = run->small ? 100 : 1000;
    const unsigned mask = bytes / sizeof(unsigned) - 1;
    std::vector<unsigned> host = random_words(bytes / sizeof(unsigned), 13), out(reads);
    unsigned *device_out, turn = 0;
    std::string loops;
    CUDA(cudaMalloc((void **)&device_out, reads * sizeof(unsigned)));
    run_start(run);
    while (run_next(run)) {
        unsigned *device;
        CUDA(cudaMalloc((void **)&device, bytes));
        CUDA(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
        const double before_us = now_us();
        for (int i = 0; i < turns; i++, turn++) {
            const unsigned read = turn % reads, place = (read * 2654435761u + turn * 2246822519u) & mask;
            for (int k = 0; k < 16; k++) host[(place & ~15u) + k] += turn + k;
            CUDA(cudaMemcpy(device + (place & ~15u), &host[place & ~15u], 64, cudaMemcpyHostToDevice));
            loops_gather<<<(reads + 255) / 256, 256>>>(device_out, device, mask, reads, turn);
            CUDA(cudaMemcpy(out.data(), device_out, reads * sizeof(unsigned), cudaMemcpyDeviceToHost));
            expect(run, out[read] == host[place]);
        }
        char text[32];
        snprintf(text, sizeof(text), "%s%.3f", loops.empty() ? "" : ", ", (now_us() - before_us) / 1e3);
        loops += text;
        CUDA(cudaFree(device));
        for (unsigned i = 0; i < (unsigned)reads; i++)
            expect(run, out[i] == host[(i * 2654435761u + (turn - 1) * 2246822519u) & mask]);
    }
    run->hash = checksum(out.data(), reads * sizeof(unsigned));
    run->more = ", \"loops_ms\": [" + loops + "]";
    CUDA(cudaFree(device_out));
}

static std::vector<float> whole_numbers(size_t count, uint64_t seed)
{
    std::vector<float> numbers(count);
    for (float &number : numbers) number = (float)(random_next(&seed) % 16) - 8;
    return numbers;
}

// Some warm-up first, as the clocks rise.
static void launches(run *run, const std::function<void()> &launch)
{
    for (int i = 0; i < (run->small ? 1 : 200); i++) launch();
    run_start(run);
    while (run_next(run)) launch();
}

static void multiply(run *run, size_t, long)
{
    const int n = run->small ? 32 : 1024;
    const size_t bytes = (size_t)n * n * sizeof(float);
    const std::vector<float> a = whole_numbers(n * n, 14), b = whole_numbers(n * n, 15);
    std::vector<float> c(n * n);
    float *device_a, *device_b, *device_c;
    CUDA(cudaMalloc((void **)&device_a, bytes));
    CUDA(cudaMalloc((void **)&device_b, bytes));
    CUDA(cudaMalloc((void **)&device_c, bytes));
    CUDA(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    const dim3 grid(n / LOOPS_TILE, n / LOOPS_TILE), block(LOOPS_TILE, LOOPS_TILE);
    launches(run, [&] { loops_multiply<<<grid, block>>>(device_c, device_a, device_b, n); });
    CUDA(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n * n; i += n + 17) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[i / n * n + k] * b[k * n + i % n];
        expect(run, c[i] == sum);
    }
    run->hash = checksum(c.data(), bytes);
    CUDA(cudaFree(device_a));
    CUDA(cudaFree(device_b));
    CUDA(cudaFree(device_c));
}

static void stencil(run *run, size_t, long)
{
    const int width = run->small ? 64 : 8192, height = run->small ? 16 : 4096;
    const size_t count = (size_t)width * height, bytes = count * sizeof(float);
    const std::vector<float> from = whole_numbers(count, 16);
    const float weights[5] = {0.5f, 0.125f, 0.25f, 1, 2};
    std::vector<float> to(count);
    float *device_from, *device_to, *device_weights;
    CUDA(cudaMalloc((void **)&device_from, bytes));
    CUDA(cudaMalloc((void **)&device_to, bytes));
    CUDA(cudaMalloc((void **)&device_weights, sizeof(weights)));
    CUDA(cudaMemcpy(device_from, from.data(), bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(device_to, 0, bytes));
    CUDA(cudaMemcpy(device_weights, weights, sizeof(weights), cudaMemcpyHostToDevice));
    const dim3 grid(width / 64, height), block(64);
    launches(run, [&] { loops_stencil<<<grid, block>>>(device_to, device_from, device_weights, width, height); });
    CUDA(cudaMemcpy(to.data(), device_to, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = width + 1; i < count - width - 1; i += 101) {
        if (i % width == 0 || i % width == (size_t)width - 1) continue;
        expect(run, to[i] == weights[0] * from[i] + weights[1] * from[i - 1] + weights[2] * from[i + 1] +
                                 weights[3] * from[i - width] + weights[4] * from[i + width]);
    }
    run->hash = checksum(to.data(), bytes);
    CUDA(cudaFree(device_from));
    CUDA(cudaFree(device_to));
    CUDA(cudaFree(device_weights));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*body)(run *, size_t bytes, long option);
        double bytes, small_bytes;
    } loops[] = {{"trip", trip, 4096, 4096},
                 {"table", look_ups, 4096, 4096},
                 {"histogram", histogram, 0, 0},
                 {"counter", counter, 0, 0},
                 {"passes", passes, 0, 0},
                 {"phases", phases, 0, 0},
                 {"long", long_kernel, 0, 0},
                 {"async", async, 0, 0},
                 {"graphs", graphs, 0, 0},
                 {"four", four, 0, 0},
                 {"sparse", sparse, 64 << 20, 1 << 20},
                 {"multiply", multiply, 0, 0},
                 {"stencil", stencil, 0, 0}};
    run run = {};
    run.seconds = option_number(argc, argv, "--seconds", 0);
    run.wanted = (long)option_number(argc, argv, "--iterations", 1);
    run.first = (long)option_number(argc, argv, "--first", 1000);
    run.next_mark = 1;
    run.small = option_given(argc, argv, "--small");
    for (const auto &loop : loops) {
        if (argc < 2 || strcmp(argv[1], loop.name)) continue;
        const size_t bytes = (size_t)option_number(argc, argv, "--bytes", run.small ? loop.small_bytes : loop.bytes);
        const long option = option_given(argc, argv, "--same") ? 1 : (long)option_number(argc, argv, "--places", 0);
        CUDA(cudaFree(NULL));
        const double before_us = now_us();
        loop.body(&run, bytes, option);
        printf("{\"loop\": \"%s\", \"iterations\": %ld, \"total_ms\": %.4f, \"us_per_iteration\": %.4f, \"setup_ms\": "
               "%.4f, "
               "\"first_ms\": %.4f, \"hash\": \"%016llx\", \"wrong\": %ld%s, \"marks\": [%s]}\n",
               loop.name, run.done, run.total_us / 1e3, run.total_us / run.done, (run.started_us - before_us) / 1e3,
               run.first_us / 1e3, (unsigned long long)run.hash, run.wrong, run.more.c_str(), run.marks.c_str());
        return run.wrong != 0;
    }
    fprintf(stderr, "usage: loops NAME [--seconds S] [--iterations N] [--first N] [--small] [--bytes N] [--places N] "
                    "[--same], where NAME is one of:");
    for (const auto &loop : loops) fprintf(stderr, " %s", loop.name);
    fprintf(stderr, "\n");
    return 64;
}
