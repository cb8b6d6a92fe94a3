/* The reserved range of addresses, in units of 2 MiB: free runs, and which block a unit belongs to. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "shim/hostmem_internal.h"
#include "shim/report.h"

#define RANGE_LARGEST ((size_t)1 << 40)
#define RANGE_LEAST   ((size_t)1 << 34)
#define RANGE_BINS    32

/* A free run has its length at its first and last unit; its links are at the first. Units from `next` on were never
 * used. */
struct run {
    uint32_t length;
    uint32_t newer, older; /* unit + 1; 0: none */
};

static struct {
    size_t units;
    size_t next;
    struct run *runs;
    struct block **owners;
    uint32_t bins[RANGE_BINS]; /* by the binary logarithm of the length: unit + 1 */
} range;

static void *map_table(size_t bytes)
{
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return table == MAP_FAILED ? NULL : table;
}

static uintptr_t reserve(size_t *bytes)
{
    for (size_t size = RANGE_LARGEST; size >= RANGE_LEAST; size /= 4) {
        char *at = mmap(NULL, size + HOST_UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) continue;
        uintptr_t start = ((uintptr_t)at + HOST_UNIT - 1) & ~(uintptr_t)(HOST_UNIT - 1);
        system_madvise(at, size + HOST_UNIT,
                       MADV_DONTDUMP); /* a core file has no use for the unused part; blocks are mapped afresh */
        *bytes = size;
        return start;
    }
    return 0;
}

bool range_ready(void)
{
    if (atomic_load_explicit(&hostmem.base, memory_order_relaxed)) return true;
    if (hostmem.range_failed) return false;
    struct rlimit limit;
    size_t bytes = 0;
    hostmem.page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t base = 0;
    /* Under ulimit -v reserved addresses would be taken from what the program may have. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) base = reserve(&bytes);
    if (base) {
        range.units = bytes / HOST_UNIT;
        range.runs = map_table(range.units * sizeof *range.runs);
        range.owners = map_table(range.units * sizeof *range.owners);
    }
    if (!base || !range.runs || !range.owners) {
        hostmem.range_failed = true;
        report_note("large host blocks: no address range (address space limited); blocks stay with libc");
        return false;
    }
    atomic_store_explicit(&hostmem.base, base, memory_order_relaxed);
    atomic_store_explicit(&hostmem.bytes, bytes, memory_order_release);
    return true;
}

static size_t unit_of(uintptr_t address)
{
    return (address - atomic_load_explicit(&hostmem.base, memory_order_relaxed)) / HOST_UNIT;
}
static uintptr_t address_of(size_t unit)
{
    return atomic_load_explicit(&hostmem.base, memory_order_relaxed) + unit * HOST_UNIT;
}
static unsigned bin_of(uint32_t length) { return 31 - (unsigned)__builtin_clz(length); }

static void run_insert(size_t unit, uint32_t length)
{
    unsigned bin = bin_of(length);
    struct run *run = &range.runs[unit];
    run->length = range.runs[unit + length - 1].length = length;
    run->newer = 0;
    run->older = range.bins[bin];
    if (run->older) range.runs[run->older - 1].newer = (uint32_t)unit + 1;
    range.bins[bin] = (uint32_t)unit + 1;
}

static void run_remove(size_t unit)
{
    struct run *run = &range.runs[unit];
    uint32_t length = run->length;
    if (run->newer)
        range.runs[run->newer - 1].older = run->older;
    else
        range.bins[bin_of(length)] = run->older;
    if (run->older) range.runs[run->older - 1].newer = run->newer;
    range.runs[unit + length - 1].length = 0;
    run->length = 0;
}

/* Any run of a larger bin fits; in the bin of the length itself the first few are looked at. */
static size_t run_find(uint32_t length)
{
    unsigned bin = bin_of(length);
    uint32_t at = range.bins[bin];
    for (int looked = 0; at && looked < 16; looked++, at = range.runs[at - 1].older)
        if (range.runs[at - 1].length >= length) return at;
    while (++bin < RANGE_BINS)
        if (range.bins[bin]) return range.bins[bin];
    return 0;
}

static void give_units(size_t unit, size_t count)
{
    if (unit > 0 && range.runs[unit - 1].length) {
        size_t left = unit - range.runs[unit - 1].length;
        count += unit - left;
        unit = left;
        run_remove(left);
    }
    if (unit + count < range.next && range.runs[unit + count].length) {
        size_t right = unit + count;
        count += range.runs[right].length;
        run_remove(right);
    }
    if (unit + count == range.next)
        range.next = unit;
    else
        run_insert(unit, (uint32_t)count);
}

static size_t take_units(size_t count)
{
    size_t found = run_find((uint32_t)count);
    if (found) {
        size_t unit = found - 1;
        uint32_t length = range.runs[unit].length;
        run_remove(unit);
        if (length > count) run_insert(unit + count, length - (uint32_t)count);
        return found;
    }
    if (count > range.units - range.next) return 0;
    size_t unit = range.next;
    range.next += count;
    return unit + 1;
}

uintptr_t range_take(size_t units, size_t alignment)
{
    size_t extra = alignment > HOST_UNIT ? alignment / HOST_UNIT - 1 : 0;
    if (!units || units > range.units || extra > range.units) return 0;
    size_t taken = take_units(units + extra);
    if (!taken) return 0;
    size_t unit = taken - 1;
    if (extra) {
        uintptr_t aligned = (address_of(unit) + alignment - 1) & ~(uintptr_t)(alignment - 1);
        size_t first = unit_of(aligned);
        if (unit + extra > first) give_units(first + units, unit + extra - first);
        if (first > unit) give_units(unit, first - unit);
        unit = first;
    }
    return address_of(unit);
}

bool range_take_at(uintptr_t address, size_t units)
{
    size_t unit = unit_of(address);
    if (unit == range.next) {
        if (units > range.units - range.next) return false;
        range.next += units;
        return true;
    }
    uint32_t length = unit < range.next ? range.runs[unit].length : 0;
    /* A length is also at a run's last unit; only a first one is reached here, since what precedes it is in use. */
    if (length < units) return false;
    run_remove(unit);
    if (length > units) run_insert(unit + units, length - (uint32_t)units);
    return true;
}

void range_give(uintptr_t address, size_t units) { give_units(unit_of(address), units); }

struct block *range_block(uintptr_t address)
{
    uintptr_t base = atomic_load_explicit(&hostmem.base, memory_order_relaxed);
    return base && address - base < atomic_load_explicit(&hostmem.bytes, memory_order_relaxed)
               ? range.owners[unit_of(address)]
               : NULL;
}

void range_set_block(uintptr_t address, size_t units, struct block *block)
{
    for (size_t unit = unit_of(address), end = unit + units; unit < end; unit++) range.owners[unit] = block;
}

void blocks_for_each(void (*visit)(struct block *block, void *argument), void *argument)
{
    for (size_t unit = 0; unit < range.next;) {
        struct block *block = range.owners[unit];
        unit += block ? block->units : range.runs[unit].length ? range.runs[unit].length : 1;
        if (block) visit(block, argument);
    }
}

bool range_map(uintptr_t address, size_t bytes)
{
    return system_map((void *)address, bytes, PROT_READ | PROT_WRITE, 0);
}

bool range_unmap(uintptr_t address, size_t bytes)
{
    return system_map((void *)address, bytes, PROT_NONE, MAP_NORESERVE);
}
