#include "base/utf8.h"

int utf8_read(const unsigned char *s, uint32_t *character)
{
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80) {
        *character = s[0];
        return 1;
    }
    int n = (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (n == 0 || c < LEAST[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *character = c;
    return n;
}

bool is_unsafe(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } RANGES[] = {
        {0, 0x1f},        {0x7f, 0x9f},                                         /* control characters */
        {0x61c, 0x61c},   {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}, /* direction of writing */
        {0x2028, 0x2029},                                                       /* line and paragraph */
    };
    for (unsigned i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        if (c >= RANGES[i].first && c <= RANGES[i].last)
            return true;
    return false;
}
