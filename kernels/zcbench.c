/* zcbench: tells when zero-copy wins on this machine. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "kernels/zcbench.h"

static const char usage[] =
    "zcbench: explicit copies against zero-copy memory, measured on this machine\n"
    "\n"
    "  zcbench                  everything, in under a minute\n"
    "  zcbench --quick          the decisions and fewer sizes, in 5 seconds\n"
    "  zcbench --check          every kernel against the CPU, on every kind of memory; exit code 1 if one is wrong\n"
    "  zcbench --calibrate[=F]  measures what libzcshim's decisions need and writes it to the cache folder, or to F\n"
    "\n"
    "  --json[=F] --csv[=F]     the numbers, to stdout in place of the report, or to the file F as well\n"
    "  --plot=F                 the plots, as SVG, to the file F\n"
    "  --from=F                 the report and these from an earlier run's --json file; measures nothing, needs no "
    "GPU\n"
    "  --seconds=N              time to spend on the kernels (40)\n"
    "  --seed=N                 the input of --check\n"
    "  --device=N               which GPU (0)\n"
    "\n"
    "Exit codes: 0 done, 1 an error or a wrong kernel, 2 wrong usage, 77 no GPU that can be used.\n";

struct arguments {
    bool quick, check, calibrate, json, csv;
    const char *calibrate_path, *json_path, *csv_path, *plot_path, *from_path, *wrong_use;
    double seconds;
    unsigned seed;
    int device;
};

static bool parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {{"quick", no_argument, 0, 'q'},
                                            {"check", no_argument, 0, 'k'},
                                            {"calibrate", optional_argument, 0, 'c'},
                                            {"json", optional_argument, 0, 'j'},
                                            {"csv", optional_argument, 0, 'v'},
                                            {"plot", required_argument, 0, 'p'},
                                            {"from", required_argument, 0, 'f'},
                                            {"seconds", required_argument, 0, 's'},
                                            {"seed", required_argument, 0, 'e'},
                                            {"device", required_argument, 0, 'd'},
                                            {"wrong-use", required_argument, 0, 'w'},
                                            {"help", no_argument, 0, 'h'},
                                            {0}};
    int c;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (c) {
        case 'q':
            a->quick = true;
            break;
        case 'k':
            a->check = true;
            break;
        case 'c':
            a->calibrate = true, a->calibrate_path = optarg;
            break;
        case 'j':
            a->json = true, a->json_path = optarg;
            break;
        case 'v':
            a->csv = true, a->csv_path = optarg;
            break;
        case 'p':
            a->plot_path = optarg;
            break;
        case 'f':
            a->from_path = optarg;
            break;
        case 's':
            a->seconds = atof(optarg);
            break;
        case 'e':
            a->seed = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'd':
            a->device = atoi(optarg);
            break;
        case 'w':
            a->wrong_use = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            return false;
        }
    }
    if (optind < argc) fprintf(stderr, "zcbench: what is \"%s\"?\n", argv[optind]);
    return optind == argc;
}

static int attribute(enum cudaDeviceAttr attr, int device)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, attr, device) == cudaSuccess ? value : -1;
}

static void host_read(struct machine *m)
{
    char line[256];
    time_t now = time(NULL);
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !*m->cpu && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10)) sscanf(line, "%*[^:]: %63[^\n]", m->cpu);
    if (f) fclose(f);
    strftime(m->date, sizeof m->date, "%Y-%m-%d", gmtime(&now));
}

bool machine_read(struct machine *m)
{
    struct cudaDeviceProp prop;
    if (!TRY(cudaGetDevice(&m->device)) || !TRY(cudaGetDeviceProperties(&prop, m->device))) return false;
    snprintf(m->gpu, sizeof m->gpu, "%s", prop.name);
    const unsigned char *u = (const unsigned char *)prop.uuid.bytes;
    snprintf(m->uuid, sizeof m->uuid, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
             u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    cudaDriverGetVersion(&m->driver);
    cudaRuntimeGetVersion(&m->runtime);
    m->sms = prop.multiProcessorCount > 0 ? prop.multiProcessorCount : 1;
    m->memory = prop.totalGlobalMem;
    m->l2 = (size_t)prop.l2CacheSize;
    m->can_map = attribute(cudaDevAttrCanMapHostMemory, m->device);
    m->registered_same_address = attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, m->device);
    m->native_atomics = attribute(cudaDevAttrHostNativeAtomicSupported, m->device);
    m->pageable_access = attribute(cudaDevAttrPageableMemoryAccess, m->device);
    m->integrated = attribute(cudaDevAttrIntegrated, m->device);
    host_read(m);
    return true;
}

static bool gpu_open(int device)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && device >= count) e = cudaErrorInvalidDevice;
    if (e == cudaSuccess) e = cudaSetDevice(device);
    if (e == cudaSuccess) e = cudaFree(NULL);
    if (e == cudaSuccess) return true;
    fprintf(stderr,
            "zcbench: no GPU that can be used: %s\nIt measures the machine that it runs on and assumes nothing, so it "
            "needs one.\n",
            cudaGetErrorString(e));
    return false;
}

static void progress(const struct bench *b, double share, const char *what)
{
    if (!b->tty) return;
    int filled = (int)(share * 40);
    fprintf(stderr, "\r[%.*s%*s] %3.0f %%  %-22s", filled, "########################################", 40 - filled, "",
            share * 100, what);
    fflush(stderr);
}

static void plan_add(struct bench *b, enum case_id id, size_t bytes, double density)
{
    if (id == CASE_GATHER || id == CASE_SCATTER) /* what is really touched */
        density = gather_count(bytes / 4, density) / (bytes / 4.0);
    if (b->cell_count < CELLS_MAX)
        b->cells[b->cell_count++] = (struct cell){.id = id, .bytes = bytes, .density = density};
}

