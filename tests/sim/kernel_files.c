/* Finds kernels: in the files named by ZCSIM_KERNELS (colon-separated), else in kernels/ beside this library, the file
 * named like the program first. */
#include "kernel.h"
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

struct kernel_file {
    char path[512];
    void *handle;
    const struct zcsim_kernel *kernels;
    void (*bind)(struct zcsim_thread *);
    size_t likeness; /* how much of the program's name its name is */
    bool tried;
};
static struct kernel_file *files;
static size_t file_count;
static pthread_mutex_t files_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool files_listed;

static void file_add(const char *path, size_t bytes, size_t likeness)
{
    files = realloc(files, (file_count + 1) * sizeof *files);
    struct kernel_file *file = &files[file_count++];
    memset(file, 0, sizeof *file);
    snprintf(file->path, sizeof file->path, "%.*s", (int)bytes, path);
    file->likeness = likeness;
}

static int file_order(const void *left, const void *right)
{
    const struct kernel_file *a = left, *b = right;
    if (a->likeness != b->likeness) return a->likeness < b->likeness ? 1 : -1;
    return strcmp(a->path, b->path);
}

static const char *program_name(void)
{
    static char path[512];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    path[bytes > 0 ? bytes : 0] = 0;
    char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void folder_list(void)
{
    Dl_info self;
    char folder[480];
    if (!dladdr((void *)folder_list, &self) || !strrchr(self.dli_fname, '/')) return;
    snprintf(folder, sizeof folder, "%.*s/kernels", (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
             self.dli_fname);
    DIR *directory = opendir(folder);
    if (!directory) return;
    const char *program = program_name();
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t bytes = strlen(entry->d_name);
        if (bytes < 4 || strcmp(entry->d_name + bytes - 3, ".so")) continue;
        char path[sizeof folder + sizeof entry->d_name + 1];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        file_add(path, strlen(path), strncmp(program, entry->d_name, bytes - 3) ? 0 : bytes - 3);
    }
    closedir(directory);
    qsort(files, file_count, sizeof *files, file_order);
}

static void files_list(void)
{
    if (files_listed) return;
    files_listed = true;
    const char *named = getenv("ZCSIM_KERNELS");
    if (!named || !*named) {
        folder_list();
        return;
    }
    while (*named) {
        size_t bytes = strcspn(named, ":");
        if (bytes) file_add(named, bytes, 0);
        named += bytes + (named[bytes] == ':');
    }
}

static bool file_open(struct kernel_file *file)
{
    if (file->tried) return file->kernels != NULL;
    file->tried = true;
    file->handle = dlopen(file->path, RTLD_NOW | RTLD_LOCAL);
    if (!file->handle) {
        fprintf(stderr, "kernel file: %s\n", dlerror());
        return false;
    }
    file->kernels = dlsym(file->handle, "zcsim_kernels");
    file->bind = (void (*)(struct zcsim_thread *))dlsym(file->handle, "zcsim_bind");
    return file->kernels && file->bind;
}

const struct zcsim_kernel *kernel_find(const char *name, void (**bind)(struct zcsim_thread *))
{
    const struct zcsim_kernel *found = NULL;
    pthread_mutex_lock(&files_mutex);
    files_list();
    for (size_t i = 0; i < file_count && !found; i++)
        if (file_open(&files[i]))
            for (const struct zcsim_kernel *each = files[i].kernels; each->name && !found; each++)
                if (!strcmp(each->name, name)) {
                    found = each;
                    *bind = files[i].bind;
                }
    pthread_mutex_unlock(&files_mutex);
    return found;
}

char *kernel_variable_find(const char *name, size_t *bytes)
{
    char *found = NULL;
    pthread_mutex_lock(&files_mutex);
    files_list();
    for (size_t i = 0; i < file_count && !found; i++) {
        Dl_info information;
        ElfW(Sym) *symbol = NULL;
        if (!file_open(&files[i])) continue;
        char *at = dlsym(files[i].handle, name);
        if (at && dladdr1(at, &information, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
            ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && information.dli_saddr == at) {
            found = at;
            *bytes = symbol->st_size;
        }
    }
    pthread_mutex_unlock(&files_mutex);
    return found;
}

/* The kernels of the file named most like the program. */
size_t kernel_list(const struct zcsim_kernel **kernels, size_t room)
{
    size_t count = 0;
    pthread_mutex_lock(&files_mutex);
    files_list();
    if (file_count && file_open(&files[0]))
        for (const struct zcsim_kernel *each = files[0].kernels; each->name; each++, count++)
            if (count < room) kernels[count] = each;
    pthread_mutex_unlock(&files_mutex);
    return count;
}
