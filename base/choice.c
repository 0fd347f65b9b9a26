#include "base/choice.h"

#include "base/buf.h"

#include <string.h>

/* Edit distance, for names short enough that the table fits on the stack. Two neighbours in the wrong order are one mistake: "resnet81" is
 * nearer to "resnet18" than to "resnet50". */
static int distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    int n = (int)strnlen(a, MAX + 1), m = (int)strnlen(b, MAX + 1), d[MAX + 1][MAX + 1];
    if (n > MAX || m > MAX)
        return MAX;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *bz_choice_meant(const char *typed, const char *const *names, int n)
{
    const char *best = NULL;
    int least = (int)strnlen(typed, 100) / 3 + 1;
    for (int i = 0; i < n; i++) {
        int d = distance(typed, names[i]);
        if (d <= least && d < (int)strlen(names[i])) {
            least = d - 1;
            best = names[i];
        }
    }
    return best;
}

int bz_choice_fail(bz_error *err, const char *what, const char *typed, const char *const *names, int n)
{
    BZ_SCOPED(bz_buf) text = {0};
    const char *meant = bz_choice_meant(typed, names, n);
    bz_buf_printf(&text, "%s takes ", what);
    for (int i = 0; i < n; i++)
        bz_buf_printf(&text, "%s%s", !i ? "" : i + 1 == n ? " or " : ", ", names[i]);
    bz_buf_printf(&text, ", not '%.60s'", typed);
    if (meant)
        bz_buf_printf(&text, ": did you mean %s?", meant);
    return bz_fail(err, BZ_USAGE, "%s", bz_buf_text(&text));
}

bool bz_word_next(const char **words, char *out, size_t size)
{
    *words += strspn(*words, " \n");
    size_t n = strcspn(*words, " \n"), take = n < size ? n : size - 1;
    memcpy(out, *words, take);
    out[take] = 0;
    *words += n;
    return n > 0;
}

bool bz_has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    if (!n || strchr(word, ' '))
        return false;
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ' || p[-1] == '\n') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
            return true;
    return false;
}