static void plan_sizes(struct bench *b, enum case_id id, double density, size_t from, size_t to, unsigned factor)
{
    for (size_t bytes = from; bytes <= to; bytes *= factor) plan_add(b, id, bytes, density);
}

/* In the order of enum case_id: the memory is filled once with words and once with floats. */
static void plan(struct bench *b)
{
    static const double fractions[] = {0x1p-20, 0x1p-17, 0x1p-14, 0x1p-10, 0x1p-7, 0x1p-5, 0x1p-4, 0x1p-2, 1};
    unsigned by = b->quick ? 16 : 4;
    size_t most = b->quick ? 16 * MIB : 64 * MIB;
    plan_sizes(b, CASE_READ, 1, b->quick ? 4 * KIB : 256, most, by);
    plan_sizes(b, CASE_WRITE, 1, b->quick ? 4 * KIB : 256, most, by);
    plan_sizes(b, CASE_MODIFY, 1, b->quick ? 4 * KIB : 4, 4 * KIB, 4);
    plan_sizes(b, CASE_MODIFY, 1, 16 * KIB, most, by);
    plan_sizes(b, CASE_PASSES, 16, 4 * KIB, most, by);
    if (!b->quick) plan_sizes(b, CASE_PASSES, 4, 4 * KIB, most, 4);
    plan_sizes(b, CASE_LOOKUP, MIB, KIB, most, by);
    if (!b->quick) plan_sizes(b, CASE_LOOKUP, 16384, KIB, most, 4);
    plan_sizes(b, CASE_LOOKUP_SHARED, MIB, b->quick ? 16 * KIB : KIB, 16 * KIB, 4);
    if (!b->quick) plan_add(b, CASE_LOOKUP_SHARED, 32 * KIB, MIB);
    for (int i = 3; !b->quick && i < 9; i++) plan_sizes(b, CASE_GATHER, fractions[i], 128 * KIB, most / 8, 8);
    for (int i = 0; i < 9; i += b->quick ? 2 : 1) plan_add(b, CASE_GATHER, most, fractions[i]);
    for (int i = 0; i < 9; i += b->quick ? 2 : 1) plan_add(b, CASE_SCATTER, most, fractions[i]);
    plan_add(b, CASE_HISTOGRAM_INT, KIB, 4096);
    if (!b->quick) plan_add(b, CASE_HISTOGRAM_INT, KIB, 65536);
    if (!b->quick) plan_add(b, CASE_HISTOGRAM_INT, 64 * KIB, 65536);
    plan_sizes(b, CASE_PIXEL, 1, KIB, 256 * KIB, b->quick ? 64 : 4);
    plan_sizes(b, CASE_PIXEL_SHARED, 1, KIB, 16 * KIB, b->quick ? 64 : 4);
    plan_add(b, CASE_POLL, 4, 64);
    plan_add(b, CASE_HISTOGRAM_FLOAT, KIB, 4096);
    if (!b->quick) plan_add(b, CASE_HISTOGRAM_FLOAT, KIB, 65536);
    plan_sizes(b, CASE_REDUCTION, 1, 4 * KIB, most, b->quick ? 64 : 4);
    plan_sizes(b, CASE_FIR, 1, 256, 16 * KIB, b->quick ? 64 : 4);
    plan_sizes(b, CASE_FIR_SHARED, 1, 256, 16 * KIB, b->quick ? 64 : 4);
    plan_sizes(b, CASE_STENCIL, 1, 16 * KIB, most, b->quick ? 64 : 4);
}

