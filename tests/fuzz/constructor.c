/* A plug-in whose constructor calls the program that opens it. */
extern void in_a_constructor(void);
__attribute__((constructor)) static void start(void) { in_a_constructor(); }
