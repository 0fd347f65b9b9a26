/* Generated folders are built with CMake, quietly. */
#include "bench/bench.h"
#include "bench/child.h"

#include "base/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folder with the runtime's package: in the build tree, installed beside the program, or where it
 * was when this was compiled. */
static void find_runtime(char *out, size_t size)
{
    static const char *const PLACES[] = {"benanza-runtime", "../" BENANZA_LIBDIR "/cmake/benanza-runtime"};
    char folder[BZ_FOLDER_MAX], file[3200];
    bz_folder_program(folder);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        snprintf(out, size, "%s/%s", folder, PLACES[i]);
        snprintf(file, sizeof file, "%s/benanza-runtime-config.cmake", out);
        if (!access(file, R_OK))
            return;
    }
    snprintf(out, size, "%s", BENANZA_RUNTIME_DIR);
}

/* Runs a program with its output in the log. Returns its status, -1 where it could not run. */
static int run_logged(char *const *argv, int log)
{
    pid_t child;
    bz_error missing;
    if (bz_child_start(&child, argv, true, (bz_child_file[]){{log, STDOUT_FILENO}, {log, STDERR_FILENO}}, 2, &missing))
        return -1;
    int status = bz_child_wait(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first line of a log that tells of an error, without what a terminal would obey; empty where there is none. CMake's own has its text
 * in the lines behind it, which begin with blanks. */
static void first_error(const char *path, bz_buf *out)
{
    enum { LOOK = 100, LONGEST = 200 }; /* a compiler that complains of the first file complains of all */
    BZ_FREED char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");
    bool cmake = false, full = false;
    while (f && !full && getline(&line, &cap, f) > 0)
        full = strstr(line, strerror(ENOSPC)) != NULL;
    if (full)
        bz_buf_printf(out, "the file system of %.*s is full: make room, or set TMPDIR to another folder",
                      (int)(strrchr(path, '/') - path), path);
    if (f)
        rewind(f);
    for (int i = 0; f && !full && i < LOOK && out->len < LONGEST && getline(&line, &cap, f) > 0; i++) {
        line[strcspn(line, "\r\n")] = 0;
        if (strlen(line) > LONGEST)
            line[LONGEST] = 0;
        const char *text = line + strspn(line, " ");
        if (!*text || (!cmake && !strcasestr(line, "error")))
            continue;
        if (!cmake && !strncmp(line, "CMake Error", 11)) {
            bz_buf_puts(out, "CMake says:");
            cmake = true;
            continue;
        }
        if (cmake && text == line)
            break;
        bz_buf_puts(out, cmake ? " " : "");
        bz_buf_clean(out, text);
        if (!cmake || text[strlen(text) - 1] == '.') /* CMake's next sentence is that a log follows */
            break;
    }
    if (f)
        fclose(f);
}

/* A folder that was copied with what had been built in it: CMake refuses to go on in another place, so it begins anew. */
static void forget_other_place(const char *here, const char *build)
{
    static const char HOME[] = "CMAKE_HOME_DIRECTORY:INTERNAL=";
    char path[3400], *line = NULL;
    size_t cap = 0;
    bool same = true;
    snprintf(path, sizeof path, "%s/CMakeCache.txt", build);
    FILE *f = fopen(path, "r");
    while (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strncmp(line, HOME, sizeof HOME - 1))
            same = !strcmp(line + sizeof HOME - 1, here);
    }
    free(line);
    if (f)
        fclose(f);
    if (!same)
        unlink(path);
}

int bz_bench_build(const char *folder, bz_error *err)
{
    char build[3300], log_path[3400], runtime[3100], package[3200], file[3300], place[PATH_MAX],
        temporary[PATH_MAX + 32];
    snprintf(file, sizeof file, "%s/manifest.json", folder);
    if (access(file, R_OK))
        return bz_fail(err, BZ_BAD_INPUT, "%s: is no folder of benchmarks; 'benanza gen MODEL -o %s' makes one", folder,
                       folder);
    snprintf(build, sizeof build, "%s/build", folder);
    snprintf(log_path, sizeof log_path, "%s/build.log", folder);
    find_runtime(runtime, sizeof runtime);
    snprintf(package, sizeof package, "-Dbenanza-runtime_DIR=%s", runtime);
    const char *here = realpath(folder, place) ? place : folder;
    forget_other_place(here, build);
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", log_path, strerror(errno));
    char *version[] = {"ninja", "--version", NULL};
    bool ninja = run_logged(version, log) == 0;
    /* A compiler that is killed leaves its files in our folder, which goes with us. */
    snprintf(temporary, sizeof temporary, "TMPDIR=%s/build", here);
    char *configure[] = {"env", temporary, "cmake", "-S",       (char *)folder,
                         "-B",  build,     package, "-Wno-dev", ninja ? "-GNinja" : NULL,
                         NULL};
    char *make[] = {"env", temporary, "cmake", "--build", build, "--parallel", NULL};
    bz_progress progress = bz_progress_start("building the benchmarks", 0);
    int configured = run_logged(configure, log), bad = configured || run_logged(make, log);
    bz_progress_end(&progress);
    close(log);
    if (!bad)
        return 0;
    if (!bz_bench_stopped())
        bz_keeper_forget_path(folder); /* the log is to be read */
    BZ_SCOPED(bz_buf) why = {0};
    if (configured == 127 || (configured < 0 && !bz_bench_stopped())) /* env's, or env itself is not there */
        bz_buf_puts(&why, "there is no cmake in $PATH, and it takes a C compiler, too: 'apt install cmake gcc'");
    else
        first_error(log_path, &why);
    bz_fail(err, BZ_FAILED, "the benchmarks cannot be built%s%s; %s says more", why.len ? ": " : "", bz_buf_text(&why),
            log_path);
    return -1;
}

const char *bz_bench_folder_device(const char *folder)
{
    char path[4200];
    for (const bz_backend_row *b = bz_backends; b->name; b++) {
        snprintf(path, sizeof path, "%s/build/benanza-%s.so", folder, b->name);
        if (b->device && !access(path, F_OK))
            return b->name;
    }
    return NULL;
}
