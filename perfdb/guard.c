#include "perfdb/guard.h"

#include "perfdb/page.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems whose files live on another machine, or may. FUSE is most often sshfs and its kin,
 * and cannot be told from the local ones. */
static const struct {
    int64_t magic;
    const char *name;
} NETWORK[] = {
    {0x6969, "NFS"},
    {0x517b, "SMB"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},
    {0x5346414f, "AFS"},
    {0x6b414653, "AFS"},
    {0x00c36400, "Ceph"},
    {0x65735546, "FUSE"},
    {0x01021997, "9P"},
    {0x47504653, "GPFS"},
    {0x0bd00bd0, "Lustre"},
    {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},
    {0x73757245, "Coda"},
    {0x564c, "NCP"},
    {0x20030528, "PVFS"},
    {0x19830326, "BeeGFS"},
    {0xaad7aaea, "Panfs"},
    {0x786f4256, "VirtualBox shared folder"},
    {0xbacbacbc, "VMware shared folder"},
};

static int64_t real_file_system(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) ? 0 : (int64_t)(uint32_t)fs.f_type;
}

int bz_guard_file_system(const char *dir, int64_t (*file_system)(const char *path), bz_error *err)
{
    int64_t magic = file_system ? file_system(dir) : real_file_system(dir);
    for (size_t i = 0; i < sizeof NETWORK / sizeof *NETWORK; i++)
        if (magic == NETWORK[i].magic)
            return bz_fail(
                err, BZ_FAILED,
                "%s: on a network file system (%s), where locks and maps do not work: keep the database on a local "
                "disk of each machine, and bring records together with 'benanza db export' and 'benanza db merge'",
                dir, NETWORK[i].name);
    return 0;
}

typedef enum { TREE_FREE, TREE_MAIN, TREE_DATA } tree_kind;

typedef struct {
    const char *file;
    size_t page_size, pages; /* last_page + 1 */
    size_t stored;       /* of them in the file: LMDB does not write last pages that one transaction took and freed */
    unsigned char *used; /* by page number: walked once, so there is no cycle */
    size_t txn;
    const char *wrong;
} walk;

static const char *at(const walk *w, size_t page)
{
    return w->file + page * w->page_size;
}

static bool wrong(walk *w, const char *what)
{
    if (!w->wrong)
        w->wrong = what;
    return false;
}

static bool take(walk *w, size_t page, size_t n, size_t pages)
{
    if (page < 2 || n == 0 || page >= w->pages || n > w->pages - page)
        return wrong(w, "a page number points outside the file");
    if (page >= pages || n > pages - page)
        return wrong(w, "it is shorter than it should be: it was cut, or only half copied");
    for (size_t i = page; i < page + n; i++) {
        if (w->used[i])
            return wrong(w, "a page is used twice");
        w->used[i] = 1;
    }
    return true;
}

static bool walk_tree(walk *w, const tree_header *t, tree_kind kind);

/* A list of free pages: a count, then page numbers, falling. LMDB hands these out to be written. */
static bool check_free_list(walk *w, const char *key, size_t key_size, const char *data, size_t size)
{
    size_t count, page, last = w->pages, txn;
    if (key_size != sizeof txn || size < sizeof count)
        return wrong(w, "an entry of the free list has a wrong size");
    memcpy(&txn, key, sizeof txn);
    memcpy(&count, data, sizeof count);
    if (txn > w->txn || count > size / sizeof page - 1)
        return wrong(w, "an entry of the free list is longer than its data");
    for (size_t i = 0; i < count; i++, last = page) {
        memcpy(&page, data + (i + 1) * sizeof page, sizeof page);
        if (page >= last)
            return wrong(w, "the free list is not sorted");
        if (!take(w, page, 1, w->pages))
            return false;
    }
    return true;
}

