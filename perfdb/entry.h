/* entry: how values lie in the database. Private to perfdb.
 *
 * Every value is a header and a payload. The checksum covers key and payload, so that an entry
 * under a wrong key is a damaged one. Numbers are in the machine's byte order, as LMDB's own are.
 *
 *   0  u16 version       of the payload's layout
 *   2  u16 fixed         bytes of the payload before its strings begin
 *   4  u32 payload       bytes
 *   8  u64 checksum      XXH3 of the payload, seeded with XXH3 of key, version and fixed
 *  16  payload
 *
 * Within a version, fields are only ever appended to the fixed part, and strings to the strings:
 * an older entry lacks the last ones, a newer entry has some more. Version 2 will be needed when
 * something changes its meaning.
 *
 * Keys of records sort by what is asked for: all of a system, of a data type there, of a problem,
 * of an identity, newest first:
 *
 *   0  u32 system        id, big-endian
 *   4  u32 type          hash of the data type's name
 *   8  u128 problem      hash of the problem's text
 *  24  u128 identity     hash of variant and setting
 *  40  u64 ~date         big-endian
 */
#ifndef BZ_PERFDB_ENTRY_H
#define BZ_PERFDB_ENTRY_H

#include "base/map.h"
#include "perfdb/perfdb.h"

enum {
    ENTRY_VERSION = 1,
    ENTRY_HEADER = 16,
    KEY_SYSTEM = 4,
    KEY_TYPE = 8,
    KEY_PROBLEM = 24,
    KEY_IDENTITY = 40,
    KEY_RECORD = 48,
    HASH_SIZE = 16,
    LAST_SYSTEM = 1 << 30 /* ids are counted up from 1 */
};

typedef struct bz_record_key {
    unsigned char byte[KEY_RECORD];
} bz_record_key;

typedef enum { ENTRY_GOOD, ENTRY_DAMAGED, ENTRY_NEWER } bz_entry_state;

/* Seals `payload` (its first `fixed` bytes being the fixed part) into `out`, which is emptied first. */
void bz_entry_seal(bz_buf *out, const void *key, size_t key_len, uint16_t version, const void *payload, size_t len,
                   size_t fixed);

void bz_key_hash(const char *text, unsigned char out[HASH_SIZE]);
void bz_key_problem(bz_record_key *key, uint32_t system, const char *problem);
void bz_key_type(bz_record_key *key, uint32_t system, const char *dtype);
void bz_key_identity(bz_record_key *key, const bz_variant *variant, const bz_setting *setting);
void bz_key_date(bz_record_key *key, int64_t date);
uint32_t bz_key_system_of(const void *key);

void bz_record_encode(const bz_record_key *key, const bz_record *r, bz_buf *out);

/* Strings of *r point into `value`; system and problem are left alone. */
bz_entry_state bz_record_decode(const void *key, size_t key_len, const void *value, size_t len, bz_record *r);

/* Systems: date, name, details under the name as key. Problems: the text under its hash. */
void bz_system_encode(const char *name, uint32_t id, const char *details, int64_t date, bz_buf *out);
bz_entry_state bz_system_decode(const void *key, size_t key_len, const void *value, size_t len, bz_system *s);
void bz_problem_encode(const char *problem, bz_buf *out);
bz_entry_state bz_problem_decode(const void *key, size_t key_len, const void *value, size_t len, const char **problem);

/* Its strings but for the system's name and the problem's text, in the order in which an entry has them. */
enum { N_STRINGS = 8 };
void bz_record_strings(bz_record *r, const char **out[N_STRINGS]);

/* As bz_record_check, without the system's name and the problem's text: those are not in the entry. */
int bz_record_check_content(const bz_record *r, bz_error *err);

/* The text form of a system, with the line's end. */
void bz_system_line(bz_buf *out, const bz_system *s);

/* "" for NULL */
const char *bz_text_or_empty(const char *s);

/* A name as a system must have: slug, or slug@stack, of letters, digits and ._+- */
int bz_system_check(const char *name, bz_error *err);

/* Valid UTF-8 without control characters, at most `limit` bytes. */
bool bz_text_is_plain(const char *s, size_t limit);

#endif
