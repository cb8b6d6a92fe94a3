#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "shim/choice.h"
#include "shim/file.h"
#include "shim/earning.h"
#include "shim/fork.h"
#include "shim/hostmem.h"
#include "shim/log.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "shim/trace.h"

struct shim shim;

static void warn(void *ctx, const char *line)
{
    (void)ctx;
    log_always("%s", line);
}

static void read_settings_file(struct options *options)
{
    size_t length;
    char *text = file_read(options->config, 1 << 20, &length);
    if (text)
        options_parse_text(options, text, warn, NULL);
    else
        log_always("settings file %s could not be read; it is ignored", options->config);
}

static void print_help(const struct options *options)
{
    static char text[16384];
    options_help(text, sizeof text, options);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchrnul(line, '\n');
        log_always("%.*s", (int)(end - line), line);
        if (!*end) break;
    }
}

extern char **environ;

/* Settings are read from the environment as it is now: the first look-up may come before main and before any
 * constructor. */
void shim_start(void)
{
    int expected = SHIM_NEW;
    if (atomic_load_explicit(&shim.state, memory_order_acquire) > SHIM_STARTING) return;
    if (!atomic_compare_exchange_strong(&shim.state, &expected, SHIM_STARTING)) {
        /* Another thread reads the options: no call of its waits for anybody. */
        while (atomic_load_explicit(&shim.state, memory_order_acquire) == SHIM_STARTING) continue;
        return;
    }
    int error = errno;
    shim.pid = getpid();
    options_parse(&shim.options, environ, warn, NULL);
    if (*shim.options.config) read_settings_file(&shim.options);
    if (shim.options.help) print_help(&shim.options);
    bool off = shim.options.mode == MODE_OFF;
    atomic_store_explicit(&shim.state, off ? SHIM_OFF : SHIM_ACTIVE, memory_order_release);
    /* May allocate, through our own malloc: last. */
    if (!off) pthread_atfork(fork_before, fork_in_parent, fork_in_child);
    errno = error;
}

__attribute__((constructor)) static void library_loaded(void)
{
    shim_start();
    if (!shim.options.follow) {
        /* Programs that this one starts are not followed: the variable goes, other preloads stay. */
        fork_unfollow();
    }
}

/* Runs after the program's exit handlers; the driver may be gone, so nothing here calls it. */
__attribute__((destructor)) static void library_ends(void)
{
    int active = SHIM_ACTIVE;
    bool ours = getpid() == shim.pid;
    if (!atomic_compare_exchange_strong(&shim.state, &active, SHIM_ENDED)) return;
    hostmem_at_exit();
    if (!ours) return;
    earning_at_exit();
    choice_at_exit();
    trace_flush();
    report_at_exit();
}
