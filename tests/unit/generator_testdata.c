/* The models of the ONNX package's own tests, and each with a byte one more or one less in places all over it: their layers, and the calls that
 * these are lowered to. Loops, branches, sequences and texts are among them, which the tables of single operators have not. generator_testdata.txt
 * has a hash for each family (seen.h); conformance_testdata says what is right of the models as they are. */
#include "generator/generator.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_say.h"
#include "seen.h"

#define DATA "/usr/share/libonnx-testdata/data/"

enum { MAX_FAMILIES = 400, PLACES = 24, MOST = 20000 };

static void say_lowering(const bz_layer *l, bz_buf *out)
{
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(l, BZ_UNDEFINED, &arena, &low);
    bz_buf_puts(out, low.free ? "free" : low.n ? "" : "none");
    for (int a = 0; a < low.n; a++)
        for (int i = 0; i < low.alternative[a].n; i++)
            bz_buf_printf(out, "%s%s", i ? " + " : " | ", low.alternative[a].text[i]);
    bz_buf_putc(out, '\n');
    bz_arena_free(&arena);
}

static void say_bytes(const uint8_t *bytes, size_t n, seen *s)
{
    bz_error err = {0};
    bz_model *m = NULL;
    bz_layers *l = NULL;
    bz_spares spares;
    s->tried++;
    if (bz_model_parse(bytes, n, "test", &m, &err)) {
        bz_buf_puts(&s->text, "no model\n");
    } else if (bz_layers_infer(m, &(bz_infer_options){.trips = 3}, &l, &err)) {
        bz_buf_puts(&s->text, "refused\n");
    } else {
        s->taken++;
        say_spares(l, &spares, &s->text);
        for (int i = 0; i < l->n; i++) {
            say_layer(m, &l->layer[i], &s->text);
            say_lowering(&l->layer[i], &s->text);
        }
    }
    bz_layers_free(l);
    bz_model_free(m);
}

static void say_file(const char *path, seen *s)
{
    static uint8_t bytes[MOST];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    if (!n || n == sizeof bytes)
        return;
    bz_buf_printf(&s->text, "== %s\n", path);
    say_bytes(bytes, n, s);
    for (size_t place = 0; place < PLACES; place++) {
        size_t at = n * (2 * place + 1) / (2 * PLACES);
        for (int change = 1; change >= -1; change--) { /* 1, 0 and -1 add up to nothing */
            bytes[at] = (uint8_t)(bytes[at] + (change ? 1 : -2));
            if (change >= 0)
                say_bytes(bytes, n, s);
        }
    }
}

/* "node/conv" of node/test_conv_with_strides_padding, "simple/…" likewise; those of other sets are one family each. */
static void family_of(const char *set, const char *entry, char out[80])
{
    const char *word = strncmp(entry, "test_", 5) ? "all" : entry + 5;
    snprintf(out, 80, "%s/%.*s", set, (int)strcspn(word, "_"), word);
}

static const char *const SETS[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};

static int list_set(const char *set, struct dirent ***entry)
{
    char path[300];
    snprintf(path, sizeof path, DATA "%s", set);
    return scandir(path, entry, NULL, alphasort);
}

static void say_family(const char *family, seen *s)
{
    for (size_t k = 0; k < sizeof SETS / sizeof *SETS; k++) {
        struct dirent **entry;
        int n = list_set(SETS[k], &entry);
        for (int i = 0; i < n; i++) {
            char name[80], path[700];
            family_of(SETS[k], entry[i]->d_name, name);
            snprintf(path, sizeof path, DATA "%s/%s/model.onnx", SETS[k], entry[i]->d_name);
            if (entry[i]->d_name[0] != '.' && !strcmp(name, family))
                say_file(path, s);
            free(entry[i]);
        }
        if (n >= 0)
            free(entry);
    }
}

/* Models for single operators, and the folder itself and the one above it. Later packages have more. */
enum { OF_DEBIAN_12 = 932 + 2 };

int main(int argc, char **argv)
{
    static char family[MAX_FAMILIES][80];
    const char *names[MAX_FAMILIES];
    int n = 0;
    for (size_t k = 0; k < sizeof SETS / sizeof *SETS; k++) {
        struct dirent **entry;
        int found = list_set(SETS[k], &entry);
        if (!k && found >= 0 && found != OF_DEBIAN_12) {
            puts("skipped: the list is of Debian 12's libonnx-testdata");
            return 77;
        }
        for (int i = 0; i < found; i++) {
            family_of(SETS[k], entry[i]->d_name, family[n]);
            if (entry[i]->d_name[0] != '.' && n < MAX_FAMILIES - 1 && (!n || strcmp(family[n], family[n - 1]) != 0)) {
                names[n] = family[n];
                n++;
            }
            free(entry[i]);
        }
        if (found >= 0)
            free(entry);
    }
    if (!n) {
        puts("skipped: no libonnx-testdata here");
        return 77;
    }
    return seen_main(argc, argv, names, n, say_family, BENANZA_SOURCE "/tests/unit/generator_testdata.txt");
}
