#include "shim/lend_loan.h"

#include <string.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/backing.h"
#include "shim/context.h"
#include "shim/hostmem.h"
#include "shim/lend.h"
#include "shim/lend_watch.h"
#include "shim/shim.h"
#include "shim/system.h"

struct loans loans = {.lock = LOCK_INITIALIZER};
_Atomic int lend_loans;

static bool is_touched(const struct loan *loan, uint32_t unit) { return loan->touched[unit / 64] >> (unit % 64) & 1; }

/* The lock is held. */
static void set_touched(struct loan *loan, uint32_t unit)
{
    if (is_touched(loan, unit)) return;
    loan->touched[unit / 64] |= 1ull << (unit % 64);
    loan->touched_count++;
}

/* The first unit from `from` on that is touched or not, and where that run ends. False: none. */
static bool next_run(const struct loan *loan, bool touched, uint32_t from, uint32_t *first, uint32_t *end)
{
    while (from < loan->units && is_touched(loan, from) != touched) from++;
    *first = from;
    while (from < loan->units && is_touched(loan, from) == touched) from++;
    *end = from;
    return *first < loan->units;
}

static bool step_move(uintptr_t from, uintptr_t to, size_t bytes)
{
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    return system_mremap((void *)from, bytes, bytes, flags, (void *)to) == (void *)to;
}

/* Moves pages in one step for each mapping that they lie in; what was at `to` is gone, `from` stays mapped and empty.
 * False: nothing was moved. */
static bool pages_move(uintptr_t from, uintptr_t to, size_t bytes, bool patched)
{
    size_t step = patched ? LOAN_UNIT : bytes, done = 0;
    while (done < bytes && step_move(from + done, to + done, step)) done += step;
    if (done >= bytes) return true;
    /* Out of mappings. The way back cannot run into that: it joins what was parted. */
    while (done) {
        done -= step;
        step_move(to + done, from + done, step);
    }
    return false;
}

static void protect(uintptr_t address, size_t bytes, int protection)
{
    system_mprotect((void *)address, bytes, protection);
}

/* A touch of a watched page that is not there. */
static void answer(uintptr_t address)
{
    struct loan *loan = NULL;
    lock_acquire(&loans.lock);
    for (int i = 0; i < LOANS_MOST && !loan; i++)
        if (loans.entries[i].state != LOAN_NONE && loans.entries[i].tied && address >= loans.entries[i].host &&
            address < loan_host_end(&loans.entries[i]))
            loan = &loans.entries[i];
    uint32_t unit = loan ? (uint32_t)((address - loan->host) / LOAN_UNIT) : 0;
    if (!loan || loan->state == LOAN_COMING || is_touched(loan, unit)) {
        /* Not yet taken, or given back: a page that is not there was never written, or the program threw it away. */
        watch_zero(address, (size_t)sysconf(_SC_PAGESIZE));
    } else {
        set_touched(loan, unit); /* first: the toucher goes on, and may upload what it writes, before this returns */
        watch_fill(loan->host + unit * LOAN_UNIT, loan->at + unit * LOAN_UNIT, LOAN_UNIT);
        STAT_ADD(lend_bytes_touched, LOAN_UNIT);
    }
    lock_release(&loans.lock);
}

static uintptr_t aside_map(size_t bytes)
{
    return (uintptr_t)system_map_aligned(bytes, LOAN_UNIT, PROT_NONE, MAP_NORESERVE);
}

