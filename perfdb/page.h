/* page: LMDB's file format, as in its mdb.c (0.9). Private to perfdb.
 *
 * A page is a header, then offsets of nodes growing up, then free space, then the nodes growing down from the page's end. */
#ifndef BZ_PERFDB_PAGE_H
#define BZ_PERFDB_PAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t number;
    uint16_t pad, flags;
    uint16_t lower, upper; /* of an overflow run: its pages, as one number */
} page_header;

typedef struct {
    uint16_t low, high, flags, key_size; /* branch: a page number in 48 bits; leaf: the data's size in 32 */
} node_header;

typedef struct {
    uint32_t pad;
    uint16_t flags, depth;
    size_t branch_pages, leaf_pages, overflow_pages, entries, root;
} tree_header;

typedef struct {
    uint32_t magic, version;
    size_t address, map_size;
    tree_header tree[2]; /* free pages; the main tree */
    size_t last_page, txn;
} meta_header;

enum {
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_OVERFLOW = 4,
    PAGE_META = 8,
    NODE_BIG = 1, /* data lies on overflow pages */
    NODE_TREE = 2,
    LMDB_MAGIC = (int)0xbeefc0de,
    LMDB_VERSION = 1,
    TREE_INTEGER_KEYS = 8,
    DEEPEST = 32, /* LMDB's own cursor stack */
    LONGEST_KEY = 511,
};

#define NO_PAGE SIZE_MAX

#endif
