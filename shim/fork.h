/* Fork, in one place. Lock order: see lock.h; fork takes them all in that order and the child starts with fresh ones.
 */
#ifndef SHIM_FORK_H
#define SHIM_FORK_H
void fork_before(void);
void fork_in_parent(void);
void fork_in_child(void);
/* Takes this library out of LD_PRELOAD, for the programs that the process will start (option follow=off). */
void fork_unfollow(void);
#endif
