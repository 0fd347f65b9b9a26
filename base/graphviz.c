#include "base/graphviz.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <graphviz/gvc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The functions we use, under the names the library gives them. */
typedef struct {
    void *cgraph, *gvc;
    Agraph_t *(*read)(const char *);
    int (*close)(Agraph_t *);
    GVC_t *(*context)(void);
    int (*layout)(GVC_t *, Agraph_t *, const char *);
    int (*render)(GVC_t *, Agraph_t *, const char *, char **, unsigned *);
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

/* One context for the whole process, never freed: Graphviz's text layout remembers the last font's name by its address,
 * which a context takes with it, and compares with it in the next graph. */
static GVC_t *context_of(const library *lib)
{
    static GVC_t *context;
    if (!context)
        context = lib->context();
    return context;
}

static int load(library *lib, bz_error *err)
{
    lib->cgraph = dlopen("libcgraph.so.6", RTLD_NOW);
    lib->gvc = dlopen("libgvc.so.6", RTLD_NOW);
    if (!lib->cgraph || !lib->gvc || find(lib->cgraph, "agmemread", &lib->read) ||
        find(lib->cgraph, "agclose", &lib->close) || find(lib->gvc, "gvContext", &lib->context) ||
        find(lib->gvc, "gvLayout", &lib->layout) || find(lib->gvc, "gvRenderData", &lib->render) ||
        find(lib->gvc, "gvFreeRenderData", &lib->free_data) || find(lib->gvc, "gvFreeLayout", &lib->free_layout))
        return bz_fail(err, BZ_FAILED,
                       "drawing needs the Graphviz library (libgvc.so.6, Debian package libgvc6): install it, or "
                       "write --dot and draw it elsewhere");
    return 0;
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
    int *row =
        bz_zeroed((size_t)n + 1, sizeof *row); /* edges are written by the node that they end at, first to last */
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

int bz_graphviz_svg(const char *dot, bz_buf *svg, bz_error *err)
{
    library lib = {0};
    double much = effort(dot);
    if (much > HASTY)
        return bz_fail(err, BZ_FAILED,
                       "the graph is too big to be drawn: %.0f nodes and rows that edges cross, %d can be; 'benanza "
                       "analyze --html' draws "
                       "it in parts, --dot writes it for other tools",
                       much, HASTY);
    if (load(&lib, err))
        return -1;
    int failed = 0;
    char *data = NULL;
    unsigned n = 0;
    GVC_t *context = context_of(&lib);
    bz_buf text = {0};
    size_t head = much > WHOLE ? head_of(dot) : 0;
    bz_buf_put(&text, dot, head);
    bz_buf_puts(&text, head ? " graph [mclimit=0.1 nslimit=1 nslimit1=1 splines=line] "
                            : ""); /* fewer rounds, straight lines */
    bz_buf_puts(&text, dot + head);
    Agraph_t *graph = lib.read(bz_buf_text(&text));
    bz_buf_free(&text);
    if (!graph || lib.layout(context, graph, "dot"))
        failed = bz_fail(err, BZ_FAILED, "Graphviz could not lay out the graph: write --dot and look at it");
    else if (lib.render(context, graph, "svg", &data, &n))
        failed = bz_fail(err, BZ_FAILED, "Graphviz could not render the graph: write --dot and look at it");
    else
        bz_buf_put(svg, data, n);
    if (data)
        lib.free_data(data);
    if (graph) {
        lib.free_layout(context, graph);
        lib.close(graph);
    }
    /* The libraries stay loaded: their plug-ins register exit handlers. */
    return failed;
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
        char *line = strndup(s, whole);
        bz_buf clean = {0};
        bz_buf_clean(&clean, line ? line : "");
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
        bz_buf_free(&clean);
        free(line);
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
