/* Pieces of blocks and their registration. */
#include "shim/arena.h"
#include "shim/clock.h"
#include "shim/hostmem_internal.h"
#include "shim/report.h"
#include "shim/shim.h"

#define MIB ((size_t)1 << 20)

static _Atomic uint64_t register_ps_per_byte; /* picoseconds, a moving average */

/* A registration costs some 60 us and 20 to 40 us a MiB, and the copy of a piece overlaps with the registration of the
 * next: the square root of 3 MiB times the block's length is about the best piece. */
static size_t piece_bytes_for(size_t mapped)
{
    size_t bytes = mapped < 12 * MIB     ? 4 * MIB
                   : mapped < 40 * MIB   ? 8 * MIB
                   : mapped <= 128 * MIB ? 16 * MIB
                                         : 32 * MIB;
    while (mapped / bytes > HOST_PIECES_MAX) bytes *= 2;
    return bytes;
}

bool pieces_ready(struct block *block)
{
    if (block->pieces) return true;
    block->piece_bytes = piece_bytes_for(block->mapped);
    /* A rest of less than half a piece belongs to the last one. */
    size_t count = (block->mapped + block->piece_bytes / 2) / block->piece_bytes;
    block->piece_count = count ? (uint32_t)count : 1;
    block->pieces = arena_calloc(block->piece_count * sizeof *block->pieces);
    return block->pieces != NULL;
}

void pieces_free(struct block *block)
{
    if (block->pieces) arena_free(block->pieces, block->piece_count * sizeof *block->pieces);
    block->pieces = NULL;
    block->piece_count = 0;
}

uint32_t piece_index(const struct block *block, uintptr_t address)
{
    size_t index = (address - block->base) / block->piece_bytes;
    return index < block->piece_count ? (uint32_t)index : block->piece_count - 1;
}

uintptr_t piece_start(const struct block *block, uint32_t index) { return block->base + index * block->piece_bytes; }

uintptr_t piece_end(const struct block *block, uint32_t index)
{
    return index + 1 == block->piece_count ? block->base + block->mapped : piece_start(block, index + 1);
}

bool pieces_any(struct block *block, uintptr_t address, size_t bytes)
{
    if (!block->registered || !block->pieces || !bytes) return false;
    for (uint32_t i = piece_index(block, address), last = piece_index(block, address + bytes - 1); i <= last; i++)
        if (block->pieces[i].state != PIECE_NONE) return true;
    return false;
}

double register_ns_per_byte(void)
{
    return (double)atomic_load_explicit(&register_ps_per_byte, memory_order_relaxed) / 1000.0;
}

static void note_duration(size_t bytes, uint64_t ns)
{
    uint64_t ps = ns * 1000 / bytes, before = atomic_load_explicit(&register_ps_per_byte, memory_order_relaxed);
    atomic_store_explicit(&register_ps_per_byte, before ? (7 * before + ps) / 8 : ps, memory_order_relaxed);
}

/* What a refusal means for later: never again, or not this piece. */
static void note_refusal(CUresult result, size_t bytes)
{
    switch (result) {
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
        if (!atomic_exchange(&hostmem.register_off, true))
            report_note("large host blocks: this driver does not register host memory (error %d); copies stay native",
                        (int)result);
        break;
    default:
        report_note("large host blocks: the driver refused to register a piece (error %d); its copies stay native",
                    (int)result);
        (void)bytes;
    }
}

/* Room in the budget for one more piece; makes some by giving cached blocks back. Lock held, released meanwhile. */
static bool budget_makes_room(size_t bytes, bool may_wait)
{
    size_t limit = budget_bytes();
    if (hostmem.registered + bytes <= limit) return true;
    size_t missing = hostmem.registered + bytes - limit;
    if (bytes > limit || hostmem.kept < missing || !may_wait) return false;
    hostmem_unlock(); /* the caller counts among the block's users */
    if (gpu_is_quiet())
        cache_trim(missing); /* else unregistering would wait for work that the copy need not wait for */
    hostmem_lock();
    return hostmem.registered + bytes <= limit;
}

static bool may_register(const struct block *block, const struct piece *piece)
{
    return !piece->refused && !block->native && block->drops < HOST_DROPS_MAX && !block->program_ranges &&
           !block->cached && !atomic_load_explicit(&hostmem.register_off, memory_order_relaxed) &&
           shim.real.cuMemHostRegister_v2;
}

