/* For tests that draw: what the libraries behind Graphviz never free is not ours to mend. */
#ifndef BZ_UNIT_DRAWING_H
#define BZ_UNIT_DRAWING_H

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libgvc\nleak:libcgraph\nleak:libfontconfig\nleak:libpango\nleak:libglib\nleak:libgobject\n"
           "leak:libcairo\nleak:libcdt\nleak:libexpat\nleak:libgvplugin\n";
}

#endif
