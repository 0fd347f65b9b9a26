/* SQLite's file format, as https://www.sqlite.org/fileformat.html describes it: a table is a b-tree of pages, a row is
 * a cell of a leaf, and a cell is a record: a header of varints that tell the columns' types, then their values. */
#include "profile/pages.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INNER = 5, LEAF = 13, FILE_HEADER = 100, COLUMNS_SEEN = 256, RECORD_MAX = 1 << 24, LEAD = 8, WINDOW = 1 << 17 };

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static const uint8_t *long_varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++, p++) {
        if (p >= end)
            return NULL;
        sum = sum << 7 | (*p & 0x7f);
        if (*p < 0x80) {
            *v = sum;
            return p + 1;
        }
    }
    if (p >= end)
        return NULL;
    *v = sum << 8 | *p;
    return p + 1;
}

/* A varint has one to nine bytes, the last of nine has eight bits. NULL where it does not end before `end`. */
static inline const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    if (p < end && *p < 0x80) {
        *v = *p;
        return p + 1;
    }
    if (end - p < 3 || (p[1] & p[2]) >= 0x80)
        return long_varint(p, end, v);
    bool two = p[1] < 0x80; /* rows of tables with millions of them are numbered in three */
    *v = two ? (p[0] & 0x7fu) << 7 | p[1] : (p[0] & 0x7fu) << 14 | (p[1] & 0x7fu) << 7 | p[2];
    return p + (two ? 2 : 3);
}

bool bz_pages_open(bz_pages *p, int fd, size_t size)
{
    uint8_t d[FILE_HEADER];
    *p = (bz_pages){.fd = fd};
    if (pread(fd, d, sizeof d, 0) != (ssize_t)sizeof d || memcmp(d, "SQLite format 3", 16) != 0 ||
        be32(d + 56) != 1) /* UTF-8 */
        return false;
    p->page_size = be16(d + 16) == 1 ? 65536 : be16(d + 16);
    if (p->page_size < 512 || (p->page_size & (p->page_size - 1)) || p->page_size - d[20] < 480)
        return false;
    p->usable = p->page_size - d[20];
    size_t n = size / p->page_size;
    p->n = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    return true;
}

uint64_t bz_pages_claimed(const void *data, size_t size)
{
    const uint8_t *d = data;
    if (size < FILE_HEADER || be32(d + 24) != be32(d + 92)) /* written by something that did not keep the count */
        return 0;
    uint64_t page_size = be16(d + 16) == 1 ? 65536 : be16(d + 16);
    return be32(d + 28) * page_size;
}

/* Leaves mostly come one behind the other, and are read some at once: copying them takes half as long as mapping the file does. One that
 * comes alone is read alone, or a tree that jumps would have the file read many times over. NULL where it cannot be read. */
static const uint8_t *page_at(bz_rows *r, struct bz_page_window *w, uint32_t number)
{
    const size_t size = r->pages->page_size;
    const uint32_t most = size < WINDOW ? (uint32_t)(WINDOW / size) : 1, left = r->pages->n - number + 1;
    if (!number || number > r->pages->n || !r->budget)
        return NULL;
    r->budget--;
    if (number - w->first >= w->n) {
        bool follows = w->n && number - w->first - w->n <= 1; /* or an inner page lies between */
        uint32_t n = !follows ? 1 : 2 * w->n < most ? 2 * w->n : most;
        w->data = w->data ? w->data : bz_alloc(most, size);
        w->first = number;
        w->n = n < left ? n : left;
        ssize_t got = pread(r->pages->fd, w->data, w->n * size, (off_t)(size * (number - 1)));
        w->n = got > 0 ? (uint32_t)((size_t)got / size) : 0;
    }
    return w->n ? w->data + size * (number - w->first) : NULL;
}

/* The number of the page below the inner page that comes next; 0 where there is none. */
static uint32_t next_child(bz_rows *r)
{
    const uint8_t *page = r->path[r->depth - 1].page, *head = r->path[r->depth - 1].head;
    uint32_t i = r->path[r->depth - 1].next++;
    if (i == r->path[r->depth - 1].cells)
        return be32(head + 8);
    uint32_t at = be16(head + 12 + 2 * (size_t)i);
    return at + 4 <= r->pages->usable ? be32(page + at) : 0;
}

