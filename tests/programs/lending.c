/* A large block that was uploaded and is read by a kernel that reads little of it: whatever the program does with the
 * block or the buffer next, it finds what it would have found. */
#include "programs.h"
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, BYTES = 8 * MIB + 4096, WORDS = BYTES / 4, READ = 1000 };

struct pair {
    unsigned *block, *buffer, *result;
    unsigned expected; /* the buffer's first word; the others count on */
};

static void block_fill(unsigned *block, unsigned first)
{
    for (unsigned i = 0; i < WORDS; i++) block[i] = first + i;
}
static bool counts_on(const unsigned *words, unsigned count, unsigned first)
{
    for (unsigned i = 0; i < count; i++)
        if (words[i] != first + i) return false;
    return true;
}
static void upload(struct pair *pair)
{
    pair->expected = pair->block[0];
    MUST(cudaMemcpy(pair->buffer, pair->block, BYTES, cudaMemcpyHostToDevice));
}
/* A kernel reads some words at the start and some far behind. */
static void gather(struct pair *pair, const char *when)
{
    static const unsigned from[] = {0, 5 * MIB / 4, WORDS - READ};
    unsigned words[READ];
    for (int k = 0; k < 3; k++) {
        launch_copy(pair->result, pair->buffer + from[k], READ, 0);
        MUST(cudaMemcpy(words, pair->result, sizeof words, cudaMemcpyDeviceToHost));
        expect(counts_on(words, READ, pair->expected + from[k]), "%s, from word %u", when, from[k]);
    }
}
static struct pair lend(unsigned first)
{
    struct pair pair = {.block = malloc(BYTES)};
    kernels_load();
    block_fill(pair.block, first);
    MUST(cudaMalloc((void **)&pair.buffer, BYTES));
    MUST(cudaMalloc((void **)&pair.result, READ * sizeof(unsigned)));
    upload(&pair);
    gather(&pair, "uploaded");
    return pair;
}
static void check_buffer(struct pair *pair, const char *when)
{
    unsigned *copy = malloc(BYTES);
    MUST(cudaMemcpy(copy, pair->buffer, BYTES, cudaMemcpyDeviceToHost));
    expect(counts_on(copy, WORDS, pair->expected), "%s: the buffer", when);
    free(copy);
}
static void check_block(struct pair *pair, unsigned first, const char *when)
{
    expect(counts_on(pair->block, WORDS, first), "%s: the block", when);
}
static void end(struct pair *pair)
{
    free(pair->block);
    MUST(cudaFree(pair->buffer));
    MUST(cudaFree(pair->result));
}

SNIPPET(lend_block_written, "", "the block is written after the upload: the buffer keeps what was uploaded")
{
    struct pair pair = lend(7);
    block_fill(pair.block, 1000);
    gather(&pair, "after the block was written");
    check_block(&pair, 1000, "written");
    upload(&pair);
    gather(&pair, "uploaded again");
    pair.block[3 * MIB / 4]++; /* one page of many */
    gather(&pair, "one word written");
    pair.block[3 * MIB / 4]--;
    for (int k = 0; k < 5; k++) {
        upload(&pair);
        gather(&pair, "the same again");
    }
    check_buffer(&pair, "the same again");
    check_block(&pair, 1000, "in the end");
    end(&pair);
}

SNIPPET(lend_buffer_written, "", "a kernel, a memset and copies write the buffer: the block keeps its own")
{
    struct pair pair = lend(70);
    launch_add(pair.buffer, 5, WORDS, 0);
    pair.expected += 5;
    gather(&pair, "after a kernel wrote it");
    check_block(&pair, 70, "after a kernel");
    upload(&pair);
    gather(&pair, "uploaded again");
    MUST(cudaMemset(pair.buffer + WORDS / 2, 0, 4096));
    check_block(&pair, 70, "after a memset");
    upload(&pair);
    gather(&pair, "uploaded once more");
    MUST(cudaMemcpy(pair.buffer, pair.block + 1, 40, cudaMemcpyHostToDevice));
    check_block(&pair, 70, "after a small copy");
    MUST(cudaMemcpy(pair.block, pair.buffer, BYTES, cudaMemcpyDeviceToHost));
    expect(pair.block[0] == 71 && pair.block[9] == 80 && pair.block[10] == 80, "what was copied in comes back");
    end(&pair);
}

