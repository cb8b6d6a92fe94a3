/* Many ranks, one report. */
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/load.h"

static bool same_text(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static struct report_site *site_like(struct report *report, const struct report_site *site)
{
    for (size_t i = 0; i < report->site_count; i++)
        if (report->sites[i].hash == site->hash && same_text(report->sites[i].via, site->via)) return &report->sites[i];
    return NULL;
}

static void site_add(struct report_site *to, const struct report_site *from)
{
    report_site_add(to, from);
    to->on_host |= from->on_host;
    if (!to->reason) to->reason = from->reason;
}

/* `ids` gives the new id of each of the other report's sites. */
static void merge_sites(struct report *into, const struct report *other, uint32_t *ids)
{
    uint32_t next = into->site_count ? into->sites[into->site_count - 1].id + 1 : 1;
    into->sites = realloc(into->sites, (into->site_count + other->site_count + 1) * sizeof *into->sites);
    if (!into->sites) exit(trouble("out of memory"));
    for (size_t i = 0; i < other->site_count; i++) {
        struct report_site *known = site_like(into, &other->sites[i]);
        if (known) {
            site_add(known, &other->sites[i]);
        } else {
            known = &into->sites[into->site_count++];
            *known = other->sites[i];
            known->id = next++;
        }
        ids[i] = known->id;
    }
}

static uint32_t new_id(const struct report *other, const uint32_t *ids, uint32_t id)
{
    const struct report_site *site = report_site_of(other, id);
    return site ? ids[site - other->sites] : 0;
}

static void merge_misuses(struct report *into, const struct report *other, const uint32_t *ids)
{
    into->misuses = realloc(into->misuses, (into->misuse_count + other->misuse_count + 1) * sizeof *into->misuses);
    if (!into->misuses) exit(trouble("out of memory"));
    for (size_t i = 0; i < other->misuse_count; i++) {
        struct report_misuse_entry misuse = other->misuses[i];
        size_t at = 0;
        misuse.allocated = new_id(other, ids, misuse.allocated);
        misuse.freed = new_id(other, ids, misuse.freed);
        while (at < into->misuse_count &&
               (into->misuses[at].kind != misuse.kind || into->misuses[at].allocated != misuse.allocated ||
                into->misuses[at].freed != misuse.freed))
            at++;
        if (at < into->misuse_count)
            into->misuses[at].count += misuse.count;
        else
            into->misuses[into->misuse_count++] = misuse;
    }
    into->misuses_left_out += other->misuses_left_out;
}

static void merge_notes(struct report *into, const struct report *other)
{
    into->notes = realloc(into->notes, (into->note_count + other->note_count + 1) * sizeof *into->notes);
    if (!into->notes) exit(trouble("out of memory"));
    for (size_t i = 0; i < other->note_count; i++) {
        size_t at = 0;
        while (at < into->note_count && strcmp(into->notes[at].text, other->notes[i].text) != 0) at++;
        if (at < into->note_count)
            into->notes[at].count += other->notes[i].count;
        else
            into->notes[into->note_count++] = other->notes[i];
    }
    into->notes_left_out += other->notes_left_out;
}

void report_merge(struct report *into, const struct report *other)
{
    uint32_t *ids = must_alloc(other->site_count * sizeof *ids);
    merge_sites(into, other, ids);
    merge_misuses(into, other, ids);
    merge_notes(into, other);
    free(ids);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) usage_add(&into->totals[kind], &other->totals[kind]);
    for (unsigned i = 0; i < REPORT_STATISTICS; i++) into->statistics[i] += other->statistics[i];
    if (!same_text(into->host, other->host)) into->host = "";
    if (!same_text(into->mode, other->mode)) into->mode = "mixed";
    if (strcmp(into->cuda, "seen") != 0) into->cuda = other->cuda;
    if (other->started_s < into->started_s) into->started_s = other->started_s;
    if (other->duration_ns > into->duration_ns) into->duration_ns = other->duration_ns;
    into->processes += other->processes;
    into->pid = 0;
    into->rank = NULL;
    into->sample_count = into->move_count = 0; /* clocks of different processes do not fit together */
}
