#include "shim/unpack.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* A length whose four bits are full continues in bytes until one is not 255. */
static bool length_read(const unsigned char **from, const unsigned char *end, size_t *length)
{
    if (*length != 15) return true;
    for (unsigned char more = 255; more == 255; *length += more) {
        if (*from == end) return false;
        more = *(*from)++;
    }
    return true;
}

bool unpack_lz4(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
    const unsigned char *in = from, *in_end = in + from_bytes;
    unsigned char *out = to, *out_end = out + to_bytes;
    while (in < in_end) {
        unsigned token = *in++;
        size_t literals = token >> 4, match = token & 15;
        if (!length_read(&in, in_end, &literals)) return false;
        if (literals > (size_t)(in_end - in) || literals > (size_t)(out_end - out)) return false;
        memcpy(out, in, literals);
        in += literals;
        out += literals;
        if (in == in_end) break;
        if (in_end - in < 2) return false;
        size_t distance = in[0] | (size_t)in[1] << 8;
        in += 2;
        if (!length_read(&in, in_end, &match)) return false;
        match += 4;
        if (!distance || distance > (size_t)(out - (unsigned char *)to) || match > (size_t)(out_end - out))
            return false;
        /* Byte by byte: source and target may overlap on purpose. */
        for (; match; match--, out++) *out = out[-(ptrdiff_t)distance];
    }
    return out == out_end;
}

static struct {
    _Atomic int state; /* 0 not asked, 1 under way, 2 there, 3 not there */
    size_t (*context_bytes)(void);
    void *(*context_make)(void *workspace, size_t bytes);
    size_t (*unpack)(void *context, void *to, size_t to_bytes, const void *from, size_t from_bytes);
} zstd;

/* The library stays open: it may be in use by the program as well, and closing it gains nothing. */
void unpack_prepare(void)
{
    int none = 0;
    if (zstd.state || !atomic_compare_exchange_strong(&zstd.state, &none, 1)) return;
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        zstd.context_bytes = (size_t(*)(void))dlsym(library, "ZSTD_estimateDCtxSize");
        zstd.context_make = (void *(*)(void *, size_t))dlsym(library, "ZSTD_initStaticDCtx");
        zstd.unpack = (size_t(*)(void *, void *, size_t, const void *, size_t))dlsym(library, "ZSTD_decompressDCtx");
    }
    bool there = zstd.context_bytes && zstd.context_make && zstd.unpack;
    atomic_store_explicit(&zstd.state, there ? 2 : 3, memory_order_release);
}

bool unpack_zstd(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
    unpack_prepare();
    if (atomic_load_explicit(&zstd.state, memory_order_acquire) != 2) return false;
    size_t bytes = zstd.context_bytes();
    void *workspace = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (workspace == MAP_FAILED) return false;
    void *context = zstd.context_make(workspace, bytes);
    bool good = context && zstd.unpack(context, to, to_bytes, from, from_bytes) == to_bytes;
    munmap(workspace, bytes);
    return good;
}