SNIPPET(lend_freed, "", "block or buffer are freed while the other lives")
{
    struct pair pair = lend(1);
    free(pair.block);
    gather(&pair, "the block is gone");
    pair.block = malloc(BYTES);
    memset(pair.block, 0xff, BYTES);
    gather(&pair, "and another one is there");
    check_buffer(&pair, "the block is gone");
    block_fill(pair.block, 30);
    upload(&pair);
    gather(&pair, "the other block");
    MUST(cudaFree(pair.buffer));
    check_block(&pair, 30, "the buffer is gone");
    MUST(cudaMalloc((void **)&pair.buffer, BYTES));
    upload(&pair);
    gather(&pair, "another buffer");
    pair.block = realloc(pair.block, 2 * BYTES);
    check_block(&pair, 30, "after realloc");
    gather(&pair, "after realloc");
    end(&pair);
}

SNIPPET(lend_several, "", "one block for two buffers, two blocks for one buffer")
{
    struct pair one = lend(100), two = one;
    MUST(cudaMalloc((void **)&two.buffer, BYTES));
    upload(&two);
    gather(&one, "the first buffer");
    gather(&two, "the second buffer");
    two.block = malloc(BYTES);
    block_fill(two.block, 200);
    upload(&two);
    gather(&two, "the second block");
    one.buffer = two.buffer;
    upload(&one);
    gather(&one, "the first block again");
    check_block(&one, 100, "the first");
    check_block(&two, 200, "the second");
}

SNIPPET(lend_fork, "", "a forked child has the block's contents, and its parent goes on")
{
    struct pair pair = lend(9);
    fflush(stdout);
    pid_t child = fork();
    if (!child) _exit(!counts_on(pair.block, WORDS, 9));
    block_fill(pair.block, 11);
    expect(wait_for(child) == 0, "the child finds the block");
    gather(&pair, "after fork");
    check_buffer(&pair, "after fork");
    end(&pair);
}

SNIPPET(lend_reset, "", "the device is reset under it")
{
    struct pair pair = lend(3);
    MUST(cudaDeviceReset());
    check_block(&pair, 3, "after the reset");
    free(pair.block);
    pair = lend(4);
    check_buffer(&pair, "a new context");
    end(&pair);
}