static size_t page_up(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void aside_unmap(struct loan *loan)
{
    if (loan->aside) system_munmap((void *)loan->aside, page_up(loan->total));
    loan->aside = 0;
}

static struct loan *loan_new(struct window *window, uintptr_t host, size_t total)
{
    for (int i = 0; i < LOANS_MOST; i++) {
        struct loan *loan = &loans.entries[i];
        uint32_t units = (uint32_t)(total / LOAN_UNIT);
        size_t bitmap = (units + 63) / 64 * sizeof(uint64_t);
        if (loan->state != LOAN_NONE) continue;
        uint64_t *touched = arena_calloc(bitmap);
        uintptr_t aside = touched ? aside_map(page_up(total)) : 0;
        if (!aside) {
            if (touched) arena_free(touched, bitmap);
            return NULL;
        }
        lock_acquire(&loans.lock);
        *loan = (struct loan){.window = window,
                              .host = host,
                              .units = units,
                              .touched = touched,
                              .total = total,
                              .aside = aside,
                              .at = aside};
        lock_release(&loans.lock);
        return loan;
    }
    return NULL;
}

static void loan_forget(struct loan *loan)
{
    uint64_t *touched = loan->touched;
    size_t bitmap = (loan->units + 63) / 64 * sizeof(uint64_t);
    struct window *window = loan->window;
    bool counted = window && window->loan == loan;
    lock_acquire(&loans.lock);
    loan->state = LOAN_NONE;
    loan->tied = false;
    loan->touched = NULL;
    lock_release(&loans.lock);
    aside_unmap(loan);
    arena_free(touched, bitmap);
    if (counted) {
        atomic_store(&window->loan, NULL);
        atomic_fetch_sub(&lend_loans, 1);
    }
}

/* From watching to HELD: the pages go aside. */
static bool loan_take(struct loan *loan)
{
    size_t bytes = loan->units * LOAN_UNIT, tail = loan->total - bytes;
    lock_acquire(&loans.lock);
    loan->state = LOAN_COMING;
    loan->tied = true;
    lock_release(&loans.lock);
    if (!watch_begin(loan->host, bytes)) return false;
    lock_acquire(&loans.lock);
    bool taken = pages_move(loan->host, loan->at, bytes, loan->patched);
    if (taken) loan->state = LOAN_HELD;
    lock_release(&loans.lock);
    if (!taken) {
        watch_end(loan->host, bytes);
        return false;
    }
    if (tail) {
        protect(loan->at + bytes, page_up(tail), PROT_READ | PROT_WRITE);
        memcpy((void *)(loan->at + bytes), (void *)(loan->host + bytes), tail);
    }
    system_madvise((void *)loan->at, page_up(loan->total), MADV_DONTFORK);
    return true;
}

bool loan_probe(void)
{
    static int works; /* 1 yes, -1 no */
    if (works) return works > 0;
    works = -1;
    uintptr_t host = watch_start(answer) ? aside_map(LOAN_UNIT) : 0;
    if (!host) return false;
    protect(host, LOAN_UNIT, PROT_READ | PROT_WRITE);
    volatile char *byte = (char *)host;
    byte[5] = 42;
    struct loan *loan = loan_new(NULL, host, LOAN_UNIT);
    if (loan && loan_take(loan)) {
        bool kept = byte[5] == 42;
        byte[5] = 43;
        kept &= ((volatile char *)loan->at)[5] == 42;
        loan_untie(loan, true, false);
        if (kept && byte[5] == 43) works = 1;
    }
    if (loan) loan_forget(loan);
    system_munmap((void *)host, LOAN_UNIT);
    return works > 0;
}

struct loan *loan_make(struct window *window, uintptr_t host)
{
    bool patched;
    size_t total = window->sole_bytes;
    if (!hostmem_lend(host, total, &patched)) return NULL;
    struct loan *loan = loan_new(window, host, total);
    if (loan) loan->patched = patched;
    if (!loan || !loan_take(loan)) {
        if (loan) loan_forget(loan);
        hostmem_lent_back(host, false);
        return NULL;
    }
    atomic_store(&window->loan, loan);
    atomic_fetch_add(&lend_loans, 1);
    return loan;
}

/* Moves untouched pages back to the block. */
static void move_back(struct loan *loan)
{
    uint32_t first, end;
    lock_acquire(&loans.lock);
    for (uint32_t from = 0; next_run(loan, false, from, &first, &end); from = end) {
        uintptr_t at = loan->at + first * LOAN_UNIT, host = loan->host + first * LOAN_UNIT;
        size_t bytes = (end - first) * LOAN_UNIT;
        protect(at, bytes, PROT_READ | PROT_WRITE);
        system_madvise((void *)at, bytes, MADV_DOFORK);
        if (!pages_move(at, host, bytes, loan->patched)) continue; /* the block gets a copy, see loan_untie */
        for (uint32_t unit = first; unit < end; unit++) set_touched(loan, unit);
    }
    lock_release(&loans.lock);
}

void loan_untie(struct loan *loan, bool move, bool freed)
{
    if (!loan->tied) return;
    bool patched = loan->patched || loan->touched_count > 0;
    if (move) move_back(loan);
    for (uint32_t unit = 0; unit < loan->units && !freed; unit++) {
        if (is_touched(loan, unit)) continue;
        (void)*(volatile char *)(loan->host + unit * LOAN_UNIT); /* touching is asking for a copy */
        patched = true;
    }
    if (!move) protect(loan->at, page_up(loan->total), PROT_READ | PROT_WRITE); /* the window's alone from now on */
    lock_acquire(&loans.lock);
    loan->tied = false;
    lock_release(&loans.lock);
    watch_end(loan->host, loan->units * LOAN_UNIT);
    if (loan->window) hostmem_lent_back(loan->host, patched || freed);
}

/* All pages, the copied rest included, to or from the window. */
static bool whole_move(struct loan *loan, uintptr_t from, uintptr_t to)
{
    size_t bytes = loan->units * LOAN_UNIT, rest = page_up(loan->total) - bytes;
    lock_acquire(&loans.lock);
    bool moved = pages_move(from, to, bytes, loan->patched);
    if (moved && rest && !pages_move(from + bytes, to + bytes, rest, false)) {
        moved = false;
        pages_move(to, from, bytes, loan->patched);
    }
    if (moved) loan->at = to;
    lock_release(&loans.lock);
    return moved;
}

bool loan_lend(struct loan *loan)
{
    struct window *window = loan->window;
    size_t usable = page_up(loan->total);
    bool pushed;
    if (!context_enter(window->context, &pushed)) return false;
    bool lent = false;
    if (!backing_unmap(window)) goto leave;
    window->usable = usable;
    if (whole_move(loan, loan->aside, window->base)) {
        lent = backing_register(window);
        if (!lent) whole_move(loan, window->base, loan->aside);
    }
    if (lent) {
        if (loan->tied) protect(window->base, usable, PROT_READ);
        window_moved(window, WINDOW_HOST, usable);
        lock_acquire(&loans.lock);
        loan->state = LOAN_LENT;
        lock_release(&loans.lock);
        aside_unmap(loan);
    } else {
        backing_seal(window);
        window->usable = window->bytes;
        backing_map(window);
    }
leave:
    context_leave(pushed);
    return lent;
}

CUresult loan_carry(struct loan *loan)
{
    struct window *window = loan->window;
    struct copy_request request =
        copy_linear(COPY_H2D, window->base, (void *)loan->at, loan->total, CU_STREAM_LEGACY, false);
    bool pushed;
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    if (context_enter(window->context, &pushed)) {
        request.context = window->context;
        if (!hostmem_copy(&request, &result) || result != CUDA_SUCCESS)
            result = shim.real.cuMemcpyHtoD_v2(window->base, (void *)loan->at, loan->total);
        /* The pages go back to the block, and a stream that does not wait for this one may read the buffer next. */
        CUresult waited = shim.real.cuStreamSynchronize(CU_STREAM_LEGACY);
        if (result == CUDA_SUCCESS) result = waited;
        context_leave(pushed);
    }
    loan_untie(loan, true, false);
    loan_forget(loan);
    return result;
}

/* The device memory gets the window's bytes while it is mapped elsewhere. */
static bool copy_out(struct window *window, size_t bytes)
{
    CUdeviceptr elsewhere = 0;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = window->context->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    bool copied = false;
    if (shim.real.cuMemAddressReserve(&elsewhere, window->bytes, WINDOW_UNIT, 0, 0) != CUDA_SUCCESS) return false;
    if (shim.real.cuMemMap(elsewhere, window->bytes, 0, window->memory, 0) == CUDA_SUCCESS) {
        copied = shim.real.cuMemSetAccess(elsewhere, window->bytes, &access, 1) == CUDA_SUCCESS &&
                 shim.real.cuMemcpyHtoD_v2(elsewhere, (void *)window->base, bytes) == CUDA_SUCCESS &&
                 shim.real.cuStreamSynchronize(CU_STREAM_LEGACY) == CUDA_SUCCESS;
        if (shim.real.cuMemUnmap(elsewhere, window->bytes) != CUDA_SUCCESS) copied = false;
    }
    shim.real.cuMemAddressFree(elsewhere, window->bytes);
    return copied;
}

/* The pages leave the window, to the block or for good; the device memory or nothing takes their place. */
static bool leave_window(struct loan *loan, bool map)
{
    struct window *window = loan->window;
    if (!backing_unregister(window)) return false;
    loan_untie(loan, true, false);
    backing_seal(window);
    window_moved(window, map ? WINDOW_DEVICE : WINDOW_BARE, window->bytes);
    bool mapped = !map || backing_map(window);
    loan_forget(loan);
    return mapped;
}

bool loan_return(struct loan *loan)
{
    bool pushed;
    if (!context_enter(loan->window->context, &pushed)) return false;
    bool returned = copy_out(loan->window, loan->total) && leave_window(loan, true);
    context_leave(pushed);
    return returned;
}

bool loan_drop(struct loan *loan, bool map)
{
    bool pushed, dropped = true;
    if (loan->state == LOAN_HELD) {
        loan_untie(loan, true, false);
        loan_forget(loan);
        return true;
    }
    if (!context_enter(loan->window->context, &pushed)) return false;
    dropped = leave_window(loan, map);
    context_leave(pushed);
    return dropped;
}

void loan_refresh(struct loan *loan)
{
    uint32_t first, end;
    size_t bytes = loan->units * LOAN_UNIT, tail = loan->total - bytes;
    bool lent = loan->state == LOAN_LENT, written = loan->touched_count || tail;
    if (lent && written) protect(loan->at, page_up(loan->total), PROT_READ | PROT_WRITE);
    for (uint32_t from = 0; next_run(loan, true, from, &first, &end); from = end)
        memcpy((void *)(loan->at + first * LOAN_UNIT), (void *)(loan->host + first * LOAN_UNIT),
               (end - first) * LOAN_UNIT);
    if (tail) memcpy((void *)(loan->at + bytes), (void *)(loan->host + bytes), tail);
    atomic_thread_fence(memory_order_seq_cst);
    if (lent && written) protect(loan->at, page_up(loan->total), PROT_READ);
}

void loan_abandon(struct loan *loan)
{
    loan_untie(loan, true, false);
    loan_forget(loan);
}
