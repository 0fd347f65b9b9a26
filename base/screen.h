/* How results look where a person reads them: how wide tables may be, and colours. The command line sets it once, before
 * anything is printed. Until then, and in pipes and files, tables are whole and nothing has a colour. */
#ifndef BZ_SCREEN_H
#define BZ_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>

typedef struct bz_screen {
    int columns; /* of the terminal; 0: no limit */
    bool colour;
} bz_screen;

bz_screen bz_screen_now(void);
void bz_screen_set(bz_screen screen);

/* Whether the terminal in $TERM has colours, by terminfo. */
bool bz_screen_has_colours(void);
int bz_screen_columns(int fd); /* 0 where it is no terminal, or does not say */

typedef enum {
    BZ_STYLE_NONE,
    BZ_STYLE_STRONG,  /* the answer, titles of columns */
    BZ_STYLE_GOOD,    /* faster */
    BZ_STYLE_BAD,     /* slower */
    BZ_STYLE_WARNING, /* what makes a number doubtful */
} bz_style;

/* What is put between the two has the style. Both put nothing where there are no colours. */
void bz_style_begin(bz_buf *out, bz_style style);
void bz_style_end(bz_buf *out, bz_style style);

#endif