SNIPPET(lend_busy, "", "the buffer is written and the block used while the program itself keeps the device busy")
{
    struct pair pair = lend(50);
    cudaStream_t busy, stream;
    MUST(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gate *gate = gate_close(busy);
    launch_add(pair.buffer, 1, WORDS, stream);
    check_block(&pair, 50, "while it is busy");
    block_fill(pair.block, 60);
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    pair.expected++;
    gather(&pair, "afterwards");
    check_buffer(&pair, "afterwards");
    check_block(&pair, 60, "afterwards");
    end(&pair);
}

SNIPPET(lend_graph, "", "a captured graph writes the buffer")
{
    struct pair pair = lend(80);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamCreate(&stream));
    launch_add(pair.buffer, 1, WORDS, 0);
    MUST(cudaDeviceSynchronize());
    upload(&pair); /* an upload whose copy may not have been made yet: it must not be made inside the capture */
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch_add(pair.buffer, 2, WORDS, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    upload(&pair);
    gather(&pair, "before the graph");
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    pair.expected += 2;
    gather(&pair, "after the graph");
    check_block(&pair, 80, "after the graph");
    end(&pair);
}

SNIPPET(lend_registered, "", "the program registers the block, and changes its pages")
{
    struct pair pair = lend(20);
    SHOW(cudaHostRegister(pair.block, BYTES, cudaHostRegisterDefault));
    check_block(&pair, 20, "registered");
    upload(&pair);
    gather(&pair, "uploaded from registered memory");
    SHOW(cudaHostUnregister(pair.block));
    upload(&pair);
    gather(&pair, "uploaded again");
    char *page = (char *)(((uintptr_t)pair.block + 5 * MIB) & ~(uintptr_t)4095);
    expect(!mprotect(page, MIB, PROT_READ), "a part becomes read-only");
    check_block(&pair, 20, "read-only");
    expect(!mprotect(page, MIB, PROT_READ | PROT_WRITE), "and writable again");
    upload(&pair);
    gather(&pair, "uploaded once more");
    expect(!madvise(page, 8192, MADV_DONTNEED) && !*(unsigned *)page && !page[8191], "discarded pages read as zeros");
    gather(&pair, "after pages were discarded");
    end(&pair);
}

SNIPPET(lend_system_calls, "", "system calls read and write the block")
{
    struct pair pair = lend(40);
    int ends[2];
    unsigned words[16] = {0};
    expect(!pipe(ends), "a pipe");
    expect(write(ends[1], pair.block + WORDS / 2, sizeof words) == sizeof words, "write(2) out of the block");
    expect(read(ends[0], words, sizeof words) == sizeof words && counts_on(words, 16, 40 + WORDS / 2), "what it read");
    memset(words, 0x11, sizeof words);
    expect(write(ends[1], words, sizeof words) == sizeof words &&
               read(ends[0], pair.block + WORDS - 100, sizeof words) == sizeof words,
           "read(2) into the block");
    expect(pair.block[WORDS - 100] == 0x11111111 && pair.block[WORDS - 101] == 40 + WORDS - 101, "what it wrote");
    gather(&pair, "after the system calls");
    end(&pair);
}

SNIPPET(lend_arguments, "", "a kernel's arguments lie in the block")
{
    struct pair pair = lend(90);
    struct copy_arguments *arguments = (void *)(pair.block + 3 * MIB / 4);
    *arguments = (struct copy_arguments){pair.result, pair.buffer + READ, READ};
    launch_add(pair.buffer, 1, WORDS, 0); /* no page is shared any more */
    upload(&pair);
    gather(&pair, "uploaded with its own address in it");
    unsigned words[READ];
    launch_copy_of(arguments, READ, 0);
    MUST(cudaMemcpy(words, pair.result, sizeof words, cudaMemcpyDeviceToHost));
    expect(counts_on(words, READ, 90 + READ), "launched with arguments out of the block");
    end(&pair);
}

SNIPPET(lend_divided, "", "the program gives a few pages of the block properties of their own")
{
    struct pair pair = lend(33);
    char *pages = (char *)(((uintptr_t)pair.block + 3 * MIB) & ~(uintptr_t)4095);
    expect(!madvise(pages, 8192, MADV_RANDOM), "two pages are read at random");
    check_block(&pair, 33, "advised");
    upload(&pair);
    gather(&pair, "uploaded again");
    mlock(pages + MIB, 4096); /* may not be allowed */
    block_fill(pair.block, 44);
    check_block(&pair, 44, "written");
    gather(&pair, "after it was written");
    end(&pair);
}

SNIPPET(lend_descriptors, "", "what the program closes is closed")
{
    int ends[2];
    expect(!pipe(ends), "a pipe");
    struct pair pair = lend(60);
    close(ends[1]);
    struct pollfd end_of_file = {.fd = ends[0], .events = POLLIN};
    expect(poll(&end_of_file, 1, 5000) == 1 && end_of_file.revents & POLLHUP, "the pipe ends");
    end(&pair);
}

static unsigned *watched;
static _Atomic bool stop, wrong;
static void touch(int number)
{
    (void)number;
    if (watched[WORDS / 3] != 500 + WORDS / 3) wrong = true;
}
static void *reader(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !stop; i = (i + 4099) % WORDS)
        if (watched[i] != 500 + i) wrong = true;
    return NULL;
}

SNIPPET(lend_readers, "", "another thread and a signal handler read the block all the time")
{
    struct pair pair = lend(500);
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    pthread_t thread;
    watched = pair.block;
    signal(SIGALRM, touch);
    pthread_create(&thread, NULL, reader, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int k = 0; k < 8; k++) {
        upload(&pair);
        gather(&pair, "read meanwhile");
        launch_add(pair.buffer, 1, WORDS, 0);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    stop = true;
    pthread_join(thread, NULL);
    expect(!wrong, "they always found what the block holds");
    end(&pair);
}

static void at_exit(void) { expect(counts_on(watched, WORDS, 600), "the block at exit"); }

SNIPPET(lend_exit, "", "the program ends without freeing anything, and an exit handler reads the block")
{
    atexit(at_exit);
    watched = lend(600).block;
}
