/* Hashes of this library's tables; what is made of texts and file offsets is the same in every run. */
#ifndef SHIM_HASH_H
#define SHIM_HASH_H
#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

/* FNV-1a. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* A text and its end; NULL is an empty one. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++) hash = hash_bytes(hash, text, 1);
    return (hash ^ 0xff) * 0x100000001b3u;
}

/* A word. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 32;
}
#endif
