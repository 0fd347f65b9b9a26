/* document: small JSON files, read with distrust. Private to fleet. */
#ifndef BZ_FLEET_DOCUMENT_H
#define BZ_FLEET_DOCUMENT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/member.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* An object; where `record` is not NULL, one whose "record" is that and whose "v" is 1. Free with cJSON_Delete. */
int document_open(const char *text, const char *path, const char *record, cJSON **root, bz_error *err);

/* UTF-8 that no terminal acts on, so that it can stand in a line of output or a script; bounded. */
bool document_is_line(const char *text);

/* A member, or "". Text that is no line counts as absent. */
const char *document_text(const cJSON *object, const char *name, bz_arena *arena);

/* Members as bz_members_json wrote them. A text that is absent is "". */
void document_members(const bz_member *m, int n, const cJSON *object, bz_arena *arena, void *of);
/* The array `key` of such objects as structs of `size` bytes; how many. */
int document_rows(const char *key, const bz_member *m, int n, size_t size, const cJSON *object, bz_arena *arena,
                  void **rows);
/* An array's elements that are lines. */
int document_lines(const char *key, const cJSON *object, bz_arena *arena, const char ***lines);

#endif
