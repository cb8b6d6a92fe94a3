#include "shim/report_words.h"

#include "shim/log.h"

const char *bytes_text(char text[NUMBER_MAX], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = -1;
    while (value >= 1024 && unit < 4) value /= 1024, unit++;
    if (unit < 0)
        text_format(text, NUMBER_MAX, "%lu bytes", (unsigned long)bytes);
    else
        text_format(text, NUMBER_MAX, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

const char *time_text(char text[NUMBER_MAX], uint64_t ns)
{
    double value = (double)ns;
    const char *unit = ns < 1000 ? "ns" : ns < 1000000 ? "us" : ns < 1000000000 ? "ms" : "s";
    value /= ns < 1000 ? 1 : ns < 1000000 ? 1e3 : ns < 1000000000 ? 1e6 : 1e9;
    text_format(text, NUMBER_MAX,
                ns < 1000 || value >= 100 ? "%.0f %s"
                : value < 10              ? "%.2f %s"
                                          : "%.1f %s",
                value, unit);
    return text;
}

const char *times_text(char text[NUMBER_MAX], uint64_t count)
{
    text_format(text, NUMBER_MAX, count == 1 ? "once" : "%lu times", (unsigned long)count);
    return text;
}

const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }
