/* A plug-in opened with RTLD_DEEPBIND allocates from its own scope; blocks cross over and are freed on the other side.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *plugin = dlopen(argc > 1 ? argv[1] : "scopes_plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 1;
    void *(*take)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_take");
    void *(*resize)(void *, size_t) = (void *(*)(void *, size_t))dlsym(plugin, "plugin_resize");
    for (int i = 0; i < 50; i++) {
        size_t bytes = i % 2 ? 100 : 6 << 20;
        char *theirs = take(bytes);
        memset(theirs, 5, bytes);
        theirs = realloc(theirs, bytes * 2);
        if (theirs[bytes - 1] != 5) return 2;
        free(theirs);
        if (i % 2) { /* a large block of ours may only be freed where ours is known */
            char *ours = malloc(bytes);
            memset(ours, 6, bytes);
            ours = resize(ours, bytes * 3);
            if (ours[bytes - 1] != 6) return 3;
            free(ours);
        }
    }
    return 0;
}
