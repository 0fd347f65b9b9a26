/* calls PLUGIN N MODE: loads the plugin in a local scope, runs N iterations, then ends as MODE says: "ok", "fork" (a child
 * runs N more), "threads" (four at a time), "crash", "segv". */
#include "profile/marker/benanza.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*plugin)(int, void (*)(void), void (*)(void));
static plugin run;
static int n;

static void nothing(void)
{
}

static void *in_thread(void *argument)
{
    return run(n, nothing, nothing) ? argument : NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    setenv("OMP_NUM_THREADS", "1", 1); /* GNU's OpenMP does not survive a fork once it has threads */
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "plugin_run") : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    memcpy(&run, &symbol, sizeof run);
    n = atoi(argv[2]);
    if (!strcmp(argv[3], "threads")) {
        pthread_t thread[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&thread[i], NULL, in_thread, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        return 0;
    }
    if (run(n, benanza_iteration_begin, benanza_iteration_end))
        return 1;
    if (!strcmp(argv[3], "fork")) {
        pid_t child = fork();
        if (!child)
            exit(run(n, nothing, nothing));
        waitpid(child, NULL, 0);
    } else if (!strcmp(argv[3], "crash")) {
        kill(getpid(), SIGKILL);
    } else if (!strcmp(argv[3], "segv")) {
        volatile int *volatile nowhere = NULL;
        *nowhere = 0;
    }
    return 0;
}
