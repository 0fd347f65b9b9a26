/* Marks iterations for benanza: link with -lbenanza-marker, and put one call on either side of what you
 * want to be an iteration. Without benanza profile around the program the calls do nothing.
 *
 * Ranges name parts of an iteration ("forward", "backward", "update") and may lie in one another, 64 deep. A fact is what the program
 * knows and a recording cannot see: "batch", "32". */
#ifndef BENANZA_H
#define BENANZA_H

#ifdef __cplusplus
extern "C" {
#endif

void benanza_iteration_begin(void);
void benanza_iteration_end(void);
void benanza_range_begin(const char *name);
void benanza_range_end(void);
void benanza_fact(const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
