#include <stdlib.h>
void *plugin_take(size_t bytes) { return malloc(bytes); }
void *plugin_resize(void *block, size_t bytes) { return realloc(block, bytes); }
