/* kept: what took long to make, in a folder, for the next process that needs the same. Private to runtime/.
 *
 * An entry is found by its key, a text that says all on which it depends; the key stands in the file as a whole. Libraries
 * run what they are given as code, so an entry counts only where nobody but this user can have written it: folder and file
 * are the user's own, and neither its group nor others may write there. What is cut, changed or of another key is as good
 * as none. Entries appear whole or not at all, so any number of processes may take and put at once. */
#ifndef BZ_KEPT_H
#define BZ_KEPT_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends what is kept under the key; false where there is nothing that can be trusted. */
bool bz_kept_take(const char *folder, const char *key, bz_buf *out);

/* Keeps it, in a folder that is made where there is none. What cannot be written is not kept. */
void bz_kept_put(const char *folder, const char *key, const void *data, size_t size);

/* Finds in the text of an entry what is kept; false where the entry is not one of this key. */
bool bz_kept_read(const bz_buf *text, const char *key, const char **data, size_t *size);

/* Removes what was made longest ago until the folder holds at most so many bytes. */
void bz_kept_trim(const char *folder, double most);

#endif
