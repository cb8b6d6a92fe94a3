/* Unpacking of compressed blocks into memory of the caller's; each is true only if exactly `to_bytes` came out. */
#ifndef ZCSHIM_SHIM_UNPACK_H
#define ZCSHIM_SHIM_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* One raw LZ4 block. */
bool unpack_lz4(void *to, size_t to_bytes, const void *from, size_t from_bytes);

/* zstd frames, by libzstd.so.1, which is opened at the first call; false if it is not there. Its work space is mapped
 * here, so that nothing of it passes through malloc. */
bool unpack_zstd(void *to, size_t to_bytes, const void *from, size_t from_bytes);

/* Opens that library now. It takes the loader's lock, which a thread in a constructor holds: who calls unpack_zstd
 * under a lock of its own that code in a constructor may want calls this before. */
void unpack_prepare(void);

#endif