/* Down to the first leaf below the page. */
static bool descend(bz_rows *r, uint32_t number)
{
    for (;;) {
        const uint8_t *page = page_at(r, &r->window, number);
        if (!page)
            return false;
        const uint8_t *head = page + (number == 1 ? FILE_HEADER : 0);
        bool leaf = head[0] == LEAF;
        uint32_t cells = be16(head + 3), first = (uint32_t)(head - page) + (leaf ? 8 : 12);
        if ((!leaf && head[0] != INNER) || first + 2 * cells > r->pages->usable)
            return false;
        if (leaf) {
            r->leaf = page;
            r->first = first;
            r->cell = 0;
            r->cells = cells;
            return true;
        }
        if (r->depth == BZ_SCAN_DEPTH)
            return false;
        uint8_t **kept = &r->path[r->depth].page;
        *kept = *kept ? *kept : bz_alloc(r->pages->page_size, 1);
        memcpy(*kept, page, r->pages->page_size);
        r->path[r->depth].head = *kept + (head - page);
        r->path[r->depth].next = 0;
        r->path[r->depth++].cells = cells;
        number = next_child(r);
    }
}

static bz_scan_step next_leaf(bz_rows *r)
{
    while (r->depth && r->path[r->depth - 1].next > r->path[r->depth - 1].cells)
        r->depth--;
    if (!r->depth)
        return BZ_SCAN_END;
    return descend(r, next_child(r)) ? BZ_SCAN_ROW : BZ_SCAN_ODD;
}

bz_scan_step bz_rows_begin(bz_rows *r, const bz_pages *pages, uint32_t root, const bz_wanted *wanted, int n)
{
    *r = (bz_rows){.pages = pages, .wanted = wanted, .n = n, .budget = pages->n};
    for (int i = 0; i < n && i < BZ_SCAN_COLUMNS; i++) {
        if (wanted[i].column < 0 || wanted[i].column >= COLUMNS_SEEN)
            return BZ_SCAN_ODD;
        r->has_rowid |= wanted[i].rowid;
    }
    r->root = root;
    return n <= BZ_SCAN_COLUMNS && descend(r, root) ? BZ_SCAN_ROW : BZ_SCAN_ODD;
}

/* Where a cell of the leaf has its record, whose size and row number stand before it. */
static inline const uint8_t *cell_at(const bz_rows *r, uint32_t cell, uint64_t *n, uint64_t *rowid)
{
    const uint8_t *end = r->leaf + r->pages->usable, *p = r->leaf + be16(r->leaf + r->first + 2 * (size_t)cell);
    if (p < r->leaf + r->first + 2 * r->cells || p >= end)
        return NULL;
    p = varint(p, end, n);
    return p ? varint(p, end, rowid) : NULL;
}

/* Rows are numbered upwards, mostly without holes: the first and the last number tell how many there are. */
uint64_t bz_rows_expected(const bz_rows *r)
{
    bz_rows edge = {.pages = r->pages, .budget = r->pages->n};
    bool found = descend(&edge, r->root);
    while (found && edge.depth) {
        edge.depth = 0;
        found = descend(&edge, be32(edge.path[0].head + 8));
    }
    uint64_t n, first = 0, last = 0;
    found = found && r->cells && edge.cells && cell_at(r, 0, &n, &first) && cell_at(&edge, edge.cells - 1, &n, &last);
    bz_rows_end(&edge);
    return !found || (int64_t)last < (int64_t)first ? 0 : last - first + 1;
}

void bz_rows_end(bz_rows *r)
{
    free(r->spill);
    free(r->window.data);
    free(r->chain.data);
    for (int i = 0; i < BZ_SCAN_DEPTH; i++)
        free(r->path[i].page);
    *r = (bz_rows){0};
}

typedef enum { FIELD_NUMBER, FIELD_CONSTANT, FIELD_NULL, FIELD_TEXT, FIELD_ROWID } field_kind;

/* Decides how one column is taken from records with this header. False: libsqlite3 has to. */
static bool plan_field(bz_record_plan *plan, int i, const bz_wanted *w, bool present, uint64_t type, uint64_t end)
{
    field_kind kind = FIELD_NULL;
    plan->field[i].end = (uint32_t)end;
    plan->field[i].number = 0;
    if (w->rowid) {
        kind = FIELD_ROWID;
    } else if (!present) {
        if (w->has_default)
            return false;
    } else if (type >= 1 && type <= 6) {
        static const uint8_t SHIFT[] = {0, 56, 48, 40, 32, 16, 0};
        kind = FIELD_NUMBER;
        plan->field[i].shift = SHIFT[type];
    } else if (type == 8 || type == 9) {
        kind = FIELD_CONSTANT;
        plan->field[i].number = (int64_t)type - 8;
    } else if (type >= 13 && type % 2) {
        kind = FIELD_TEXT;
        plan->field[i].number = (int64_t)((type - 13) / 2);
    } else if (type) { /* a real number, a blob: nothing that an export has in a column that is wanted */
        return false;
    }
    plan->field[i].kind = (uint8_t)kind;
    bool number = kind != FIELD_TEXT && kind != FIELD_NULL;
    return !(kind == FIELD_TEXT && w->want == BZ_WANT_NUMBER) && !(number && w->want == BZ_WANT_TEXT);
}

