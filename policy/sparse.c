#include "sparse.h"

void earn_sparse_copy(struct earn_sparse *sparse, const struct cost *cost, uint64_t buffer_bytes, uint64_t small_bytes,
                      const struct earn_copy *copy)
{
    if (buffer_bytes > sparse->bytes) sparse->bytes = buffer_bytes;
    if (!copy->waited) return;
    sparse->evidence_ns += cost_saved_ns(cost, copy->direction, copy->bytes);
    if (copy->bytes > small_bytes || copy->bytes > buffer_bytes / 16) {
        sparse->large++;
        sparse->last_ns = 0;
        return;
    }
    sparse->small++;
    if (sparse->last_ns) periods_add(&sparse->periods, (double)(copy->now_ns - sparse->last_ns), 1, 0);
    sparse->last_ns = copy->now_ns;
}

bool earn_sparse_deserves(const struct earn_sparse *sparse, const struct earn_run *run, enum cost_class kernels,
                          uint64_t now_ns)
{
    double making = cost_move_ns(run->cost, true, sparse->bytes);
    if (sparse->small < 16 || sparse->evidence_ns < making / 2) return false;
    double worst = (cost_worst_factor(run->cost, sparse->bytes, kernels) - 1) * periods_usual(&sparse->periods);
    return making + worst <= earn_budget_ns(run, now_ns);
}

struct earn_past earn_sparse_past(const struct earn_sparse *sparse)
{
    return (struct earn_past){EARN_HOST, 0, periods_usual(&sparse->periods), 0, sparse->evidence_ns};
}
