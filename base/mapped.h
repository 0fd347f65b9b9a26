/* mapped: files whose pages are read as memory. */
#ifndef BZ_MAPPED_H
#define BZ_MAPPED_H

/* From now on a page that is not there, since somebody made its file shorter or its disk fails, ends the process with a sentence: no
 * function can return that. */
void bz_mapped_watch(void);

#endif