static bool make_plan(bz_rows *r, bz_record_plan *plan, const uint8_t *record, size_t n)
{
    static const uint8_t SIZE[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    uint64_t type[COLUMNS_SEEN], end[COLUMNS_SEEN], n_header;
    const uint8_t *p = varint(record, record + n, &n_header);
    if (!p || n_header > n)
        return false;
    uint64_t at = n_header;
    int last = -1, columns = 0;
    for (int i = 0; i < r->n; i++)
        last = r->wanted[i].column > last ? r->wanted[i].column : last;
    for (; columns <= last && p < record + n_header; columns++) {
        p = varint(p, record + n_header, &type[columns]);
        if (!p)
            return false;
        uint64_t size = type[columns] < 12 ? SIZE[type[columns]] : (type[columns] - 12) / 2;
        if (size > n - at)
            return false;
        end[columns] = at += size;
    }
    plan->n_header = 0; /* a header that is too long to keep is worked out again for each row */
    plan->needed = (uint32_t)at;
    for (int i = 0; i < r->n; i++) {
        int c = r->wanted[i].column;
        bool present = c < columns;
        if (!plan_field(plan, i, &r->wanted[i], present, present ? type[c] : 0, present ? end[c] : 0))
            return false;
    }
    if (n_header <= BZ_SCAN_HEADER) {
        uint8_t ones[BZ_SCAN_HEADER] = {0};
        memset(plan->header, 0, sizeof plan->header);
        memcpy(plan->header, record, n_header);
        memset(ones, 0xff, n_header);
        memcpy(plan->word, plan->header, sizeof plan->word);
        memcpy(plan->mask, ones, sizeof plan->mask);
        plan->n_header = (uint32_t)n_header;
    }
    return true;
}

/* A record that does not fit goes on in a chain of pages. */
static const uint8_t *gather(bz_rows *r, const uint8_t *local, uint64_t n)
{
    uint32_t usable = r->pages->usable, least = (usable - 12) * 32 / 255 - 23,
             kept = least + (uint32_t)((n - least) % (usable - 4));
    if (kept > usable - 35)
        kept = least;
    if (n > RECORD_MAX || local + kept + 4 > r->leaf + usable)
        return NULL;
    if (n > r->cap_spill) {
        r->spill = bz_realloc(r->spill, LEAD + n, 1);
        r->cap_spill = n;
    }
    uint8_t *record = r->spill + LEAD;
    memcpy(record, local, kept);
    uint32_t next = be32(local + kept);
    for (size_t have = kept; have < n;) {
        const uint8_t *page = page_at(r, &r->chain, next);
        if (!page)
            return NULL;
        size_t part = n - have < usable - 4 ? n - have : usable - 4;
        memcpy(record + have, page + 4, part);
        have += part;
        next = be32(page);
    }
    return record;
}

/* The eight bytes that end where column i of a record does. Before a record lies at least the header of its page, or LEAD. */
static inline uint64_t bytes_before(const uint8_t *record, uint32_t end)
{
    uint64_t bits;
    memcpy(&bits, record + end - sizeof bits, sizeof bits);
    return bits;
}

/* Do all records have the bytes of the first one there? Those of the last one mostly say so. What lies before the number is shifted out. */
static bool all_alike(const uint8_t *const *record, int n, uint32_t end, int shift)
{
    const uint64_t first = bytes_before(record[0], end);
    uint64_t differ = first ^ bytes_before(record[n - 1], end);
    if (differ >> shift)
        return false;
#pragma GCC unroll 4
    for (int k = 1; k < n; k++)
        differ |= first ^ bytes_before(record[k], end);
    return !(differ >> shift);
}

/* Numbers stand highest byte first. What lies before them is masked, and a difference spreads the sign: two shifts take longer. */
static int64_t number_in(uint64_t bits, int shift)
{
    const uint64_t mask = UINT64_MAX >> shift, sign = mask - (mask >> 1);
    return (int64_t)(((__builtin_bswap64(bits) & mask) ^ sign) - sign);
}

static void fill(int64_t *number, int64_t value, int n)
{
    for (int k = 0; k < n; k++)
        number[k] = value;
}

/* Of column i. Most columns have one number in all rows of a batch: to see that takes less than to read each. */
static void take_numbers(const bz_rows *r, int i, const uint8_t *const *record, bz_values *v)
{
    const uint32_t end = r->plan[r->at].field[i].end;
    const int shift = r->plan[r->at].field[i].shift, n = r->batch;
    v->same = all_alike(record, n, end, shift);
    if (v->same) {
        fill(v->number, number_in(bytes_before(record[0], end), shift), n);
        return;
    }
#pragma GCC unroll 4
    for (int k = 0; k < n; k++)
        v->number[k] = number_in(bytes_before(record[k], end), shift);
}

static void take(const bz_rows *r, const uint8_t *const *record, const int64_t *rowid, bz_values *value)
{
    for (int i = 0; i < r->n; i++) {
        field_kind kind = r->plan[r->at].field[i].kind;
        int64_t number = r->plan[r->at].field[i].number;
        bz_values *v = &value[i];
        v->type = kind == FIELD_TEXT ? BZ_VALUE_TEXT : kind == FIELD_NULL ? BZ_VALUE_NULL : BZ_VALUE_NUMBER;
        v->zero = kind == FIELD_NULL || (kind == FIELD_CONSTANT && !number);
        v->same = v->zero || kind == FIELD_CONSTANT;
        if (kind == FIELD_NUMBER) {
            take_numbers(r, i, record, v);
        } else if (kind == FIELD_ROWID) {
            memcpy(v->number, rowid, (size_t)r->batch * sizeof *rowid);
        } else {
            fill(v->number, number, r->batch);
            for (int k = 0; k < r->batch; k++) /* only set, and only read, where there is a text or NULL */
                if (kind != FIELD_CONSTANT)
                    v->text[k] =
                        kind == FIELD_TEXT ? (const char *)record[k] + r->plan[r->at].field[i].end - number : NULL;
        }
    }
}

/* By words, of which `room` bytes are there: it is asked of each row, and a call takes longer. */
static inline bool fits(const bz_record_plan *plan, const uint8_t *record, uint64_t n, size_t room)
{
    uint64_t word, differ = 0;
    uint32_t words = (plan->n_header + 7) / 8;
    if (!words || n < plan->needed)
        return false;
    if (room < 8 * words)
        return !memcmp(record, plan->header, plan->n_header);
    for (uint32_t i = 0; i < words; i++) {
        memcpy(&word, record + 8 * (size_t)i, sizeof word);
        differ |= (word ^ plan->word[i]) & plan->mask[i];
    }
    return !differ;
}

/* Finds or makes the plan of a record; false: libsqlite3 has to read it. */
static bool find_plan(bz_rows *r, const uint8_t *record, uint64_t n, size_t room)
{
    if (fits(&r->plan[r->at], record, n, room))
        return true;
    for (int i = 0; i < BZ_SCAN_PLANS; i++)
        if (fits(&r->plan[i], record, n, room)) {
            r->at = i;
            return true;
        }
    r->at = r->oldest;
    r->oldest = (r->oldest + 1) % BZ_SCAN_PLANS;
    return make_plan(r, &r->plan[r->at], record, n);
}

/* How a cell begins: with the record's length, the row's number, the record's header; by two words at once. */
typedef uint64_t two_words __attribute__((vector_size(16)));
typedef struct {
    two_words word[(2 + 4 + BZ_SCAN_HEADER + 15) / 16], mask[(2 + 4 + BZ_SCAN_HEADER + 15) / 16];
    uint32_t pairs, before, number_at; /* bytes before the record; where the row's number begins */
} beginning;

/* Of the cell of a record that fits the plan; the number counts as alike where it has as many bytes. False: a rare one. */
static bool begins(const bz_rows *r, const uint8_t *cell, const uint8_t *number, const uint8_t *record, beginning *b)
{
    uint8_t mask[sizeof b->mask] = {0};
    b->number_at = (uint32_t)(number - cell);
    b->before = (uint32_t)(record - cell);
    uint32_t size = b->before + r->plan[r->at].n_header;
    b->pairs = (size + 15) / 16;
    if (b->number_at > 2 || b->before - b->number_at > 4 || cell + 16 * (size_t)b->pairs > r->leaf + r->pages->usable)
        return false;
    memset(mask, 0xff, size);
    memset(mask + b->number_at, 0x80, b->before - b->number_at); /* of its bytes, whether one follows */
    memcpy(b->mask, mask, sizeof mask);
    memcpy(b->word, cell, 16 * (size_t)b->pairs);
    return true;
}

static inline two_words differ_at(const uint8_t *cell, const beginning *b, uint32_t pair)
{
    two_words words;
    memcpy(&words, cell + 16 * (size_t)pair, sizeof words);
    return (words ^ b->word[pair]) & b->mask[pair];
}

/* The rows behind the first of a batch whose cells begin as its cell does, as nearly all do: two or three words tell. Their numbers must
 * ascend; with as many bytes each they do where the bytes do. Returns how many rows there are then. */
static int add_alike(const bz_rows *r, const uint8_t *cell, const uint8_t *number_at, uint64_t n,
                     const uint8_t *record[BZ_SCAN_BATCH])
{
    beginning b;
    if (!begins(r, cell, number_at, record[0], &b))
        return 1;
    const uint8_t *leaf = r->leaf, *pointer = leaf + r->first + 2 * (size_t)r->cell + 2;
    const uint64_t reach = b.before + n > 16 * (uint64_t)b.pairs ? b.before + n : 16 * (uint64_t)b.pairs;
    const uint32_t low = r->first + 2 * r->cells, high = r->pages->usable - (uint32_t)reach;
    const int shift = 32 - 8 * (int)(b.before - b.number_at);
    int most = r->cells - r->cell < BZ_SCAN_BATCH ? (int)(r->cells - r->cell) : BZ_SCAN_BATCH, rows = 1;
    for (uint32_t number = be32(cell + b.number_at) >> shift; rows < most; rows++, pointer += 2) {
        uint32_t at = be16(pointer);
        if (at - low > high - low) /* or before it: the batch's first cell lies between them */
            break;
        two_words differ = differ_at(leaf + at, &b, 0);
        if (b.pairs > 1)
            differ |= differ_at(leaf + at, &b, 1);
        for (uint32_t i = 2; i < b.pairs; i++)
            differ |= differ_at(leaf + at, &b, i);
        uint32_t next = be32(leaf + at + b.number_at) >> shift;
        if ((differ[0] | differ[1]) || next <= number)
            break;
        number = next;
        record[rows] = leaf + at + b.before;
    }
    return rows;
}

/* The numbers of the rows, which stand right before the records, from the first on, which is known. */
static int64_t number_rows(const bz_rows *r, const uint8_t *const *record, int rows, size_t bytes,
                           int64_t rowid[BZ_SCAN_BATCH])
{
    for (int k = r->has_rowid || rows == 1 ? 1 : rows - 1; k < rows; k++) {
        uint64_t id = 0;
        varint(record[k] - bytes, record[k], &id);
        rowid[k] = (int64_t)id;
    }
    return rowid[rows - 1];
}

bz_scan_step bz_rows_next(bz_rows *r, bz_values *value)
{
    while (r->cell == r->cells) {
        bz_scan_step step = next_leaf(r);
        if (step != BZ_SCAN_ROW)
            return step;
    }
    const uint8_t *record[BZ_SCAN_BATCH], *page_end = r->leaf + r->pages->usable;
    int64_t rowid[BZ_SCAN_BATCH];
    uint64_t n, id, size;
    r->batch = 0;
    const uint8_t *p = cell_at(r, r->cell, &n, &id);
    if (!p || (r->started && (int64_t)id <= r->rowid))
        return BZ_SCAN_ODD;
    bool spilled = n > r->pages->usable - 35; /* what does not fit into a page comes alone: there is one place for it */
    record[0] = spilled ? gather(r, p, n) : n <= (size_t)(page_end - p) ? p : NULL;
    if (!record[0] || !find_plan(r, record[0], n, spilled ? 0 : (size_t)(page_end - p)))
        return BZ_SCAN_ODD;
    const uint8_t *cell = r->leaf + be16(r->leaf + r->first + 2 * (size_t)r->cell),
                  *number = varint(cell, page_end, &size);
    rowid[0] = (int64_t)id;
    r->batch = spilled || !r->plan[r->at].n_header ? 1 : add_alike(r, cell, number, n, record);
    r->rowid = number_rows(r, record, r->batch, (size_t)(p - number), rowid);
    r->cell += (uint32_t)r->batch;
    r->started = true;
    take(r, record, rowid, value);
    return BZ_SCAN_ROW;
}