bool piece_register(struct block *block, uint32_t index, bool earned, bool may_wait, CUcontext context)
{
    struct piece *piece = &block->pieces[index];
    while (piece->state == PIECE_BUSY) hostmem_wait();
    uintptr_t start = piece_start(block, index);
    if (piece->state == PIECE_REGISTERED) return true;
    size_t bytes = piece_end(block, index) - start;
    if (!earned || !may_register(block, piece) || !hostmem_driver_usable()) return false;
    if (!budget_makes_room(bytes, may_wait)) {
        report_note("large host blocks: the limit for registered memory is reached (ZCSHIM_PIN_LIMIT); some copies "
                    "stay unregistered");
        return false;
    }
    if (piece->state != PIECE_NONE || block->natives || !may_register(block, piece))
        return piece->state == PIECE_REGISTERED;
    piece->state = PIECE_BUSY;
    block->changing++;
    block->registered += bytes;
    hostmem.registered += bytes;
    hostmem_unlock();
    bool fresh = memory_is_fresh((void *)(start + bytes / 2)); /* then the time is that of the page faults */
    uint64_t began = clock_ns();
    CUresult result = shim.real.cuMemHostRegister_v2((void *)start, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    uint64_t ns = clock_ns() - began;
    hostmem_lock();
    bool done = result == CUDA_SUCCESS;
    piece->state = done ? PIECE_REGISTERED : PIECE_NONE;
    piece->bytes = bytes;
    piece->context = context;
    piece->refused = !done;
    if (!done) {
        block->registered -= bytes;
        hostmem.registered -= bytes;
    }
    block->changing--;
    pthread_cond_broadcast(&hostmem.changed);
    if (done) {
        if (!fresh) note_duration(bytes, ns);
        STAT_ADD(registrations, 1);
        STAT_ADD(host_bytes_registered, bytes);
    } else {
        note_refusal(result, bytes);
    }
    return done;
}

static void forget(struct block *block, struct piece *piece)
{
    piece->state = PIECE_NONE;
    block->registered -= piece->bytes;
    hostmem.registered -= piece->bytes;
}

static void unregister(struct block *block, uint32_t index)
{
    struct piece *piece = &block->pieces[index];
    CUcontext context = piece->context;
    piece->state = PIECE_BUSY;
    block->changing++;
    hostmem_unlock();
    CUresult entered = shim.real.cuCtxPushCurrent_v2(context);
    if (entered == CUDA_SUCCESS) {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        bool relaxed = shim.real.cuThreadExchangeStreamCaptureMode &&
                       shim.real.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
        shim.real.cuMemHostUnregister((void *)piece_start(block, index));
        if (relaxed) shim.real.cuThreadExchangeStreamCaptureMode(&mode);
        host_context_leave();
    }
    hostmem_lock();
    block->changing--;
    if (entered == CUDA_ERROR_NOT_PERMITTED) /* inside a host function: the driver keeps it */
        piece->state = PIECE_REGISTERED;
    else /* also of a context that is gone or broken, which has no use for the pages any more */
        forget(block, piece);
    pthread_cond_broadcast(&hostmem.changed);
}

void pieces_drop(struct block *block, uintptr_t address, size_t bytes)
{
    while (block->users || block->changing) hostmem_wait();
    if (!block->registered || !block->pieces || !bytes) return;
    bool usable = hostmem_driver_usable();
    if (!usable && !atomic_load_explicit(&hostmem.child, memory_order_relaxed)) return;
    uintptr_t last_byte = address + bytes - 1, block_last = block->base + block->mapped - 1;
    if (address < block->base) address = block->base;
    if (last_byte > block_last) last_byte = block_last;
    if (address > last_byte) return;
    for (uint32_t i = piece_index(block, address), last = piece_index(block, last_byte); i <= last; i++) {
        while (block->users || block->pieces[i].state == PIECE_BUSY)
            hostmem_wait(); /* a copy may have begun meanwhile */
        if (block->pieces[i].state != PIECE_REGISTERED) continue;
        if (usable)
            unregister(block, i);
        else
            forget(block, &block->pieces[i]);
    }
}

void pieces_forget(struct block *block)
{
    block->users = block->changing = 0;
    block->registered = 0;
    for (uint32_t i = 0; block->pieces && i < block->piece_count; i++) block->pieces[i].state = PIECE_NONE;
}
