/* An unrolled loop or an inlined function makes several call sites of one line. People want one. */
#include <string.h>
#include "shim/arena.h"
#include "shim/hash.h"
#include "shim/report_model.h"
#include "shim/sort.h"

struct alike {
    uint64_t key;
    struct report_site *site;
};

/* 0: a frame is unknown, so that equal texts would not mean equal places. Of a site in Python, its frames count. */
static uint64_t site_key(const struct report_site *site)
{
    uint64_t hash = HASH_START;
    enum report_frame_kind kind = report_site_kind(site);
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct report_frame *frame = &site->frames[i];
        if (frame->kind != kind) continue;
        if (!frame->function || !frame->line) return 0;
        hash = hash_text(hash_text(hash, frame->function), frame->file) ^ frame->line;
    }
    hash = hash_text(hash_text(hash, site->via), site->hidden_by);
    return site->frame_count ? hash_text(hash, site->reason) ^ site->on_host : 0;
}

static int alike_order(const void *a, const void *b)
{
    const struct alike *one = a, *other = b;
    if (one->key != other->key) return one->key < other->key ? -1 : 1;
    return one->site < other->site ? -1 : one->site > other->site;
}

static void site_move(struct report_site *to, struct report_site *from)
{
    report_site_add(to, from);
    memset(from->usage, 0, sizeof from->usage);
    memset(from->copies, 0, sizeof from->copies);
    from->moves_to_host = from->moves_to_device = from->saved_ns = from->lost_ns = 0;
}

void report_merge_alike(struct report *report)
{
    struct alike *list = arena_alloc(report->site_count * sizeof *list);
    if (!list) return;
    for (size_t i = 0; i < report->site_count; i++)
        list[i] = (struct alike){site_key(&report->sites[i]), &report->sites[i]};
    sort_items(list, report->site_count, sizeof *list, alike_order);
    for (size_t i = 1; i < report->site_count; i++) {
        if (!list[i].key || list[i].key != list[i - 1].key) continue;
        site_move(list[i - 1].site, list[i].site);
        list[i].site = list[i - 1].site;
    }
    arena_free(list, report->site_count * sizeof *list);
}
