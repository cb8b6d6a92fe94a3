#include <stdlib.h>
int resolver_answer(void);
char *resolver_kept(void);
static char *made_first;
__attribute__((constructor(101))) static void first(void) { made_first = malloc(6 << 20); }
int main(void)
{
    if (resolver_answer()) return 1;
    char *kept = realloc(resolver_kept(), 20 << 20);
    if (!kept || kept[0] != 'k' || kept[(10 << 20) - 1] != 'k') return 2;
    free(kept);
    made_first[0] = 1;
    free(made_first);
    return 0;
}
