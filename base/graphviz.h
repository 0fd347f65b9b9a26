/* DOT to SVG by the Graphviz library, which is loaded when it is first asked for: most commands
 * draw nothing and should not pay for it. */
#ifndef BZ_GRAPHVIZ_H
#define BZ_GRAPHVIZ_H

#include "base/buf.h"
#include "base/error.h"

/* Lays `dot` out and appends the SVG document to `svg`. */
int bz_graphviz_svg(const char *dot, bz_buf *svg, bz_error *err);

/* Appends `s` as a quoted DOT string: escaped and cleaned; line breaks stay. Graphviz refuses strings over 16 kB, and nobody
 * reads them: they are cut. */
void bz_graphviz_quote(bz_buf *dot, const char *s);

#endif
