/* Large device buffers that are updated in small pieces: does their site deserve windows of its own, on the host from
 * the start?
 *
 * One struct a site, for buffers larger than MAX_SIZE that live in the driver's memory; used by one thread at a time.
 */
#ifndef POLICY_SPARSE_H
#define POLICY_SPARSE_H

#include "earn.h"

struct earn_sparse {
    struct periods periods; /* between small copies */
    uint64_t last_ns;
    uint64_t bytes;        /* of the largest buffer copied */
    uint64_t small, large; /* copies */
    double evidence_ns;    /* what all of them would have saved: large ones count against it */
};

/* One copy from or to a buffer of `buffer_bytes`; small means at most `small_bytes` (options.max_size) and a sixteenth
 * of the buffer. */
void earn_sparse_copy(struct earn_sparse *sparse, const struct cost *cost, uint64_t buffer_bytes, uint64_t small_bytes,
                      const struct earn_copy *copy);

/* Whether the site's next buffer should be a window of its own: at least 16 small copies, which would have paid for
 * half of its making, and its worst period fits in the budget. The window then starts by earn_begin with
 * earn_sparse_past. */
bool earn_sparse_deserves(const struct earn_sparse *sparse, const struct earn_run *run, enum cost_class kernels,
                          uint64_t now_ns);
struct earn_past earn_sparse_past(const struct earn_sparse *sparse);

#endif
