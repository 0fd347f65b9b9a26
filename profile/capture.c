/* Runs a program with the capture library in front of its libraries, or under Nsight Systems, and reads what came
 * out. Everything lands in one temporary folder first, so that a crash of the program or of ourselves loses
 * nothing but the folder. */
#include "base/keeper.h"
#include "base/load.h"
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* What switches the logs of NVIDIA's libraries on, by version. A library ignores the variables of other versions, so all
 * are set. '@' is the folder; the libraries put the number of the process for %i. */
static const struct {
    const char *name, *value;
} LOGGERS[] = {
    {"CUDNN_LOGINFO_DBG", "1"},  /* cuDNN 7 and 8; 9 still knows it */
    {"CUDNN_LOGLEVEL_DBG", "3"}, /* cuDNN 9: errors, warnings, and calls */
    {"CUDNN_LOGDEST_DBG", "@/cudnn_%i.log"},
    {"CUBLAS_LOGINFO_DBG", "1"},
    {"CUBLAS_LOGDEST_DBG", "@/cublas_%i.log"},
    {"CUBLASLT_LOG_LEVEL", "5"}, /* cuBLASLt 11 on: calls */
    {"CUBLASLT_LOG_FILE", "@/cublaslt_%i.log"},
};

/* Who loads libbenanza-cupti.so into the program. */
static const struct {
    const char *name;
    bool device; /* starts CUPTI; the other one only brings the program's own marks */
} LOADERS[] = {
    {"CUDA_INJECTION64_PATH", true},
    {"NVTX_INJECTION64_PATH", false},
};

static void set_flag(const char *name, bool on)
{
    if (on)
        setenv(name, "1", 1);
    else
        unsetenv(name);
}

static int find_library(char *out, size_t size, bz_error *err)
{
    static const char *const PLACES[] = {"/libbenanza-capture.so",
                                         "/../" BENANZA_LIBDIR "/benanza/libbenanza-capture.so"};
    char self[BZ_FOLDER_MAX];
    bz_folder_program(self);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        if ((size_t)snprintf(out, size, "%s%s", self, PLACES[i]) < size && !access(out, R_OK))
            return 0;
    return bz_fail(err, BZ_FAILED,
                   "libbenanza-capture.so was not found next to benanza or in its lib folder: install benanza whole");
}

static void set_preload(const char *folder, const char *library, const bz_capture_options *o)
{
    char text[PATH_MAX * 2];
    const char *before = getenv("LD_PRELOAD");
    snprintf(text, sizeof text, "%s%s%s", library, before && *before ? ":" : "", before ? before : "");
    if (o->memory) { /* beside the library that is preloaded */
        size_t n = strlen(text), folder_length = (size_t)(strrchr(library, '/') - library);
        snprintf(text + n, sizeof text - n, ":%.*s/libbenanza-memory.so", (int)folder_length, library);
    }
    setenv("LD_PRELOAD", text, 1);
    setenv("BENANZA_CAPTURE_DIR", folder, 1);
    set_flag("BENANZA_CAPTURE_BACKTRACE", o->backtrace);
    set_flag("BENANZA_CAPTURE_MARKS_ONLY", o->marks_only);
    snprintf(text, sizeof text, "%lld", (long long)o->limit);
    setenv("BENANZA_CAPTURE_LIMIT", text, 1);
    /* built where CUDA's headers are; next to the library that is preloaded */
    snprintf(text, sizeof text, "%.*s/libbenanza-cupti.so", (int)(strrchr(library, '/') - library), library);
    if (access(text, R_OK))
        return;
    for (size_t i = 0; i < sizeof LOADERS / sizeof *LOADERS; i++)
        if (!LOADERS[i].device || !(o->marks_only || o->host_only))
            setenv(LOADERS[i].name, text, 1);
}

