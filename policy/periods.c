#include "periods.h"

static unsigned kept(const struct periods *periods)
{
    return periods->count < PERIODS_KEPT ? periods->count : PERIODS_KEPT;
}

/* Copies `count` periods from the one numbered `first` on, ascending. */
static void sort(const struct periods *periods, unsigned first, unsigned count, float sorted[PERIODS_KEPT])
{
    for (unsigned i = 0; i < count; i++) {
        float ns = periods->ns[(first + i) % PERIODS_KEPT];
        unsigned at = i;
        for (; at && sorted[at - 1] > ns; at--) sorted[at] = sorted[at - 1];
        sorted[at] = ns;
    }
}

/* Mean of those, without the longest eighth. */
static double usual_of(const struct periods *periods, unsigned first, unsigned count)
{
    float sorted[PERIODS_KEPT];
    unsigned used = count - count / 8;
    double sum = 0;
    sort(periods, first, count, sorted);
    for (unsigned i = 0; i < used; i++) sum += (double)sorted[i];
    return count ? sum / used : 0;
}

static double mean_of(const struct periods *periods, const float *values, double none)
{
    unsigned count = kept(periods);
    double sum = 0;
    for (unsigned i = 0; i < count; i++) sum += (double)values[i];
    return count ? sum / count : none;
}

double periods_mean_copies(const struct periods *periods) { return mean_of(periods, periods->copies, 1); }

double periods_mean_native_ns(const struct periods *periods) { return mean_of(periods, periods->native_ns, 0); }

static double square_root(double value)
{
    double root = value > 1 ? value : 1;
    for (int i = 0; i < 60 && root * root > value * 1.000001; i++) root = (root + value / root) / 2;
    return value > 0 ? root : 0;
}

double periods_spread(const struct periods *periods)
{
    float sorted[PERIODS_KEPT];
    unsigned count = kept(periods), used = count - count / 8;
    double sum = 0, mean = periods_usual(periods);
    sort(periods, 0, count, sorted);
    for (unsigned i = 0; i < used; i++) sum += ((double)sorted[i] - mean) * ((double)sorted[i] - mean);
    return used > 1 ? square_root(sum / (used - 1)) : 0;
}

double periods_median(const struct periods *periods)
{
    float sorted[PERIODS_KEPT];
    unsigned count = kept(periods);
    sort(periods, 0, count, sorted);
    return count ? (double)sorted[count / 2] : 0;
}

double periods_usual(const struct periods *periods) { return usual_of(periods, 0, kept(periods)); }

bool periods_steady(const struct periods *periods, double share)
{
    unsigned count = kept(periods), half = count / 2, first = periods->count - count;
    double older = usual_of(periods, first, half), newer = usual_of(periods, first + half, count - half);
    return older <= newer * (1 + share) && newer <= older * (1 + share);
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