static bool check_leaf_node(walk *w, const char *page, size_t offset, tree_kind kind)
{
    node_header n;
    memcpy(&n, page + offset, sizeof n);
    size_t size = (size_t)n.low | (size_t)n.high << 16, room = w->page_size - offset - sizeof n;
    const char *key = page + offset + sizeof n, *data = key + n.key_size;
    if (n.key_size == 0 || n.key_size > LONGEST_KEY || n.key_size > room)
        return wrong(w, "a key is longer than its page");
    if (n.flags == NODE_BIG) {
        size_t first;
        page_header h;
        if (room - n.key_size < sizeof first)
            return wrong(w, "a value is longer than its page");
        memcpy(&first, data, sizeof first);
        if (!take(w, first, 1, w->stored))
            return false;
        memcpy(&h, at(w, first), sizeof h);
        /* a value that shrinks in the transaction that stored it keeps its longer run */
        size_t run = (size_t)h.lower | (size_t)h.upper << 16;
        if (h.number != first || h.flags != PAGE_OVERFLOW || (size + sizeof h + w->page_size - 1) / w->page_size > run)
            return wrong(w, "a long value's pages are not what they should be");
        if (run > 1 && !take(w, first + 1, run - 1, w->stored))
            return false;
        data = at(w, first) + sizeof h;
    } else if (room - n.key_size < size) {
        return wrong(w, "a value is longer than its page");
    }
    if (n.flags == NODE_TREE && kind == TREE_MAIN && size == sizeof(tree_header)) {
        tree_header t;
        memcpy(&t, data, sizeof t);
        return walk_tree(w, &t, TREE_DATA);
    }
    if (n.flags && n.flags != NODE_BIG)
        return wrong(w, "a value is of a kind that benanza never writes");
    return kind != TREE_FREE || check_free_list(w, key, n.key_size, data, size);
}

/* Whether a node's key comes before that of another, maybe on another page. NULL is no key, and in order with all. */
static bool in_order(walk *w, const char *before, const char *after, bool or_equal, tree_kind kind)
{
    if (!before || !after)
        return true;
    node_header a, b;
    memcpy(&a, before, sizeof a);
    memcpy(&b, after, sizeof b);
    const char *key_a = before + sizeof a, *key_b = after + sizeof b;
    if (kind == TREE_FREE) {
        size_t x, y;
        if (a.key_size != sizeof x || b.key_size != sizeof y)
            return wrong(w, "an entry of the free list has a wrong size");
        memcpy(&x, key_a, sizeof x);
        memcpy(&y, key_b, sizeof y);
        return x < y || (or_equal && x == y) || wrong(w, "keys are not sorted");
    }
    int order = memcmp(key_a, key_b, a.key_size < b.key_size ? a.key_size : b.key_size);
    int longer = (a.key_size > b.key_size) - (a.key_size < b.key_size);
    order = order ? order : longer;
    return order < 0 || (or_equal && order == 0) || wrong(w, "keys are not sorted");
}

/* The nodes of the pages above whose keys are the limits of what may stand below. */
typedef struct {
    const char *low, *high; /* low <= key < high; NULL: no limit */
} limits;

static bool walk_page(walk *w, size_t number, int levels, tree_kind kind, limits in, size_t *entries);

static bool check_branch_node(walk *w, const char *page, size_t offset, bool first)
{
    node_header n;
    memcpy(&n, page + offset, sizeof n);
    if (n.key_size > LONGEST_KEY || n.key_size > w->page_size - offset - sizeof n || (!first && n.key_size == 0))
        return wrong(w, "a key is longer than its page");
    return true;
}

static bool walk_child(walk *w, const char *node, int levels, tree_kind kind, limits in, size_t *entries)
{
    node_header n;
    memcpy(&n, node, sizeof n);
    uint64_t child = (uint64_t)n.low | (uint64_t)n.high << 16;
    if (sizeof(size_t) > 4)
        child |= (uint64_t)n.flags << 32;
    if (child >= w->pages)
        return wrong(w, "a page number points outside the file");
    return walk_page(w, (size_t)child, levels - 1, kind, in, entries);
}

static const char *node_at(const char *page, size_t i)
{
    uint16_t offset;
    memcpy(&offset, page + sizeof(page_header) + 2 * i, sizeof offset);
    return page + offset;
}

/* The first key of a branch page is never looked at, and often empty. */
static bool check_nodes(walk *w, const char *page, size_t n, size_t upper, bool leaf, tree_kind kind, limits in)
{
    for (size_t i = 0; i < n; i++) {
        size_t offset = (size_t)(node_at(page, i) - page);
        if (offset < upper || offset > w->page_size - sizeof(node_header) || offset % 2)
            return wrong(w, "a node lies outside its page");
        if (leaf ? !check_leaf_node(w, page, offset, kind) : !check_branch_node(w, page, offset, i == 0))
            return false;
        if (i > (leaf ? 0u : 1u) && !in_order(w, node_at(page, i - 1), page + offset, false, kind))
            return false;
    }
    size_t first = leaf ? 0 : 1;
    return in_order(w, in.low, node_at(page, first), true, kind) &&
           in_order(w, node_at(page, n - 1), in.high, false, kind);
}