static void set_environment(const char *folder, const char *library, const bz_capture_options *o)
{
    char text[PATH_MAX * 2];
    if (!o->nsys) /* two that listen to CUPTI do not go together, and their clocks differ */
        set_preload(folder, library, o);
    for (size_t i = 0; o->logs && i < sizeof LOGGERS / sizeof *LOGGERS; i++) {
        bool path = LOGGERS[i].value[0] == '@';
        snprintf(text, sizeof text, "%s%s", path ? folder : "", LOGGERS[i].value + path);
        setenv(LOGGERS[i].name, text, 1);
    }
}

/* Who is told to end, as by a batch system or `timeout`, passes it on and still reads what the program did. Keys that interrupt the
 * program reach it by themselves: what the terminal sends is not passed on, for twice would end it before it has cleaned up. */
static volatile sig_atomic_t told, told_to; /* a signal that came before there was a program; the program */

static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    int why = errno;
    (void)context;
    if (info->si_code == SI_KERNEL)
        return;
    told = signal_number;
    if (told_to > 0)
        kill(told_to, signal_number);
    errno = why;
}

static const int SIGNALS[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof SIGNALS / sizeof *SIGNALS };

static void hold_signals(struct sigaction before[N_SIGNALS])
{
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
        sigaction(SIGNALS[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(SIGNALS[i], &action, NULL);
    }
}

static void release_signals(const struct sigaction before[N_SIGNALS])
{
    for (int i = 0; i < N_SIGNALS; i++)
        sigaction(SIGNALS[i], &before[i], NULL);
}

/* Share of the time in which the program's first thread wanted a processor that it had none, since others had them all. Waits until the program
 * has ended: the kernel tells it until somebody asks for the status. */
static double waited_share(pid_t child)
{
    siginfo_t ended;
    char path[48], text[128];
    double ran, waited;
    while (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    snprintf(path, sizeof path, "proc/%d/schedstat", (int)child);
    if (bz_load_text("", path, text, sizeof text) || sscanf(text, "%lf %lf", &ran, &waited) != 2)
        return 0;
    return ran + waited > 0 ? waited / (ran + waited) : 0;
}

static int run(const char *folder, const char *library, char *const argv[], const bz_capture_options *o, int *status,
               double *waited, bz_error *err)
{
    /* a failing exec is told through a pipe that a succeeding one closes */
    int channel[2];
    struct sigaction before[N_SIGNALS];
    if (pipe2(channel, O_CLOEXEC))
        return bz_fail(err, BZ_FAILED, "%s: cannot be started: %s", argv[0], strerror(errno));
    hold_signals(before);
    pid_t child = fork();
    if (child == 0) {
        release_signals(before);
        signal(SIGPIPE, SIG_DFL);
        set_environment(folder, library, o);
        execvp(argv[0], argv);
        int why = errno;
        if (write(channel[1], &why, sizeof why) < 0)
            _exit(126);
        _exit(127);
    }
    told_to = child;
    if (child > 0)
        bz_keeper_program(child); /* nobody else would read what it records */
    if (child > 0 && told)
        kill(child, told);
    close(channel[1]);
    int why = 0;
    bool failed = child < 0 || read(channel[0], &why, sizeof why) == sizeof why;
    if (child < 0)
        why = errno;
    close(channel[0]);
    *waited = child > 0 ? waited_share(child) : 0;
    while (child > 0 && waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0)
        bz_keeper_forget_program(child);
    told_to = told = 0;
    release_signals(before);
    return failed ? bz_fail(err, BZ_FAILED, "%s: cannot be started: %s", argv[0], strerror(why)) : 0;
}

/* Reads every file of the folder that holds something, in the order of their names; removes them and it. */
static int collect(bz_trace *t, const char *folder, const bz_capture_options *o, bz_error *err)
{
    struct statvfs disk;
    bool full = !statvfs(folder, &disk) && disk.f_bavail * disk.f_frsize < 1 << 20;
    BZ_SCOPED(bz_arena) arena = {0};
    const char **names;
    int n = bz_folder_list(folder, NULL, &arena, &names);
    int rc = 0, read = 0;
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX + 300];
        struct stat st;
        bz_error why;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        bool holds = !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
        if (holds && !bz_profile_read(t, path, &why)) {
            read++;
        } else if (holds) { /* a log that a library left half-written must not take the rest along */
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_BROKEN, "%s", why.text);
            rc = bz_fail(err, BZ_FAILED, "%s", why.text);
        }
    }
    bz_folder_remove(folder);
    if (read)
        return 0;
    if (!rc)
        rc = bz_fail(err, BZ_FAILED, "the program left no recording: %s",
                     full      ? "the disk for temporary files is full: set TMPDIR"
                     : o->nsys ? "nsys wrote none, and says above why"
                               : "it may be statically linked or setuid, which excludes a preloaded library");
    return rc;
}

