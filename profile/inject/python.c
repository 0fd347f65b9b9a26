/* Python frames of the calling thread, for back-traces that name the line of the user's program. The interpreter is
 * used through symbols that the program itself brought along; without one there are no frames. */
#include "profile/inject/record.h"

#include <dlfcn.h>
#include <stdio.h>

typedef struct object object;

static struct {
    int state; /* 0 not looked yet, 1 there, -1 absent */
    int (*initialized)(void);
    object *(*this_thread)(void);
    int (*ensure)(void);
    void (*release)(int);
    object *(*frame)(void);
    object *(*back)(object *);
    object *(*code)(object *);
    int (*line)(object *);
    object *(*attribute)(object *, const char *);
    const char *(*utf8)(object *);
    void (*decref)(object *);
    void (*clear_error)(void);
} py;

static void look(void)
{
    static const struct {
        const char *name;
        void **to;
    } SYMBOLS[] = {
        {"Py_IsInitialized", (void **)(void *)&py.initialized},
        {"PyGILState_GetThisThreadState", (void **)(void *)&py.this_thread},
        {"PyGILState_Ensure", (void **)(void *)&py.ensure},
        {"PyGILState_Release", (void **)(void *)&py.release},
        {"PyEval_GetFrame", (void **)(void *)&py.frame},
        {"PyFrame_GetBack", (void **)(void *)&py.back},
        {"PyFrame_GetCode", (void **)(void *)&py.code},
        {"PyFrame_GetLineNumber", (void **)(void *)&py.line},
        {"PyObject_GetAttrString", (void **)(void *)&py.attribute},
        {"PyUnicode_AsUTF8", (void **)(void *)&py.utf8},
        {"Py_DecRef", (void **)(void *)&py.decref},
        {"PyErr_Clear", (void **)(void *)&py.clear_error},
    };
    py.state = 1;
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++)
        if (!(*SYMBOLS[i].to = dlsym(RTLD_DEFAULT, SYMBOLS[i].name)))
            py.state = -1;
}

static void describe(object *frame, char text[160])
{
    object *code = py.code(frame), *file = py.attribute(code, "co_filename"), *name = py.attribute(code, "co_name");
    const char *f = file ? py.utf8(file) : NULL, *n = name ? py.utf8(name) : NULL;
    snprintf(text, 160, "%.60s (%.80s:%d)", n ? n : "?", f ? f : "?", py.line(frame));
    py.decref(file);
    py.decref(name);
    py.decref(code);
}

int bzi_python_frames(char text[][160], int max)
{
    if (!py.state)
        look();
    /* a thread that Python does not know has no frames, and would be registered by asking */
    if (py.state < 0 || !py.initialized() || !py.this_thread())
        return 0;
    int gil = py.ensure(), n = 0;
    object *frame = py.frame();
    for (object *own = NULL; frame && n < max;) {
        describe(frame, text[n++]);
        object *outer = py.back(frame); /* a new reference; the innermost frame was a borrowed one */
        if (own)
            py.decref(own);
        own = frame = outer;
    }
    py.clear_error();
    py.release(gil);
    return n;
}
