/* Exported by the 13.0 driver, not done here: each answers NOT_SUPPORTED. */
#define UNSUPPORTED(symbol)                                                                                            \
    int symbol(void);                                                                                                  \
    __attribute__((visibility("default"))) int symbol(void) { return 801; }
#include "unsupported.def"
