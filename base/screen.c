#include "base/screen.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bz_screen screen_now;

bz_screen bz_screen_now(void)
{
    return screen_now;
}

void bz_screen_set(bz_screen screen)
{
    screen_now = screen;
}

/* terminfo is asked where its library is: it comes with Debian's shell, but a system may do without. Where it is not
 * there, every terminal but a dumb one is taken to have colours. */
static bool ask_terminfo(void)
{
    const char *term = getenv("TERM");
    if (!term || !*term || !strcmp(term, "dumb"))
        return false;
    void *library = dlopen("libtinfo.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return true;
    int (*setup)(const char *, int, int *), (*number)(const char *), error = 0;
    *(void **)&setup = dlsym(library, "setupterm");
    *(void **)&number = dlsym(library, "tigetnum");
    return setup && number && setup(NULL, STDOUT_FILENO, &error) == 0 && number("colors") >= 8;
}

bool bz_screen_has_colours(void)
{
    static int known; /* 1: it has, -1: it has not. Asked once, for stdout and stderr: each answer stays in memory */
    known = known ? known : ask_terminfo() ? 1 : -1;
    return known > 0;
}

int bz_screen_columns(int fd)
{
    struct winsize size;
    return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

void bz_style_begin(bz_buf *out, bz_style style)
{
    static const char *const CODES[] = {"", "\033[1m", "\033[32m", "\033[31m", "\033[33m"};
    if (screen_now.colour)
        bz_buf_puts(out, CODES[style]);
}

void bz_style_end(bz_buf *out, bz_style style)
{
    if (screen_now.colour && style)
        bz_buf_puts(out, "\033[0m");
}
