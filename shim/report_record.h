/* What report_note and report_misuse have kept, for the report. */
#ifndef SHIM_REPORT_RECORD_H
#define SHIM_REPORT_RECORD_H
#include "shim/report.h"

struct note_record {
    struct note_record *next; /* in order of first appearance */
    _Atomic uint64_t count;
    char text[];
};

struct misuse_record {
    struct misuse_record *next; /* in order of first appearance */
    enum misuse kind;
    struct site *allocated, *freed; /* NULL: unknown */
    uintptr_t address;              /* of the first */
    _Atomic uint64_t count;
};

/* Records are added at the end and never removed, so a walk needs no lock. */
struct note_record *report_notes(uint64_t *left_out);
struct misuse_record *report_misuses(uint64_t *left_out);
#endif
