/* document: small JSON files, read with distrust. Private to fleet. */
#ifndef BZ_FLEET_DOCUMENT_H
#define BZ_FLEET_DOCUMENT_H

#include "base/arena.h"
#include "base/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* An object; where `record` is not NULL, one whose "record" is that and whose "v" is 1. Free with cJSON_Delete. */
int document_open(const char *text, const char *path, const char *record, cJSON **root, bz_error *err);

/* UTF-8 that no terminal acts on, so that it can stand in a line of output or a script; bounded. */
bool document_is_line(const char *text);

/* A member, or what stands for it: "", `otherwise`. Text that is no line counts as absent. */
const char *document_text(const cJSON *object, const char *name, bz_arena *arena);
int64_t document_int(const cJSON *object, const char *name, int64_t least, int64_t most, int64_t otherwise);
double document_number(const cJSON *object, const char *name, double otherwise); /* not below 0 */
bool document_bool(const cJSON *object, const char *name);

#endif