static bool walk_page(walk *w, size_t number, int levels, tree_kind kind, limits in, size_t *entries)
{
    page_header h;
    if (!take(w, number, 1, w->stored))
        return false;
    const char *page = at(w, number);
    memcpy(&h, page, sizeof h);
    bool leaf = levels == 1;
    if (h.number != number || h.flags != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return wrong(w, "a page is not what its parent says");
    if (h.lower < sizeof h || h.lower > h.upper || h.upper > w->page_size || (h.lower - sizeof h) % 2)
        return wrong(w, "a page's bounds are wrong");
    size_t n = (h.lower - sizeof h) / 2;
    if (n < (leaf ? 1 : 2))
        return wrong(w, "a page is empty");
    if (!check_nodes(w, page, n, h.upper, leaf, kind, in))
        return false;
    for (size_t i = 0; i < n && !leaf; i++) {
        limits child = {i ? node_at(page, i) : in.low, i + 1 < n ? node_at(page, i + 1) : in.high};
        if (!walk_child(w, node_at(page, i), levels, kind, child, entries))
            return false;
    }
    *entries += leaf ? n : 0;
    return true;
}

static bool walk_tree(walk *w, const tree_header *t, tree_kind kind)
{
    size_t entries = 0;
    if (t->flags & ~(kind == TREE_FREE ? TREE_INTEGER_KEYS : 0))
        return wrong(w, "a table is of a kind that benanza never makes");
    if (t->root == NO_PAGE)
        return (t->depth == 0 && t->entries == 0) || wrong(w, "a table without pages has entries");
    if (t->depth == 0 || t->depth > DEEPEST)
        return wrong(w, "a table is deeper than any can be");
    if (!walk_page(w, t->root, t->depth, kind, (limits){0}, &entries))
        return false;
    return entries == t->entries || wrong(w, "a table has not the number of entries that it says");
}

/* What LMDB reads before anything else. The page size is that of the machine that wrote. */
static const char *check_meta(const char *page, size_t number, size_t page_size, meta_header *m)
{
    page_header h;
    memcpy(&h, page, sizeof h);
    memcpy(m, page + sizeof h, sizeof *m);
    if (m->magic != (uint32_t)LMDB_MAGIC)
        return "it is no LMDB database";
    if (m->version != LMDB_VERSION)
        return "it is of another LMDB version";
    if (h.number != number || h.flags != PAGE_META)
        return "a meta page is damaged";
    if (m->tree[0].pad != page_size)
        return "it was made with another page size: export it on the machine that made it";
    return NULL;
}

/* The state that `moment` names, else the newest. The other one may be half of a commit that failed: LMDB never reads it. */
static const char *choose_meta(const meta_header meta[2], size_t moment, size_t page_size, const meta_header **chosen)
{
    const meta_header *m = &meta[moment ? meta[1].txn == moment : meta[1].txn > meta[0].txn];
    if (moment && m->txn != moment) {
        *chosen = NULL;
        return NULL;
    }
    *chosen = m;
    if (m->last_page < 1 || m->last_page >= SIZE_MAX / page_size - 1 ||
        m->map_size > (size_t)1 << (sizeof(size_t) > 4 ? 46 : 31))
        return "a meta page is damaged";
    for (int i = 0; i < 2; i++)
        if (m->tree[i].depth > DEEPEST || (m->tree[i].root != NO_PAGE && m->tree[i].root > m->last_page))
            return "a meta page is damaged";
    return NULL;
}

/* Every page that is missing at the end must be on the list of free pages, and that lies in the file: it cannot name more
 * of them than there are bytes. */
static const char *start_walk(walk *w, const void *file, uint64_t size, const meta_header *m, size_t page_size)
{
    *w = (walk){.file = file, .page_size = page_size, .pages = m->last_page + 1, .txn = m->txn};
    w->stored = size / page_size < w->pages ? (size_t)(size / page_size) : w->pages;
    if (w->pages - w->stored > size / sizeof(size_t))
        return "it is shorter than it should be: it was cut, or only half copied";
    w->used = calloc(w->pages, 1);
    return w->used ? NULL : "it is too large to be checked";
}

static const char *walk_pages(const void *file, uint64_t size, const meta_header *m, size_t page_size)
{
    walk w;
    const char *why = start_walk(&w, file, size, m, page_size);
    if (why)
        return why;
    if (walk_tree(&w, &m->tree[0], TREE_FREE))
        walk_tree(&w, &m->tree[1], TREE_MAIN);
    free(w.used);
    return w.wrong;
}

static const char *newest_meta(const char *file, uint64_t size, size_t page_size, meta_header *newest)
{
    meta_header meta[2];
    const meta_header *m;
    const char *why = size < 2 * page_size ? "it is shorter than two pages" : NULL;
    for (size_t i = 0; i < 2 && !why; i++)
        why = check_meta(file + i * page_size, i, page_size, &meta[i]);
    if (!why)
        why = choose_meta(meta, 0, page_size, &m);
    if (!why)
        *newest = *m;
    return why;
}

unsigned char *bz_guard_free_pages(const void *file, uint64_t size, size_t *n)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    meta_header m;
    walk w;
    if (newest_meta(file, size, page_size, &m) || start_walk(&w, file, size, &m, page_size))
        return NULL;
    *n = w.pages;
    if (walk_tree(&w, &m.tree[0], TREE_FREE))
        return w.used;
    free(w.used);
    return NULL;
}

