#include "base/graphviz.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The functions we use, under the names the library gives them. Its headers are not: their package brings a desktop along, 80 packages. */
typedef struct Agraph_s Agraph_t;
typedef struct GVC_s GVC_t;

typedef struct {
    void *cgraph, *gvc;
    bool wide; /* a length is a size_t, and no unsigned */
    Agraph_t *(*read)(const char *);
    int (*close)(Agraph_t *);
    GVC_t *(*context)(void);
    int (*layout)(GVC_t *, Agraph_t *, const char *);
    int (*render)(GVC_t *, Agraph_t *, const char *, char **, void *length);
    void (*free_data)(char *);
    int (*free_layout)(GVC_t *, Agraph_t *);
} library;

/* ISO C has no cast from object to function pointer; POSIX promises that copying the bits works. */
static int find(void *handle, const char *name, void *function)
{
    void *p = dlsym(handle, name);
    memcpy(function, &p, sizeof p);
    return p ? 0 : -1;
}

static bool load(library *lib)
{
    static const struct {
        const char *cgraph, *gvc;
        bool wide;
    } VERSIONS[] = {{"libcgraph.so.6", "libgvc.so.6", false}, {"libcgraph.so.8", "libgvc.so.7", true}};
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS && !lib->gvc; i++) {
        lib->cgraph = dlopen(VERSIONS[i].cgraph, RTLD_NOW);
        lib->gvc = dlopen(VERSIONS[i].gvc, RTLD_NOW);
        lib->wide = VERSIONS[i].wide;
    }
    return lib->cgraph && lib->gvc && !find(lib->cgraph, "agmemread", &lib->read) &&
           !find(lib->cgraph, "agclose", &lib->close) && !find(lib->gvc, "gvFreeRenderData", &lib->free_data) &&
           !find(lib->gvc, "gvFreeLayout", &lib->free_layout) && !find(lib->gvc, "gvContext", &lib->context) &&
           !find(lib->gvc, "gvLayout", &lib->layout) && !find(lib->gvc, "gvRenderData", &lib->render);
}

/* How much Graphviz has to lay out: the nodes, and the rows that edges cross, for it puts a node of its own where an edge crosses a row.
 * Its time grows with the square of that and faster: 60 nodes, each with an edge to all later ones, have 36,000 and took minutes. */
enum { WHOLE = 5000, HASTY = 40000 };

/* The next line that names a node: NULL where there is none. An edge ("  n3 -> n7") ends at a later node; for a node both are its number. */
static const char *next_line(const char *at, long *from, long *to)
{
    static const char NODE[] = "\n  n";
    char *end;
    while ((at = strchr(at, '\n')) && strncmp(at, NODE, strlen(NODE)) != 0)
        at++;
    if (!at)
        return NULL;
    *from = *to = strtol(at + strlen(NODE), &end, 10);
    if (!strncmp(end, " -> n", 5))
        *to = strtol(end + 5, NULL, 10);
    return end;
}

static double effort(const char *dot)
{
    long from, to, n = 0;
    double sum = 0;
    for (const char *at = dot; (at = next_line(at, &from, &to));)
        n = to >= n && to < 1 << 24 ? to + 1 : n;
    int *row = bz_zeroed((size_t)n, sizeof *row); /* edges are written by the node that they end at, first to last */
    for (int pass = 0; pass < 2; pass++)
        for (const char *at = dot; (at = next_line(at, &from, &to));) {
            if (from < 0 || from > to || to >= n)
                continue;
            if (from < to && row[to] <= row[from])
                row[to] = row[from] + 1;
            sum += pass ? 1.0 * (from == to) + row[to] - row[from] : 0;
        }
    free(row);
    return sum;
}

/* The bytes up to the graph's first brace, and with it: names before it are quoted. */
static size_t head_of(const char *dot)
{
    bool quoted = false;
    for (size_t i = 0; dot[i]; i++) {
        if (dot[i] == '"' && (!i || dot[i - 1] != '\\'))
            quoted = !quoted;
        if (dot[i] == '{' && !quoted)
            return i + 1;
    }
    return 0;
}

/* ---- a process that draws -------------------------------------------------------------------
 *
 * Where Graphviz and its libraries get no memory they end the process: let it be another one. It is started with the first graph
 * and lives until we end, because loading the libraries takes longer than drawing a small graph. Both ways through a socket: how
 * many bytes, and these; the answer begins with an ending. */

typedef enum { DRAWN, NO_LIBRARY, NO_LAYOUT, NO_PICTURE } ending;

typedef struct answer {
    ending ending;
    size_t n;
} answer;

static bool take(int from, void *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t some = read(from, (char *)out + done, n - done);
        if (!some || (some < 0 && errno != EINTR))
            return false;
        done += some > 0 ? (size_t)some : 0;
    }
    return true;
}

static bool give(int to, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t some = send(to, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (some < 0 && errno != EINTR)
            return false;
        done += some > 0 ? (size_t)some : 0;
    }
    return true;
}

static bool draw(const library *lib, GVC_t *context, const char *dot, int out)
{
    char *data = NULL;
    union {
        unsigned narrow;
        size_t wide;
    } length = {.wide = 0};
    Agraph_t *graph = lib->read(dot);
    answer a = {!graph || lib->layout(context, graph, "dot")         ? NO_LAYOUT
                : lib->render(context, graph, "svg", &data, &length) ? NO_PICTURE
                                                                     : DRAWN,
                0};
    a.n = lib->wide ? length.wide : length.narrow;
    bool good = give(out, &a, sizeof a) && give(out, data, a.n);
    if (data)
        lib->free_data(data);
    if (graph) {
        lib->free_layout(context, graph);
        lib->close(graph);
    }
    return good;
}

