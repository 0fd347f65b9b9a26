/* JSON read token by token from a window that moves over a file. It does what a parser with callbacks does, in a third of the time: most
 * of a Chrome trace are names and numbers that are looked at once. Private to profile/. */
#ifndef BZ_PROFILE_TOKENS_H
#define BZ_PROFILE_TOKENS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    BZ_TOKEN_MORE, /* the window ends inside of a token, which begins at `at` */
    BZ_TOKEN_BAD,  /* what stands at `at` is no JSON, or nested deeper than BZ_TOKENS_DEEPEST */
    BZ_TOKEN_END,  /* behind the value: what follows it is not looked at */
    BZ_TOKEN_OPEN_MAP,
    BZ_TOKEN_OPEN_ARRAY,
    BZ_TOKEN_CLOSE_MAP,
    BZ_TOKEN_CLOSE_ARRAY,
    BZ_TOKEN_KEY,    /* with its colon */
    BZ_TOKEN_STRING, /* escapes are undone */
    BZ_TOKEN_NUMBER, /* as it is written */
    BZ_TOKEN_WORD,   /* true, false, null */
    BZ_TOKEN_NAN,    /* NaN, Infinity: no JSON, but some programs write them */
} bz_token;

enum { BZ_TOKENS_DEEPEST = 512 };

/* Zeroed, it stands before the first token. The caller sets `at` and `end` to the window: at first, and behind BZ_TOKEN_MORE to one that begins
 * with what `at` pointed to. Free `plain`. */
typedef struct bz_tokens {
    const char *at, *end;
    const char *text; /* [n] of a key, string, number, word; valid until the next token */
    size_t n;
    const char *key; /* [key_n] of a member */
    size_t key_n;
    int depth;
    bool too_deep, in_map; /* in_map: the innermost of what is open is a map */
    int expected;
    uint64_t maps[BZ_TOKENS_DEEPEST / 64]; /* bits: of what is open, which are maps */
    bz_buf plain;                          /* of a string with escapes */
} bz_tokens;

bz_token bz_tokens_next(bz_tokens *k);

/* A key and its value at once, which nearly all of a trace is. BZ_TOKEN_STRING or BZ_TOKEN_NUMBER, the value's; or BZ_TOKEN_MORE: here stands no such
 * pair, or one with escapes or exponents, or the window ends in it. Nothing was read then, and bz_tokens_next says what it is. */
bz_token bz_tokens_member(bz_tokens *k);
void bz_tokens_again(bz_tokens *k); /* behind BZ_TOKEN_END: another value follows */

#endif
