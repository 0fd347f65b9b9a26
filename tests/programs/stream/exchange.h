/* Workers that exchange gradients: processes in a ring, over the loopback, each allowed so many bytes per second by a token
 * bucket. What is exchanged are regions of memory; each worker adds those of all others to its own.
 *
 * A thread of each worker does it, one region after the other, all workers in the same order: the first worker chooses among
 * the regions that it has ready, and its choice goes round before the data do. */
#ifndef STREAM_EXCHANGE_H
#define STREAM_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXCHANGE_REGIONS = 1024, EXCHANGE_WORKERS = 16 };

/* Forks: the caller goes on as each of them. Returns which one it is; the first waits for the others in exchange_close. */
int exchange_fork(int workers);

/* bytes_per_second: of each worker's link to the next. */
void exchange_open(double bytes_per_second, int core);
/* A region of so many floats; greater priorities go first, of equal ones the region that was ready first. Event `ready` is the
 * device's, `done` ours (device.h). Returns the number of the region. */
int exchange_add(size_t floats, int priority, int ready, int done);
/* From now on region `number` is awaited: to be called behind device_mark of its `ready`, before device_follow of `done`. */
void exchange_start(int number);
void exchange_drain(void); /* waits until nothing is under way */
int exchange_close(void);  /* the worst status of all workers, in the first one */

#endif
