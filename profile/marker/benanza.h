/* Marks iterations for benanza: link with -lbenanza-marker, and put one call on either side of what you
 * want to be an iteration. Without benanza profile around the program the calls do nothing. */
#ifndef BENANZA_H
#define BENANZA_H

#ifdef __cplusplus
extern "C" {
#endif

void benanza_iteration_begin(void);
void benanza_iteration_end(void);

#ifdef __cplusplus
}
#endif

#endif
