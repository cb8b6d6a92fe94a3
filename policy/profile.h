/* Profiles: where each site's buffers ended in earlier runs, so that the next one starts there.
 *
 * Text, one line a site, sorted by key, so that it can be compared and kept under version control:
 *     zcshim-profile 1
 *     KEY place=host failures=0 device_ns=24900 host_ns=13500 evidence_ns=800000 bytes=4096 runs=3 age=0 marks=-
 * reason=words to the line's end end 1 KEY names the site by module and offset, not by address. The last line counts
 * the sites: a file without it is torn and ignored. Nothing here reads files or allocates: the caller provides entries
 * and text buffers and writes the file (a temporary one, then renamed, so that the last complete write wins). */
#ifndef POLICY_PROFILE_H
#define POLICY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "earn.h"

#define PROFILE_AGE_MOST 16 /* runs in a row without the site: then it is left out */

enum profile_mark {
    PROFILE_IPC = 1,    /* exported to other processes: its buffers stay with the driver */
    PROFILE_SPARSE = 2, /* large, copied in small pieces: a window of its own */
    PROFILE_FIXED = 4   /* a graph or texture kept it where it was */
};

/* Strings point into the parsed text, or are the caller's. */
struct profile_entry {
    const char *key;
    size_t key_length;
    struct earn_past past;
    uint64_t bytes; /* of the largest buffer */
    uint32_t runs;  /* that used the site */
    uint32_t age;   /* runs in a row that did not */
    uint32_t marks; /* enum profile_mark, or-ed */
    const char *reason;
    size_t reason_length;
};

struct profile {
    struct profile_entry *entries; /* sorted by key */
    size_t count, capacity;
};

struct profile_frame {
    const char *module; /* build-id in hex, or the module's name */
    uint64_t offset;
};

/* Writes a site's key, MODULE+OFFSET parted by commas, innermost first; blanks in names become underscores. Returns the
 * length as snprintf does. */
size_t profile_key(char *buf, size_t capacity, const struct profile_frame *frames, size_t count);

/* An empty profile on the caller's entries. */
struct profile profile_on(struct profile_entry *entries, size_t capacity);

/* Does the text begin as profiles of any version do? */
bool profile_is(const char *text);

/* Reads a file's text, which must live as long as the entries. False leaves the profile empty and writes one line to
 * `error`: another version, a torn file, a broken line (with its number), or more sites than there is room for. */
bool profile_parse(struct profile *profile, const char *text, size_t length, char *error, size_t error_capacity);

/* Null if the site is not in it. */
const struct profile_entry *profile_find(const struct profile *profile, const char *key, size_t key_length);

/* Before the sites of this run are merged: everyone is a run older, and those that no run used for long are dropped. */
void profile_grow_old(struct profile *profile);

/* One site of this run. Marks add up. `decided`: this run learned where it belongs (a trial, a stay on the host, a
 * rule); else what earlier runs decided is kept. False when there is no room for a new site. */
bool profile_merge(struct profile *profile, const struct profile_entry *entry, bool decided);

/* Writes the file's text; returns its length, as snprintf does. About 200 bytes a site and the key's length. */
size_t profile_format(char *buf, size_t capacity, const struct profile *profile);

#endif