const char *bz_guard_bytes(const void *file, uint64_t size, bool pages)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    meta_header m;
    const char *why = newest_meta(file, size, page_size, &m);
    return why || !pages ? why : walk_pages(file, size, &m, page_size);
}

/* What is wrong where the file's first n bytes cannot be had. A signal may interrupt a read, and a read may be short. */
static const char *read_first(int fd, char *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t some = pread(fd, to + done, n - done, (off_t)done);
        if (!some)
            return "it is shorter than two pages";
        if (some < 0 && errno != EINTR)
            return "it cannot be read";
        done += some > 0 ? (size_t)some : 0;
    }
    return NULL;
}

/* Both meta pages as they are at one moment: somebody may be writing one. */
static const char *read_meta(int fd, size_t page_size, meta_header meta[2])
{
    char *page[2] = {malloc(2 * page_size), malloc(2 * page_size)};
    const char *why = page[0] && page[1] ? NULL : "it is too large to be checked";
    for (int i = 0; i < 1000 && !why; i++) {
        why = read_first(fd, page[i % 2], 2 * page_size);
        if (!why && i > 0 && !memcmp(page[0], page[1], 2 * page_size))
            break;
    }
    for (size_t i = 0; i < 2 && !why; i++)
        why = check_meta(page[0] + i * page_size, i, page_size, &meta[i]);
    free(page[0]);
    free(page[1]);
    return why;
}

/* The size is asked for after the meta pages: a file that grows meanwhile has at least what they speak of. */
static const char *check_file(int fd, size_t moment, bool pages, bool *ours, bool *over)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    meta_header meta[2];
    const meta_header *m;
    const char *why = read_meta(fd, page_size, meta);
    if (why)
        return why;
    *ours = true;
    why = choose_meta(meta, moment, page_size, &m);
    if (why || (*over = !m) || !pages)
        return why;
    if (fstat(fd, &st))
        return strerror(errno);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return "it is too large to be checked";
#ifdef MADV_POPULATE_READ /* a bad sector is an error here, and would be a SIGBUS below; EINVAL: a kernel before 5.14 */
    if (madvise(map, (size_t)st.st_size, MADV_POPULATE_READ) && errno != EINVAL)
        why = "the disk cannot read all of it";
#endif
    if (!why)
        why = walk_pages(map, (uint64_t)st.st_size, m, page_size);
    munmap(map, (size_t)st.st_size);
    return why;
}

bool bz_guard_unfinished(const char *path)
{
    struct {
        page_header page;
        meta_header meta;
    } first;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool short_one = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < 2 * sysconf(_SC_PAGESIZE);
    bool has_meta = short_one && pread(fd, &first, sizeof first, 0) == sizeof first;
    close(fd);
    return has_meta && first.page.flags == PAGE_META && first.meta.magic == (uint32_t)LMDB_MAGIC &&
           first.meta.txn == 0 && first.meta.tree[0].root == NO_PAGE && first.meta.tree[1].root == NO_PAGE;
}

int bz_guard_file(const char *path, size_t moment, bool pages, bz_error *err)
{
    struct stat st;
    const char *why = NULL;
    bool ours = false, over = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : bz_fail(err, BZ_FAILED, "%s: cannot be opened: %s", path, strerror(errno));
    bool regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
    if (regular && st.st_size > 0)
        why = check_file(fd, moment, pages, &ours, &over);
    close(fd);
    if (!regular)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is no regular file", path);
    if (why)
        return bz_fail(err, BZ_BAD_INPUT, "%s: not a database that can be opened: %s%s", path, why,
                       ours ? "; 'benanza db salvage' gets out what is intact" : "");
    return over;
}
