/* What the source could do about copies that the driver makes. */
#include "shim/report_model.h"

enum {
    SMALL_MAX_BYTES = 64 << 10,
    PINNED_NS = 8000, /* a large copy with a pinned partner, as facts measured on an H200 have it */
    PINNED_BYTES_PER_US = 50000
};

static bool are_small(uint64_t bytes, uint64_t count) { return bytes / count <= SMALL_MAX_BYTES; }

/* The measured time also holds the wait for the kernel before, which nothing saves: at most what such copies take on an
 * idle GPU counts. */
static uint64_t savable(const struct report_copies *copies, enum cost_direction direction, const struct cost *cost,
                        bool small)
{
    if (!copies->count) return 0;
    uint64_t typical = copies->bytes / copies->count;
    double count = (double)copies->count, spent = (double)copies->ns;
    double idle = count * cost_native_ns(cost, direction, typical);
    double left = count * (small ? cost_elided_ns(cost, direction, typical)
                                 : PINNED_NS + (double)typical * 1000 / PINNED_BYTES_PER_US);
    if (idle > spent) idle = spent;
    return idle > left ? (uint64_t)(idle - left) : 0;
}

uint64_t report_savable_ns(const struct report_site *site, const struct cost *cost)
{
    const struct report_copies *h2d = &site->copies[COPIES_NATIVE_H2D], *d2h = &site->copies[COPIES_NATIVE_D2H];
    uint64_t count = h2d->count + d2h->count;
    if (!count) return 0;
    bool small = are_small(h2d->bytes + d2h->bytes, count);
    return savable(h2d, COST_H2D, cost, small) + savable(d2h, COST_D2H, cost, small);
}

void report_advise(const struct report_site *site, struct report_advice *advice)
{
    const struct report_copies *h2d = &site->copies[COPIES_NATIVE_H2D], *d2h = &site->copies[COPIES_NATIVE_D2H];
    *advice = (struct report_advice){.copies = h2d->count + d2h->count,
                                     .bytes = h2d->bytes + d2h->bytes,
                                     .spent_ns = h2d->ns + d2h->ns,
                                     .saved_ns = site->savable_ns};
    if (advice->copies && advice->saved_ns)
        advice->kind = are_small(advice->bytes, advice->copies) ? ADVICE_MAPPED : ADVICE_PINNED;
}
