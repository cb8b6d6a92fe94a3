#include "shim/report_record.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/lock.h"
#include "shim/log.h"

enum { NOTES_MOST = 128, MISUSES_MOST = 256 };

static struct {
    struct lock lock;
    struct note_record *notes;
    struct misuse_record *misuses;
    uint64_t notes_kept, notes_left_out, misuses_kept, misuses_left_out;
} records = {.lock = LOCK_INITIALIZER};

void report_note(const char *format, ...)
{
    char text[LOG_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    size_t length = text_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= sizeof text) length = sizeof text - 1;

    lock_acquire(&records.lock);
    struct note_record **end = &records.notes;
    while (*end && strcmp((*end)->text, text) != 0) end = &(*end)->next;
    struct note_record *note = *end;
    if (note) {
        note->count++;
    } else if (records.notes_kept == NOTES_MOST || !(note = arena_alloc(sizeof *note + length + 1))) {
        records.notes_left_out++;
    } else {
        note->next = NULL;
        note->count = 1;
        memcpy(note->text, text, length + 1);
        atomic_thread_fence(memory_order_release);
        *end = note;
        records.notes_kept++;
    }
    lock_release(&records.lock);
}

void report_misuse(enum misuse kind, const void *address, struct site *allocated, struct site *freed)
{
    if (kind == MISUSE_DOUBLE_FREE && !allocated) buffer_freed_site((uintptr_t)address, &allocated);
    lock_acquire(&records.lock);
    struct misuse_record **end = &records.misuses;
    while (*end && ((*end)->kind != kind || (*end)->allocated != allocated || (*end)->freed != freed))
        end = &(*end)->next;
    struct misuse_record *misuse = *end;
    if (misuse) {
        misuse->count++;
    } else if (records.misuses_kept == MISUSES_MOST || !(misuse = arena_alloc(sizeof *misuse))) {
        records.misuses_left_out++;
    } else {
        *misuse = (struct misuse_record){NULL, kind, allocated, freed, (uintptr_t)address, 1};
        atomic_thread_fence(memory_order_release);
        *end = misuse;
        records.misuses_kept++;
    }
    lock_release(&records.lock);
}

struct note_record *report_notes(uint64_t *left_out)
{
    *left_out = records.notes_left_out;
    return records.notes;
}

struct misuse_record *report_misuses(uint64_t *left_out)
{
    *left_out = records.misuses_left_out;
    return records.misuses;
}
