/* Folders that go away, and the one that the program lies in. */
#ifndef BZ_FOLDER_H
#define BZ_FOLDER_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

enum { BZ_FOLDER_MAX = 3000 };

/* A new one of our own, below $TMPDIR or /tmp. It goes with us if we are killed. */
int bz_folder_make(char path[BZ_FOLDER_MAX], bz_error *err);

/* Likewise where a path says that ends with XXXXXX, which become its own letters; sets errno. */
int bz_folder_make_at(char *path);

/* Six letters and digits by chance in place of XXXXXX at the end of a name. False, with errno, where the system has none. */
bool bz_name_by_chance(char *name);

/* A file likewise. Returns its descriptor. */
int bz_folder_file(char path[BZ_FOLDER_MAX], bz_error *err);

/* With all that is in it, as far as that can be removed. Links are not followed. */
void bz_folder_remove(const char *path);

/* Names of what lies in a folder, as strcmp(3) orders them, in the arena: those of which `is` says so, or without `is` all that begin with
 * no dot. Returns how many; -1, with errno, where it cannot be opened. */
int bz_folder_list(const char *folder, bool (*is)(const char *name), bz_arena *arena, const char ***names);

/* What stands behind the last slash of a path; all of it where there is none. */
const char *bz_file_name(const char *path);

/* Fails for a path that cannot be opened or read: "modles/a.onnx: cannot be opened: No such file or directory: did you mean 'models/a.onnx'?" `why`
 * is of errno. */
int bz_path_fail(const char *path, const char *cannot, int why, bz_error *err);

/* The folder that our program lies in, without a slash at the end: what comes with it is found from there. */
const char *bz_folder_program(char path[BZ_FOLDER_MAX]);

/* A folder of the tree that comes with the program, as "perfdb/reference": installed beside it as reference, or in the tree that it was
 * built in, whose folder build or build/release it lies in. False where there is none. */
bool bz_folder_bundled(const char *name, char path[BZ_FOLDER_MAX]);

#endif