/* The rows of the decision table have cells of their own, so that they can be measured as their names say. */
static void plan_decisions(struct bench *b)
{
    size_t large = b->quick ? 16 * MIB : 64 * MIB;
    const struct cell rows[] = {
        {.id = CASE_MODIFY, .bytes = 4 * KIB, .density = 1, .gap_us = 2000},
        {.id = CASE_READ, .bytes = large, .density = 1},
        {.id = CASE_PASSES, .bytes = large, .density = 16},
        {.id = CASE_GATHER, .bytes = 4 * MIB, .density = 0x1p-10},
        {.id = CASE_MODIFY, .bytes = 64, .density = 1},
        {.id = CASE_LOOKUP, .bytes = MIB, .density = MIB},
        {.id = CASE_HISTOGRAM_INT, .bytes = KIB, .density = 65536},
    };
    b->decision_count = sizeof rows / sizeof *rows;
    memcpy(b->decisions, rows, sizeof rows);
}

static bool measure_cells(struct bench *b)
{
    struct places p;
    unsigned total = b->cell_count + b->decision_count;
    bool floats = false, ok = true;
    if (!places_create(&p, b->quick ? 16 * MIB : 64 * MIB, (unsigned)b->machine.sms * 4)) return false;
    places_fill(&p, false, (unsigned)now_ns());
    ok = warm_up(&p, b->quick ? 5e7 : 3e8);
    double end = now_ns() + b->budget_ns;
    for (unsigned i = 0; ok && i < total; i++) {
        struct cell *cell = i < b->decision_count ? &b->decisions[i] : &b->cells[i - b->decision_count];
        bool wants_floats = bench_cases[cell->id].flags & DATA_FLOAT;
        if (wants_floats != floats) places_fill(&p, wants_floats, (unsigned)now_ns());
        floats = wants_floats;
        double left = end - now_ns(), share = left / (total - i);
        progress(b, 0.8 * i / total, bench_cases[cell->id].name);
        ok = cell_measure(cell, &p, share > 0 ? share : 0);
    }
    places_destroy(&p);
    return ok;
}

static bool measure(struct bench *b)
{
    double start = now_ns();
    plan(b);
    plan_decisions(b);
    bool ok = measure_cells(b);
    progress(b, 0.8, "bandwidth");
    ok = ok && bandwidth_measure(b);
    progress(b, 0.88, "memory kinds");
    ok = ok && kinds_measure(b) && atomics_measure(b);
    progress(b, 0.92, "overlap");
    ok = ok && overlap_measure(b);
    progress(b, 0.93, "wrong uses");
    ok = ok && wrong_uses(b); /* last: some of them may upset the context */
    if (b->tty) fprintf(stderr, "\r%80s\r", "");
    b->spent_s = (now_ns() - start) * 1e-9;
    return ok;
}

static bool print_to(const struct bench *b, const char *path, void (*print)(const struct bench *, FILE *))
{
    FILE *f = path ? fopen(path, "w") : stdout;
    if (!f) {
        fprintf(stderr, "zcbench: cannot write %s: %m\n", path);
        return false;
    }
    print(b, f);
    bool ok = !fflush(f) && !ferror(f);
    if (path && fclose(f)) ok = false;
    if (!ok) fprintf(stderr, "zcbench: cannot write %s\n", path ? path : "to stdout");
    return ok;
}

static bool outputs(const struct bench *b, const struct arguments *a)
{
    bool ok = true;
    if ((!a->json || a->json_path) && (!a->csv || a->csv_path)) ok = print_to(b, NULL, print_report);
    if (a->json) ok &= print_to(b, a->json_path, print_json);
    if (a->csv) ok &= print_to(b, a->csv_path, print_csv);
    if (a->plot_path) ok &= plot_write(b, a->plot_path);
    return ok;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct arguments a = {.seconds = 0, .seed = (unsigned)time(NULL) ^ (unsigned)getpid() << 16};
    if (!parse(argc, argv, &a)) {
        fputs(usage, stderr);
        return 2;
    }
    if (a.from_path) return bench_load(&bench, a.from_path) && outputs(&bench, &a) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!gpu_open(a.device)) return EXIT_NO_GPU;
    if (a.wrong_use) return wrong_use_child(a.wrong_use);
    if (a.check) return check_run(a.quick, a.seed);
    if (!machine_read(&bench.machine)) return EXIT_FAILURE;
    if (!bench.machine.can_map) {
        fprintf(stderr,
                "zcbench: %s cannot map host memory (canMapHostMemory is 0): there is no zero-copy to measure\n",
                bench.machine.gpu);
        return EXIT_NO_GPU;
    }
    if (a.calibrate) return calibrate_run(&bench.machine, a.calibrate_path) ? EXIT_SUCCESS : EXIT_FAILURE;

    bench.quick = a.quick;
    bench.tty = isatty(STDERR_FILENO);
    bench.budget_ns = (a.seconds > 0 ? a.seconds : a.quick ? 2.0 : 36.0) * 1e9;
    return measure(&bench) && outputs(&bench, &a) ? EXIT_SUCCESS : EXIT_FAILURE;
}
