/* Exported by the 13.0 runtime, not done here: each answers cudaErrorNotSupported. */
#define UNSUPPORTED(symbol)                                                                                            \
    int symbol(void);                                                                                                  \
    __attribute__((visibility("default"))) int symbol(void) { return 801; }
#include "unsupported.def"
