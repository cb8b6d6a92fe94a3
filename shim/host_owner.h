/* Who allocated a large host block, for the report: the site of the malloc, and its bytes. */
#ifndef SHIM_HOST_OWNER_H
#define SHIM_HOST_OWNER_H
#include <stddef.h>

struct site;

struct host_owner {
    struct site *site; /* NULL: unknown */
    size_t bytes;      /* as the program asked; 0: not counted */
};

/* Counts a block of the program that calls malloc now. Nothing is counted where no report will be made, nor what CUDA's
 * own libraries allocate. Called inside malloc with no lock held: takes no lock but for a new site, allocates nothing
 * through malloc, costs what site_capture costs. */
struct host_owner host_owner_count(size_t bytes);
/* The block is freed. No lock. */
void host_owner_uncount(struct host_owner owner);
#endif
