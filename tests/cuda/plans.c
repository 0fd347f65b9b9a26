/* What the real cuDNN's plans cost, and that they are kept: for an H200 that is only described, with a stand-in for the driver
 * that loads what was compiled.
 *
 *   plans                 builds those of a convolution twice, and once more from files that are damaged
 *   plans time < PROBLEMS how long the plans of each line's families take to build, and to take back (layouts plain and nhwc)
 */
#include "base/folder.h"
#include "base/progress.h"
#include "tests/cuda/devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct work {
    bz_problem problem;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_run_setting setting;
    bz_job job;
} work;

static void begin(work *w, const char *text, const char *folder)
{
    bz_error err;
    if (bz_problem_parse(text, &w->problem, &err)) {
        printf("%s\n", err.text);
        exit(2);
    }
    w->setting = (bz_run_setting){.plans = folder};
    w->job = (bz_job){.problem = &w->problem,
                      .setting = &w->setting,
                      .n_operands = bz_problem_operands(&w->problem, w->operand),
                      .operand = w->operand,
                      .copies = 1};
}

/* The files of a folder: how many; of the compiled plans among them how many, how large, and a sum that changes when one of them is replaced.
 * Other plans are kept where building them took long, which is another matter on a machine that is busy. */
typedef struct content {
    int n, large;
    double bytes;
    unsigned long long inodes;
} content;

static content look(const char *folder, bool damage)
{
    content c = {0};
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat s;
        int fd = openat(dirfd(d), e->d_name, O_RDWR);
        if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode)) {
            if (fd >= 0)
                close(fd);
            continue;
        }
        c.n++;
        if (s.st_size > 20000) {
            c.large++;
            c.bytes += (double)s.st_size;
            c.inodes += (unsigned long long)s.st_ino * (unsigned long long)(s.st_mtim.tv_nsec + 1);
        }
        if (damage && (lseek(fd, -1, SEEK_END) < 0 || write(fd, "?", 1) != 1))
            printf("%s cannot be damaged\n", e->d_name);
        close(fd);
    }
    closedir(d);
    return c;
}

static int expect(bool good, const char *what)
{
    if (!good)
        printf("not so: %s\n", what);
    return !good;
}

/* Configurations from the folder are those that the library proposes, and plans need the same workspace. */
static int compare(const work *w, const char *folder, cudnnBackendDescriptor_t device)
{
    const cudnn_kind *kind = bz_cudnn_kinds;
    cudnn_shelf shelf;
    char name[2][200];
    bz_error err;
    int bad = 0, n = 0;
    call *c[2];
    while (kind->kind != w->problem.kind || kind->release != cudnn_release_graph)
        kind++;
    bad += expect(cudnn_shelf_open(&shelf, folder, device), "the device has a name");
    for (int i = 0; i < 2; i++) {
        c[i] = bz_cudnn_describe(kind, &w->problem, w->operand, w->job.n_operands, "nhwc", "default", &err);
        c[i]->device = device;
        c[i]->shelf = i ? &shelf : NULL;
    }
    bad += expect(cudnn_graph_choice(c[0]) == cudnn_graph_choice(c[1]), "the library's choice is the same");
    for (; cudnn_graph_algorithm(c[0], n, name[0], sizeof *name) && n < c[0]->graph->n_configs; n++) {
        cudnnBackendDescriptor_t plan[2];
        int64_t size[2] = {-1, -1}, one;
        bad += expect(cudnn_graph_algorithm(c[1], n, name[1], sizeof *name) && !strcmp(name[0], name[1]),
                      "configurations are the same");
        for (int i = 0; i < 2; i++) {
            if (cudnn_plan_get(c[i], &c[i]->graph->config[n], &plan[i]) == CUDNN_STATUS_SUCCESS)
                cudnnBackendGetAttribute(plan[i], CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                         &size[i]);
            cudnnBackendDestroyDescriptor(plan[i]);
        }
        bad += expect(size[0] == size[1], "a kept plan has the workspace of one that is built");
    }
    bad += expect(n > 4 && c[1]->graph->n_configs == n, "there are as many");
    for (int i = 0; i < 2; i++)
        bz_cudnn_free(c[i]);
    cudnn_shelf_close(&shelf);
    return bad;
}

