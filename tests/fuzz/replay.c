/* Stands in for libFuzzer where there is none: runs the target over files and folders of files.
 *
 * With "seen FILE NAME" before these, what the target tells of all of them (SAW) is held against the line of that name in FILE: how many inputs
 * there are, and a hash. With "print" before them all that is told is printed, and with "list NAME" the line: for tests/seen.
 * Then inputs that differ from these in a byte, a number or a line are run, too, as forms that no file here has. */
#include "fuzz.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum { AROUND = 500, LEAST = 8 }; /* places of all inputs together that are changed; of each at least */

static uint64_t told = 0xcbf29ce484222325; /* FNV-1a */
static bool prints, tells;
static bool told_of;  /* what is told is listed, printed, or compared: of inputs beside these, too */
static size_t around; /* places of each input that are changed */

void fuzz_saw(const void *what, size_t n)
{
    tells = true;
    for (const unsigned char *at = what, *end = at + n; at < end; at++)
        told = (told ^ *at) * 0x100000001b3;
    if (prints)
        fwrite(what, 1, n, stdout), putchar('\n');
}

/* A copy of its own length: a sanitizer sees the first byte too far. */
static void run_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* The first number at `at` or behind is 0, or the one in front of it: what was longer or later is equal. */
static void run_numbers(const uint8_t *data, size_t size, size_t at)
{
    enum { FAR = 64 };
    const size_t limit = size - at > FAR ? at + FAR : size;
    while (at < limit && !isdigit(data[at]))
        at++;
    size_t from = at, to = at;
    while (from > 0 && isdigit(data[from - 1]))
        from--;
    while (to < size && isdigit(data[to]))
        to++;
    size_t before_to = from;
    while (before_to > 0 && !isdigit(data[before_to - 1]))
        before_to--;
    size_t before = before_to;
    while (before > 0 && isdigit(data[before - 1]))
        before--;
    if (at == limit || before == before_to)
        return;
    uint8_t *copy = malloc(size + before_to - before + 1);
    if (!copy)
        abort();
    memcpy(copy, data, from);
    for (int zero = 0; zero <= 1; zero++) {
        size_t n = zero ? 1 : before_to - before;
        memcpy(copy + from, zero ? (const uint8_t *)"0" : data + before, n);
        memcpy(copy + from + n, data + to, size - to);
        if (prints)
            printf("-- the number at byte %zu is %.*s\n", from, (int)n, (const char *)copy + from);
        run_bytes(copy, from + n + size - to);
    }
    free(copy);
}

/* The line behind `at` is gone, or there twice. */
static void run_lines(const uint8_t *data, size_t size, size_t at)
{
    const uint8_t *from = memchr(data + at, '\n', size - at),
                  *to = from ? memchr(from + 1, '\n', size - (size_t)(from + 1 - data)) : NULL;
    if (!to)
        return;
    size_t head = (size_t)(from - data), line = (size_t)(to - from);
    uint8_t *copy = malloc(size + line);
    if (!copy)
        abort();
    memcpy(copy, data, head);
    memcpy(copy + head, to, size - head - line);
    if (prints)
        printf("-- the line behind byte %zu is gone\n", at);
    run_bytes(copy, size - line);
    memcpy(copy, data, head + line);
    memcpy(copy + head + line, from, size - head);
    if (prints)
        printf("-- the line behind byte %zu is there twice\n", at);
    run_bytes(copy, size + line);
    free(copy);
}

/* The input with one byte one more, one less, and gone, in places all over it. */
static void run_neighbours(uint8_t *data, size_t size)
{
    size_t step = around && size > around ? size / around : 1;
    for (size_t at = step / 2; around && at < size; at += step) {
        uint8_t byte = data[at];
        for (int change = -1; change <= 1; change += 2) {
            data[at] = (uint8_t)(byte + change);
            if (prints)
                printf("-- byte %zu is %d\n", at, data[at]);
            run_bytes(data, size);
        }
        memmove(data + at, data + at + 1, size - at - 1);
        if (prints)
            printf("-- byte %zu is gone\n", at);
        run_bytes(data, size - 1);
        memmove(data + at + 1, data + at, size - at - 1);
        data[at] = byte;
        run_numbers(data, size, at);
        run_lines(data, size, at);
    }
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st)) {
        perror(path);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size + 1);
    int failed = !data || fread(data, 1, size, f) != size;
    fclose(f);
    if (prints)
        printf("== %s\n", path);
    if (!failed) {
        run_bytes(data, size);
        if (tells)
            run_neighbours(data, size);
    }
    free(data);
    return failed ? -1 : 0;
}

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int run_folder(const char *path, int *n)
{
    struct dirent **entry;
    int failed = 0, found = scandir(path, &entry, is_shown, alphasort);
    around = !told_of || found <= 0 ? 0 : AROUND / found > LEAST ? (size_t)(AROUND / found) : LEAST;
    for (int i = 0; i < found; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
        failed |= run_file(file);
        free(entry[i]);
        ++*n;
    }
    if (found >= 0)
        free(entry);
    return found < 0 ? -1 : failed;
}

static void put_line(FILE *to, const char *name, int n)
{
    if (tells)
        fprintf(to, "%s %d %016llx\n", name, n, (unsigned long long)told);
}

/* 0 where FILE has the line, or the target tells nothing and FILE has no line of it. */
static int compare(const char *file, const char *name, int n)
{
    char line[200], wanted[200] = "";
    bool has = false, same = false;
    FILE *f = fopen(file, "r"), *to = fmemopen(wanted, sizeof wanted, "w");
    put_line(to, name, n);
    fclose(to);
    while (f && fgets(line, sizeof line, f)) {
        has |= !strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ';
        same |= !strcmp(line, wanted);
    }
    if (f)
        fclose(f);
    if (tells ? same : !has)
        return 0;
    fprintf(stderr, "%s has another line than this, see tests/seen: %s", file, wanted);
    return -1;
}

int main(int argc, char **argv)
{
    int failed = 0, n = 0;
    bool compares = argc > 4 && !strcmp(argv[1], "seen"), lists = argc > 3 && !strcmp(argv[1], "list");
    prints = argc > 2 && !strcmp(argv[1], "print");
    told_of = compares || lists || prints;
    for (int i = compares ? 4 : lists ? 3 : prints ? 2 : 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st)) {
            perror(argv[i]);
            return 1;
        }
        if (S_ISDIR(st.st_mode))
            failed |= run_folder(argv[i], &n);
        else {
            failed |= run_file(argv[i]);
            n++;
        }
    }
    if (compares)
        failed |= compare(argv[2], argv[3], n);
    if (lists)
        put_line(stdout, argv[2], n);
    else
        printf("%d inputs\n", n);
    return failed || n == 0;
}
