/* Records what CUDA does: loaded by the CUDA driver into the program when it starts to use a device. Whatever is
 * missing here is told in the recording; the program never notices. */
#include "profile/cuda/cuda.h"
#include "profile/inject/record.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

enum { BUFFER = 1 << 20, FLUSH_MS = 100 };

static struct {
    bzc_cupti cupti;
    pid_t process; /* that CUPTI runs in: a fork has none */
    pthread_t flusher;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool flushing, stop, left;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static const char *const NAMES[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                    "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so"};

static const struct {
    const char *variable, *path; /* variable: that holds where CUDA is; NULL: path alone */
} PLACES[] = {
    {NULL, ""}, /* where the loader looks */
    {"CUDA_HOME", "/extras/CUPTI/lib64/"},
    {"CUDA_HOME", "/lib64/"},
    {"CUDA_PATH", "/extras/CUPTI/lib64/"},
    {"CUDA_PATH", "/lib64/"},
    {NULL, "/usr/local/cuda/extras/CUPTI/lib64/"},
    {NULL, "/usr/local/cuda/lib64/"},
    {NULL, "/opt/cuda/extras/CUPTI/lib64/"},
};

static void *open_cupti(void)
{
    enum { N_NAMES = sizeof NAMES / sizeof *NAMES };
    void *library = NULL;
    /* PyTorch brings its own; two in one process do not go together */
    for (size_t i = 0; !library && i < N_NAMES; i++)
        library = dlopen(NAMES[i], RTLD_NOW | RTLD_NOLOAD);
    for (size_t p = 0; p < sizeof PLACES / sizeof *PLACES; p++) {
        const char *home = PLACES[p].variable ? getenv(PLACES[p].variable) : "";
        char path[512];
        for (size_t i = 0; !library && home && i < N_NAMES; i++)
            if ((size_t)snprintf(path, sizeof path, "%s%s%s", home, PLACES[p].path, NAMES[i]) < sizeof path)
                library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* NULL, or why there is none. */
static const char *load_cupti(bzc_cupti *c)
{
    const struct {
        const char *name;
        void *to;
    } SYMBOLS[] = {
        {"cuptiActivityRegisterCallbacks", &c->register_callbacks},
        {"cuptiActivityRegisterTimestampCallback", &c->register_clock},
        {"cuptiActivityEnable", &c->enable},
        {"cuptiActivityDisable", &c->disable},
        {"cuptiActivityFlushAll", &c->flush},
        {"cuptiActivityGetNextRecord", &c->next},
        {"cuptiActivityGetNumDroppedRecords", &c->dropped},
        {"cuptiGetCallbackName", &c->callback_name},
        {"cuptiSetThreadIdType", &c->thread_ids},
        {"cuptiGetVersion", &c->version},
        {"cuptiGetResultString", &c->result_text},
    };
    void *library = open_cupti();
    if (!library)
        return "nothing of the device is recorded, because libcupti.so of CUDA was not found: put its folder into "
               "LD_LIBRARY_PATH, or say where CUDA is with CUDA_HOME";
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
        void *symbol = dlsym(library, SYMBOLS[i].name);
        if (!symbol)
            return "nothing of the device is recorded, because the libcupti.so that was found is older than CUDA 11.6";
        memcpy(SYMBOLS[i].to, &symbol, sizeof symbol); /* ISO C has no cast from one kind of pointer to the other */
    }
    return NULL;
}

static uint64_t clock_of_records(void)
{
    return (uint64_t)bzi_now();
}

static void give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0; /* as many records as fit */
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)size;
    while (buffer && valid && state.cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
        bzc_activity(record);
    if (state.cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        bzi_device_dropped(dropped);
    free(buffer);
}

/* CUPTI hands out a buffer when it is full; a crash would take what is in it along. So it is asked for it. */
static void *flush_now_and_then(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&state.lock);
    while (!state.stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += FLUSH_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&state.wake, &state.lock, &until);
        pthread_mutex_unlock(&state.lock);
        state.cupti.flush(0);
        pthread_mutex_lock(&state.lock);
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static void start_flusher(void)
{
    sigset_t all, before; /* the program's signals are for its own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    state.flushing = !pthread_create(&state.flusher, NULL, flush_now_and_then, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_flusher(void)
{
    if (!state.flushing)
        return;
    pthread_mutex_lock(&state.lock);
    state.stop = true;
    pthread_cond_signal(&state.wake);
    pthread_mutex_unlock(&state.lock);
    pthread_join(state.flusher, NULL);
    state.flushing = false;
}

static void finish(void)
{
    if (getpid() != state.process || state.left)
        return;
    stop_flusher();
    state.cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

/* What CUPTI uses by default: it takes no NULL. */
static uint64_t clock_of_cupti(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The program takes CUPTI for itself: our buffers come back first, and it finds CUPTI as if we had never been there. */
static void leave(void)
{
    if (getpid() != state.process)
        return;
    stop_flusher();
    bzc_activities_disable();
    state.cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    state.cupti.register_clock(clock_of_cupti);
    state.cupti.thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    state.left = true;
    bzi_note(BZI_MISSING, "nothing of the device is recorded from the moment on when the program began to use CUPTI "
                          "itself, as PyTorch's profiler does: run it without that");
}

static void begin(void)
{
    char text[256];
    if (!bzi_recording())
        return;
    const char *missing = load_cupti(&state.cupti), *why = NULL;
    if (missing) {
        bzi_note(BZI_MISSING, missing);
        return;
    }
    state.process = getpid();
    if (!bzi_cupti_take(leave)) {
        bzi_note(BZI_MISSING, "nothing of the device is recorded, because the program uses CUPTI itself, as PyTorch's "
                              "profiler does: run it without that");
        return;
    }
    uint32_t version = 0;
    state.cupti.version(&version);
    snprintf(text, sizeof text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    bzi_fact("cupti", text);
    CUptiResult rc = state.cupti.register_clock(clock_of_records);
    if (rc == CUPTI_SUCCESS)
        rc = state.cupti.thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    if (rc == CUPTI_SUCCESS)
        rc = state.cupti.register_callbacks(give_buffer, take_buffer);
    if (rc != CUPTI_SUCCESS) {
        state.cupti.result_text(rc, &why);
        snprintf(text, sizeof text, "nothing of the device is recorded, because CUPTI does not start: %.120s",
                 why ? why : "?");
        bzi_note(BZI_MISSING, text);
        return;
    }
    bzc_activities_enable(&state.cupti);
    start_flusher();
    atexit(finish);
}

int InitializeInjection(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    return 1;
}