/* One context for all graphs: Graphviz's text layout remembers the last font's name by its address, which a context takes with
 * it, and compares with it in the next graph. Its complaints are not for the user: our sentence says what to do. */
static _Noreturn void keep_drawing(int channel)
{
    library lib = {0};
    GVC_t *context = NULL;
    size_t n;
    int nothing = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; nothing >= 0 && fd < 3; fd++)
        dup2(nothing, fd);
    dup2(channel, 3); /* nothing else of ours stays open here */
    close_range(4, ~0U, 0);
    bool loaded = load(&lib) && (context = lib.context());
    while (take(3, &n, sizeof n)) {
        BZ_FREED char *dot = malloc(n + 1);
        if (!dot || !take(3, dot, n))
            _exit(1);
        dot[n] = 0;
        if (!(loaded ? draw(&lib, context, dot, 3) : give(3, &(answer){NO_LIBRARY, 0}, sizeof(answer))))
            _exit(1);
    }
    _exit(0);
}

static int drawer = -1; /* the socket to it */
static pid_t drawer_process;

static int start_drawer(bz_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return bz_fail(err, BZ_FAILED, "Graphviz cannot be started: %s", strerror(errno));
    drawer_process = fork();
    if (!drawer_process)
        keep_drawing(pair[1]);
    close(pair[1]);
    drawer = pair[0];
    return drawer_process < 0 ? bz_fail(err, BZ_FAILED, "Graphviz cannot be started: %s", strerror(errno)) : 0;
}

/* It has crashed, or stands in the middle of an answer: the next graph gets another one. */
static void drop_drawer(void)
{
    close(drawer);
    drawer = -1;
    if (drawer_process > 0 && !kill(drawer_process, SIGKILL))
        waitpid(drawer_process, NULL, 0);
}

static int explain(ending how, bz_error *err)
{
    if (how == NO_LIBRARY)
        return bz_fail(err, BZ_FAILED,
                       "drawing needs the Graphviz library (libgvc.so.6 or .7, Debian packages libgvc6 or libgvc7): "
                       "install it, or write --dot and draw it elsewhere");
    return bz_fail(err, BZ_FAILED, "Graphviz could not %s the graph: write --dot and look at it",
                   how == NO_LAYOUT ? "lay out" : "render");
}

static int ask_drawer(const bz_buf *dot, bz_buf *svg, bz_error *err)
{
    answer a;
    size_t before = svg->len;
    if (drawer < 0 && start_drawer(err))
        return -1;
    if (!give(drawer, &dot->len, sizeof dot->len) || !give(drawer, bz_buf_text(dot), dot->len) ||
        !take(drawer, &a, sizeof a) || !take(drawer, bz_buf_extend(svg, a.n), a.n)) {
        svg->len = before;
        drop_drawer();
        return bz_fail(
            err, BZ_FAILED,
            "Graphviz crashed while it drew the graph, or had too little memory: write --dot and draw it elsewhere");
    }
    return a.ending == DRAWN ? 0 : explain(a.ending, err);
}

int bz_graphviz_svg(const char *dot, bz_buf *svg, bz_error *err)
{
    double much = effort(dot);
    if (much > HASTY)
        return bz_fail(err, BZ_FAILED,
                       "the graph is too big to be drawn: %.0f nodes and rows that edges cross, %d can be; 'benanza "
                       "analyze --html' draws it in parts, --dot writes it for other tools",
                       much, HASTY);
    BZ_SCOPED(bz_buf) text = {0};
    size_t head = much > WHOLE ? head_of(dot) : 0;
    bz_buf_put(&text, dot, head);
    bz_buf_puts(&text, head ? " graph [mclimit=0.1 nslimit=1 nslimit1=1 splines=line] "
                            : ""); /* fewer rounds, straight lines */
    bz_buf_puts(&text, dot + head);
    return ask_drawer(&text, svg, err);
}

enum { LONGEST_STRING = 4000 };

void bz_graphviz_quote(bz_buf *dot, const char *s)
{
    bz_buf_putc(dot, '"');
    size_t begin = dot->len;
    while (*s) { /* line by line: cleaning would turn the breaks into text */
        size_t n = strcspn(s, "\n");
        size_t whole = n < LONGEST_STRING ? n : LONGEST_STRING;
        while (whole && whole < n && ((unsigned char)s[whole] & 0xc0) == 0x80)
            whole--; /* not within a character */
        BZ_SCOPED(bz_buf) line = {0}, clean = {0};
        bz_buf_put(&line, s, whole);
        bz_buf_clean(&clean, bz_buf_text(&line));
        const char *p = bz_buf_text(&clean);
        for (; *p; p++) {
            bool inside = ((unsigned char)*p & 0xc0) == 0x80;
            if (!inside && dot->len - begin >= LONGEST_STRING)
                break;
            if (*p == '"' || *p == '\\')
                bz_buf_putc(dot, '\\');
            bz_buf_putc(dot, *p);
        }
        bool cut = *p || n > LONGEST_STRING;
        s += n;
        if (cut) {
            bz_buf_puts(dot, "…");
            break;
        }
        if (*s) {
            bz_buf_puts(dot, "\\n");
            s++;
        }
    }
    bz_buf_putc(dot, '"');
}
