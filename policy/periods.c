#include "periods.h"

static unsigned kept(const struct periods *periods)
{
    return periods->count < PERIODS_KEPT ? periods->count : PERIODS_KEPT;
}

double periods_usual(const struct periods *periods)
{
    float sorted[PERIODS_KEPT];
    unsigned count = kept(periods), dropped = count / 8;
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        for (; at && sorted[at - 1] > periods->ns[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = periods->ns[i];
    }
    for (unsigned i = 0; i < count - dropped; i++) sum += (double)sorted[i];
    return count ? sum / (count - dropped) : 0;
}

double periods_clipped_mean(const struct periods *periods, double most_ns)
{
    unsigned count = kept(periods);
    double sum = 0;
    for (unsigned i = 0; i < count; i++) sum += (double)periods->ns[i] < most_ns ? (double)periods->ns[i] : most_ns;
    return count ? sum / count : 0;
}

double periods_second_longest(const struct periods *periods)
{
    float first = 0, second = 0;
    for (unsigned i = 0; i < kept(periods); i++) {
        if (periods->ns[i] > first) {
            second = first;
            first = periods->ns[i];
        } else if (periods->ns[i] > second) {
            second = periods->ns[i];
        }
    }
    return (double)second;
}
