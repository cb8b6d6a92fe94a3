/* An unrolled loop or an inlined function makes several call sites of one line. People want one. */
#include "shim/arena.h"
#include "shim/report_model.h"
#include "shim/sort.h"

struct alike {
    uint64_t key;
    struct report_site *site;
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

/* 0: a frame is unknown, so that equal texts would not mean equal places. */
static uint64_t site_key(const struct report_site *site)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct report_frame *frame = &site->frames[i];
        if (frame->kind != FRAME_PROGRAM) continue;
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
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        struct report_usage *sum = &to->usage[kind], *part = &from->usage[kind];
        sum->live_bytes += part->live_bytes;
        sum->live_count += part->live_count;
        sum->peak_bytes += part->peak_bytes;
        sum->total_count += part->total_count;
        sum->total_bytes += part->total_bytes;
        *part = (struct report_usage){0};
    }
    for (unsigned way = 0; way < REPORT_COPIES; way++) {
        to->copies[way].count += from->copies[way].count;
        to->copies[way].bytes += from->copies[way].bytes;
        to->copies[way].ns += from->copies[way].ns;
        from->copies[way] = (struct report_copies){0};
    }
    to->moves_to_host += from->moves_to_host;
    to->moves_to_device += from->moves_to_device;
    to->saved_ns += from->saved_ns;
    to->lost_ns += from->lost_ns;
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
