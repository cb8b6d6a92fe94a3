/* Opened with RTLD_DEEPBIND: its malloc and free are libc's own, whatever is preloaded. */
#include <stdlib.h>
#include <string.h>

void *plugin_allocate(size_t bytes);
void *plugin_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    memset(memory, 8, bytes);
    return memory;
}

void plugin_release(void *memory);
void plugin_release(void *memory) { free(memory); }