static void describe_system(bz_trace *t, char *const argv[], int status)
{
    struct utsname u;
    char name[64], text[300];
    if (!uname(&u)) {
        snprintf(text, sizeof text, "%.60s %.60s", u.sysname, u.release);
        bz_trace_fact(t, "operating system", text);
    }
    bz_processor_name("", name, sizeof name);
    if (*name) {
        snprintf(text, sizeof text, "%.200s, %ld threads", name, sysconf(_SC_NPROCESSORS_ONLN));
        bz_trace_fact(t, "cpu", text);
    }
    BZ_SCOPED(bz_buf) command = {0};
    for (int i = 0; argv[i]; i++)
        bz_buf_printf(&command, "%s%s", i ? " " : "", argv[i]);
    bz_trace_fact(t, "command", bz_buf_text(&command));
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof text, "the program was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_BROKEN, "%s", text);
    } else if (WEXITSTATUS(status)) {
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE, "the program ended with status %d", WEXITSTATUS(status));
    }
}

int bz_profile_capture(bz_trace *t, char *const argv[], const bz_capture_options *options, int *exit_status,
                       bz_error *err)
{
    char library[PATH_MAX], folder[BZ_FOLDER_MAX];
    if (!argv[0])
        return bz_fail(err, BZ_USAGE, "there is no program to run");
    if (find_library(library, sizeof library, err))
        return -1;
    if (bz_folder_make(folder, err))
        return -1;
    char **command = bz_alloc(64, sizeof *command), report[PATH_MAX + 32];
    int n = 0, status = 0, rc = -1;
    if (options->nsys) {
        snprintf(report, sizeof report, "--output=%s/report", folder);
        char *nsys[] = {
            "nsys", "profile", "--trace=cuda,nvtx,cudnn,cublas", "--cuda-graph-trace=node", "--force-overwrite=true",
            report, "--"};
        for (size_t i = 0; i < sizeof nsys / sizeof *nsys; i++)
            command[n++] = nsys[i];
    }
    int arguments = 0;
    while (argv[arguments])
        arguments++;
    command = bz_realloc(command, (size_t)(n + arguments) + 1, sizeof *command);
    for (int i = 0; i <= arguments; i++)
        command[n + i] = argv[i];
    double begin = bz_now(), waited = 0;
    if (run(folder, library, command, options, &status, &waited, err)) {
        if (options->nsys)
            bz_fail(err, BZ_FAILED, "nsys is not installed here: install Nsight Systems, or profile without --nsys");
        bz_folder_remove(folder);
        goto out;
    }
    t->private->wall = (int64_t)((bz_now() - begin) * 1e9);
    rc = collect(t, folder, options, err);
    t->private->page_cost = t->private->n_taken ? bz_page_cost() : 0;
    if (rc)
        bz_fail_in(err, "%s", argv[0]);
    else
        describe_system(t, argv, status);
    if (!rc && waited > WAITED)
        bz_trace_lack(
            t, BZ_NONE, BZ_COVERAGE_NOTE, BZ_LACKS_QUIET,
            "recorded on a busy machine: others used the machine, so that the program waited for a processor "
            "in %.0f %% of the time in which it wanted one: what was recorded took longer than it takes alone",
            100 * waited);
    size_t events = 0;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        events += t->event[k].n;
    if (!rc && !events && !options->marks_only)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                       "the program made no call of oneDNN or BLAS that a recording can see. It may have kernels of "
                       "its own, as ONNX Runtime has: its own profile can be joined");
    *exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
out:
    free(command);
    return rc;
}
