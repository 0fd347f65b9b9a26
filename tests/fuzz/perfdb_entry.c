/* Values of the database. The first bytes of the input say what it is to be; as hardly any input
 * has a right checksum, it is decoded as it is, and once more with one. */
#include "perfdb/entry.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void decode(const bz_record_key *key, size_t key_len, const char *value, size_t len)
{
    bz_error err;
    bz_record r = {.system = "s", .problem = "p"};
    bz_system s;
    const char *problem;
    if (bz_record_decode(key->byte, KEY_RECORD, value, len, &r) == ENTRY_GOOD && !bz_record_check(&r, &err)) {
        bz_buf out = {0};
        bz_json j = bz_json_to(&out, false);
        bz_record_json(&j, &r);
        SAW(out.data, out.len);
        bz_record_encode(key, &r, &out);
        bz_record again = {.system = "s", .problem = "p"};
        if (bz_record_decode(key->byte, KEY_RECORD, out.data, out.len, &again) != ENTRY_GOOD ||
            bz_record_prefer(&r, &again) != 0)
            abort();
        bz_buf_free(&out);
    }
    if (bz_system_decode(key->byte, key_len, value, len, &s) == ENTRY_GOOD && bz_system_check(s.name, &err))
        abort();
    if (bz_problem_decode(key->byte, key_len, value, len, &problem) == ENTRY_GOOD && strlen(problem) > len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_record_key key = {{0}};
    if (size < 4)
        return 0;
    size_t key_len = data[0] % (KEY_RECORD + 1), fixed = data[1];
    uint16_t version = data[2];
    data += 4;
    size -= 4;
    memcpy(key.byte, data, key_len < size ? key_len : size);
    char *exact = bz_alloc(size, 1); /* so that a sanitizer sees the first byte too far */
    memcpy(exact, data, size);
    decode(&key, key_len, exact, size);
    bz_buf sealed = {0};
    bz_entry_seal(&sealed, key.byte, data[-1] % 2 ? KEY_RECORD : key_len, version, exact, size, fixed);
    free(exact);
    exact = bz_alloc(sealed.len, 1);
    memcpy(exact, sealed.data, sealed.len);
    decode(&key, key_len, exact, sealed.len);
    free(exact);
    bz_buf_free(&sealed);
    return 0;
}