static int check(const char *folder)
{
    cudnnBackendDescriptor_t device = device_describe(DEVICE_H200), other = device_describe(DEVICE_B200);
    work w;
    begin(&w, "conv x=1x64x14x14 w=64x64x1x1 dtype=f16 post=bias,relu", folder);
    cudnn_build_for(&w.job, "nhwc", "default", device);
    content first = look(folder, false);
    int bad = expect(first.n >= 2 && first.large, "plans and configurations are kept");
    cudnn_build_for(&w.job, "nhwc", "default", device);
    content again = look(folder, false);
    bad += expect(again.large == first.large && again.inodes == first.inodes, "what is kept is not made again");
    bad += compare(&w, folder, device);
    look(folder, true);
    cudnn_build_for(&w.job, "nhwc", "default", device);
    content mended = look(folder, false);
    bad += expect(mended.large == first.large && mended.bytes == first.bytes, "what is damaged is made again");
    bad += compare(&w, folder, device);
    cudnn_build_for(&w.job, "nhwc", "default", other);
    bad += expect(look(folder, false).n > first.n, "another device has plans of its own");
    cudnnBackendDestroyDescriptor(device);
    cudnnBackendDestroyDescriptor(other);
    printf("%d entries, %d compiled plans, %.0f KB\n", first.n, first.large, first.bytes / 1e3);
    return bad;
}

static double time_problem(const char *text, const char *folder, cudnnBackendDescriptor_t device)
{
    work w;
    begin(&w, text, folder);
    double from = bz_now();
    cudnn_build_for(&w.job, "plain", "default", device);
    cudnn_build_for(&w.job, "nhwc", "default", device);
    return bz_now() - from;
}

/* How many configurations are measured of a problem: those of its graphs that have a plan, which is kept, or takes no time. */
static int configurations(const work *w, const char *layout, const cudnn_shelf *shelf, cudnnBackendDescriptor_t device)
{
    int n = 0;
    for (const cudnn_kind *k = bz_cudnn_kinds; k->kind; k++) {
        char name[200];
        bz_error err;
        call *c = k->kind == w->problem.kind && k->release == cudnn_release_graph
                      ? bz_cudnn_describe(k, &w->problem, w->operand, w->job.n_operands, layout, "default", &err)
                      : NULL;
        if (!c)
            continue;
        c->device = device;
        c->shelf = shelf;
        for (int i = 0; cudnn_graph_algorithm(c, i, name, sizeof name) && i < c->graph->n_configs; i++) {
            cudnnBackendDescriptor_t plan;
            n += cudnn_plan_get(c, &c->graph->config[i], &plan) == CUDNN_STATUS_SUCCESS;
            cudnnBackendDestroyDescriptor(plan);
        }
        bz_cudnn_free(c);
    }
    return n;
}

static void time_problems(const char *folder)
{
    cudnn_shelf shelf;
    cudnnBackendDescriptor_t device = device_describe(DEVICE_H200);
    double built = 0, taken = 0;
    char line[1024];
    int n = 0, configured = 0;
    time_problem("activation fn=tanh x=4x4 dtype=f32", folder, device); /* the library begins */
    if (!cudnn_shelf_open(&shelf, folder, device))
        exit(2);
    for (; fgets(line, sizeof line, stdin); n++) {
        line[strcspn(line, "\n")] = 0;
        double first = time_problem(line, folder, device), again = time_problem(line, folder, device);
        printf("%7.3f s built, %6.2f ms taken back: %s\n", first, 1e3 * again, line);
        fflush(stdout);
        work w;
        begin(&w, line, folder);
        configured += configurations(&w, "plain", &shelf, device) + configurations(&w, "nhwc", &shelf, device);
        built += first;
        taken += again;
    }
    content c = look(folder, false);
    printf("%d problems in two layouts, %d configurations: built in %.2f s, taken back in %.1f ms; %d compiled plans, "
           "%.0f KB in all\n",
           n, configured, built, 1e3 * taken, c.large, c.bytes / 1e3);
    cudnn_shelf_close(&shelf);
    cudnnBackendDestroyDescriptor(device);
}

int main(int argc, char **argv)
{
    char folder[BZ_FOLDER_MAX];
    bz_error err;
    int bad = 0;
    if (bz_folder_make(folder, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    if (argc == 2 && !strcmp(argv[1], "time"))
        time_problems(folder);
    else
        bad = check(folder);
    bz_folder_remove(folder);
    return bad != 0;
}
