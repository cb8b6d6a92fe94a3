/* The memory file that device memory lives in, and addresses to show it at. */
#include "memory.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int memory_file = -1;
static unsigned char *chunk_taken[SIM_MAX_DEVICES];
static size_t chunk_hint[SIM_MAX_DEVICES];

static size_t device_chunks(CUdevice device) { return sim.devices[device].memory_bytes / SIM_CHUNK_BYTES; }

/* The devices' memories follow each other in the file. */
static int64_t device_offset(CUdevice device)
{
    int64_t offset = 0;
    for (CUdevice each = 0; each < device; each++) offset += (int64_t)sim.devices[each].memory_bytes;
    return offset;
}

static bool file_open(void)
{
    if (memory_file >= 0) return true;
    memory_file = memfd_create("device-memory", MFD_CLOEXEC);
    return memory_file >= 0 && !ftruncate(memory_file, device_offset(sim.device_count));
}

int64_t physical_take(CUdevice device, size_t bytes)
{
    size_t want = (bytes + SIM_CHUNK_BYTES - 1) / SIM_CHUNK_BYTES, all = device_chunks(device);
    struct sim_device *owner = &sim.devices[device];
    if (!file_open() || want > all || owner->used_bytes + want * SIM_CHUNK_BYTES > owner->memory_bytes) return -1;
    if (!chunk_taken[device]) chunk_taken[device] = calloc(all, 1);
    unsigned char *taken = chunk_taken[device];
    size_t run = 0;
    for (size_t i = chunk_hint[device]; i < all; i++) {
        run = taken[i] ? 0 : run + 1;
        if (run < want) continue;
        size_t first = i + 1 - want;
        memset(taken + first, 1, want);
        if (first == chunk_hint[device]) chunk_hint[device] = i + 1;
        owner->used_bytes += want * SIM_CHUNK_BYTES;
        return device_offset(device) + (int64_t)(first * SIM_CHUNK_BYTES);
    }
    return -1;
}

void physical_give(CUdevice device, int64_t offset, size_t bytes)
{
    size_t count = (bytes + SIM_CHUNK_BYTES - 1) / SIM_CHUNK_BYTES;
    size_t first = (size_t)(offset - device_offset(device)) / SIM_CHUNK_BYTES;
    memset(chunk_taken[device] + first, 0, count);
    if (first < chunk_hint[device]) chunk_hint[device] = first;
    sim.devices[device].used_bytes -= count * SIM_CHUNK_BYTES;
    fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)(count * SIM_CHUNK_BYTES));
}

bool physical_map(char *inside, int64_t offset, size_t bytes)
{
    return mmap(inside, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_file, offset) != MAP_FAILED;
}

void physical_unmap(char *inside, size_t bytes)
{
    mmap(inside, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

char *address_reserve(size_t bytes)
{
    char *start = mmap(NULL, bytes + SIM_CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t skip = -(uintptr_t)start % SIM_CHUNK_BYTES;
    if (skip) munmap(start, skip);
    if (skip < SIM_CHUNK_BYTES) munmap(start + skip + bytes, SIM_CHUNK_BYTES - skip);
    return start + skip;
}
