/* How busy a machine is, as its kernel tells in /proc. What the kernel does not tell is -1 or NAN, and judged by nobody. */
#ifndef BZ_LOAD_H
#define BZ_LOAD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bz_load {
    int processors; /* that are online, 1 or more; this process may be bound to some of them, others then are as well */
    int runnable;   /* tasks of others that run or want to run, now */
    double average; /* runnable tasks over the last minute, this process among them */
    double pressure; /* share of the last 10 s in which some task waited for a processor */
    double total;    /* seconds that the processors together have been up */
    double steal;    /* of these: the hypervisor gave the processor to another virtual machine */
} bz_load;

/* Looks below `root`: "" for this machine, or a folder with a copy of /proc. */
void bz_load_read(const char *root, bz_load *out);

/* Share of the processors' time that the hypervisor took between two looks; 0 where the kernel does not tell, or counted
 * too few ticks. */
double bz_load_stolen(const bz_load *before, const bz_load *now);

/* Whether `threads` threads of ours find a processor each beside what others run. */
bool bz_load_has_room(const bz_load *l, int threads);

/* The processor's name as the kernel tells it, which people and other programs see; "" where it tells none. A processor asked by
 * itself can tell another: a hypervisor may show each another one. */
void bz_processor_name(const char *root, char *out, size_t size);

/* The content of root/path, zero-terminated and cut at size; -1 where there is none, or no regular file: a pipe in
 * a copy has nobody who writes to it. */
int bz_load_text(const char *root, const char *path, char *out, size_t size);

#endif
