/* A library whose IFUNC resolver allocates: it runs while the loader relocates, before any constructor and maybe before
 * the shim is relocated. */
#include <stdlib.h>
#include <string.h>

static char *kept;
static int answer(void) { return kept && kept[0] == 'k' ? 0 : 1; }
static int (*resolve_answer(void))(void)
{
    char *first = malloc(100);
    memset(first, 'f', 100);
    char *second = calloc(3, 1000);
    first = realloc(first, 5000);
    if (first && second && first[99] == 'f' && second[2999] == 0) {
        kept = malloc(10 << 20);
        if (kept) memset(kept, 'k', 10 << 20);
    }
    free(first);
    free(second);
    return answer;
}
int resolver_answer(void) __attribute__((ifunc("resolve_answer")));
char *resolver_kept(void) { return kept; }
