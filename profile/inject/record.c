/* The capture library's records: a mapped file per process, appended to by all threads without a lock. */
#include "profile/inject/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { STRINGS = 1 << 16, FRAMES_MAX = 40, PYTHON_MAX = 24, TEXT_MAX = 1 << 16 };

static struct {
    char *map; /* NULL: not recording */
    bz_spool_header *header;
    size_t size;
    _Atomic uint64_t used, backed; /* claimed; and so much has blocks on the disk */
    bool backtrace, marks_only;
    int64_t limit;
    char folder[256], path[320];
} spool;

/* Strings by the hash of what they were made from: open addressing; a slot is written once, value last. */
static struct {
    _Atomic uint64_t hash;
    _Atomic uint32_t id;
} strings[STRINGS];
static _Atomic uint32_t n_strings, n_stacks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, growth = PTHREAD_MUTEX_INITIALIZER;
static __thread uint32_t thread_id;
static __thread bool inside; /* a back-trace may itself call what is intercepted */

int64_t bzi_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

bool bzi_recording(void)
{
    return spool.map && !spool.marks_only && !inside;
}

bool bzi_marking(void)
{
    return spool.map && !inside;
}

uint32_t bzi_thread(void)
{
    if (!thread_id)
        thread_id = (uint32_t)syscall(SYS_gettid);
    return thread_id;
}

uint64_t bzi_hash(uint64_t seed, const void *data, size_t n)
{
    uint64_t h = XXH3_64bits_withSeed(data, n, seed);
    return h ? h : 1;
}

/* Writing to a mapped file on a full disk is a SIGBUS, which would end the program: its blocks are asked for before.
 * By name, because programs close descriptors that they don't know and the number may be another file's by now. */
static bool back(uint64_t upto)
{
    enum { STEP = 1 << 20 };
    pthread_mutex_lock(&growth);
    uint64_t backed = atomic_load(&spool.backed);
    int saved = errno; /* the program's */
    while (backed < upto && !(spool.header && backed >= spool.header->capacity)) {
        int fd = open(spool.path, O_RDWR | O_CLOEXEC);
        int rc = fd < 0 ? -1 : fallocate(fd, 0, (off_t)backed, STEP);
        bool full = rc && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
        if (fd >= 0)
            close(fd);
        if (full) { /* a file system that knows no such request is taken at its word */
            if (spool.header)
                spool.header->capacity = backed;
            break;
        }
        backed += STEP;
        atomic_store(&spool.backed, backed);
    }
    errno = saved;
    pthread_mutex_unlock(&growth);
    return backed >= upto;
}

void *bzi_claim(size_t size)
{
    if (!spool.map)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    uint64_t at = atomic_fetch_add_explicit(&spool.used, size, memory_order_relaxed);
    if (at + size > spool.header->capacity ||
        (at + size > atomic_load_explicit(&spool.backed, memory_order_relaxed) && !back(at + size))) {
        __atomic_add_fetch(&spool.header->dropped, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    char *r = spool.map + at;
    __atomic_store_n(&((bz_spool_record *)(void *)r)->size, (uint32_t)size | BZ_SPOOL_PENDING, __ATOMIC_RELAXED);
    return r;
}

void bzi_commit(void *record, bz_spool_type type, uint32_t flags, size_t size)
{
    bz_spool_record *r = record;
    r->type = (uint16_t)type;
    r->flags = (uint16_t)flags;
    __atomic_store_n(&r->size, (uint32_t)((size + 7) & ~(size_t)7), __ATOMIC_RELEASE);
}

uint32_t bzi_known(uint64_t hash)
{
    for (uint64_t i = hash;; i++) {
        uint64_t h = atomic_load_explicit(&strings[i % STRINGS].hash, memory_order_acquire);
        if (h == hash)
            return atomic_load_explicit(&strings[i % STRINGS].id, memory_order_acquire);
        if (!h)
            return 0;
    }
}

/* Records what nobody recorded under this hash before, of n parts: the n-th of its sort. Strings and stacks look alike. */
static uint32_t record_once(uint64_t hash, bz_spool_type type, _Atomic uint32_t *numbers, const void *part, size_t n,
                            size_t size)
{
    uint32_t id = bzi_known(hash);
    size_t whole = sizeof(bz_spool_string) + n * size;
    if (id)
        return id;
    pthread_mutex_lock(&lock);
    id = bzi_known(hash);
    bz_spool_string *r = NULL;
    if (!id && atomic_load(&n_strings) + atomic_load(&n_stacks) >= STRINGS / 2)
        spool.header->nameless++;
    else if (!id && (r = bzi_claim(whole))) {
        id = atomic_fetch_add(numbers, 1) + 1;
        r->id = id;
        r->length = (uint32_t)n;
        memcpy(r + 1, part, n * size);
        bzi_commit(r, type, 0, whole);
        uint64_t i = hash;
        while (atomic_load(&strings[i % STRINGS].hash))
            i++;
        atomic_store_explicit(&strings[i % STRINGS].id, id, memory_order_release);
        atomic_store_explicit(&strings[i % STRINGS].hash, hash, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

_Static_assert(sizeof(bz_spool_string) == sizeof(bz_spool_stack) &&
                   offsetof(bz_spool_string, length) == offsetof(bz_spool_stack, n),
               "a number, and how many parts follow");

uint32_t bzi_string(uint64_t hash, const char *text, size_t n)
{
    return record_once(hash, BZ_SPOOL_STRING, &n_strings, text, n, 1);
}

uint32_t bzi_text(const char *text)
{
    if (!text || !spool.map)
        return 0;
    size_t n = strnlen(text, TEXT_MAX);
    return bzi_string(bzi_hash(10, text, n), text, n);
}

static void put_text(bz_spool_type type, uint32_t flags, const char *key, const char *text)
{
    uint32_t k = bzi_text(key), s = bzi_text(text);
    bz_spool_text *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->key = k;
    r->text = s;
    bzi_commit(r, type, flags, sizeof *r);
}

void bzi_note(uint32_t level, const char *text)
{
    put_text(BZ_SPOOL_NOTE, level, NULL, text);
}

void bzi_fact(const char *key, const char *text)
{
    put_text(BZ_SPOOL_FACT, 0, key, text);
}

void bzi_device_dropped(uint64_t n)
{
    if (spool.header)
        __atomic_add_fetch(&spool.header->device_dropped, n, __ATOMIC_RELAXED);
}

static void put_call(const bzi_call *call, int64_t end, uint32_t stack)
{
    bz_spool_call *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->start = call->start;
    r->end = end;
    r->thread = bzi_thread();
    r->library = call->library;
    r->name = call->name;
    r->detail = call->detail;
    r->variant = call->variant;
    r->stack = stack;
    r->read[0] = (uintptr_t)call->read[0];
    r->read[1] = (uintptr_t)call->read[1];
    r->written = (uintptr_t)call->written;
    bzi_commit(r, BZ_SPOOL_CALL, call->flags, sizeof *r);
}

/* How many pages the system has handed out, once in a millisecond at most: asking takes half a microsecond. */
static void look_at_pages(int64_t now)
{
    static _Atomic int64_t next;
    int64_t due = atomic_load_explicit(&next, memory_order_relaxed);
    struct rusage usage;
    if (now < due || !atomic_compare_exchange_strong(&next, &due, now + 1000000) || getrusage(RUSAGE_SELF, &usage))
        return;
    bz_spool_pages *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->at = now;
    r->taken = usage.ru_minflt - (int64_t)(atomic_load(&spool.used) / (uint64_t)sysconf(_SC_PAGESIZE));
    bzi_commit(r, BZ_SPOOL_PAGES, 0, sizeof *r);
}

void bzi_call_end(const bzi_call *call)
{
    int64_t end = bzi_now();
    put_call(call, end, spool.backtrace ? bzi_stack() : 0);
    look_at_pages(end);
}

void bzi_mark(bool end)
{
    if (!spool.map)
        return;
    bz_spool_mark *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    int64_t now = bzi_now();
    r->at = now;
    r->thread = bzi_thread();
    r->end = end;
    bzi_commit(r, BZ_SPOOL_MARK, 0, sizeof *r);
    look_at_pages(now);
}

void bzi_note_onednn(const char *version)
{
    if (spool.header && !spool.header->onednn[0])
        snprintf(spool.header->onednn, sizeof spool.header->onednn, "%s", version);
}

static uint32_t frame_text(void *address)
{
    uint64_t hash = bzi_hash(7, &address, sizeof address);
    uint32_t id = bzi_known(hash);
    if (id)
        return id;
    char text[256];
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return bzi_string(hash, text, (size_t)snprintf(text, sizeof text, "%p", address));
    const char *file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    if (!strncmp(file, "libbenanza-", 11)) /* ourselves: the reader leaves it out */
        return bzi_string(hash, "", 0);
    int n = info.dli_sname ? snprintf(text, sizeof text, "%.180s (%.60s)", info.dli_sname, file)
                           : snprintf(text, sizeof text, "+0x%zx (%.60s)",
                                      (size_t)((char *)address - (char *)info.dli_fbase), file);
    return bzi_string(hash, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

uint32_t bzi_stack(void)
{
    void *address[FRAMES_MAX];
    char python[PYTHON_MAX][160];
    uint32_t frames[FRAMES_MAX + PYTHON_MAX];
    inside = true;
    int n = backtrace(address, FRAMES_MAX), p = bzi_python_frames(python, PYTHON_MAX), k = 0;
    for (int i = 0; i < p; i++)
        frames[k++] = bzi_string(bzi_hash(8, python[i], strlen(python[i])), python[i], strlen(python[i]));
    for (int i = 2; i < n; i++) /* not this function and the one that recorded the call */
        frames[k++] = frame_text(address[i]);
    inside = false;
    return record_once(bzi_hash(9, frames, (size_t)k * sizeof *frames), BZ_SPOOL_STACK, &n_stacks, frames, (size_t)k,
                       sizeof *frames);
}

typedef struct {
    const char *symbol, *hint;
    void *found;
} search;

/* We have the same functions ourselves. */
static bool is_ours(void *address)
{
    Dl_info there, here;
    return dladdr(address, &there) && dladdr(&spool, &here) && there.dli_fbase == here.dli_fbase;
}

/* A library that Python loads with its extension is not in the global scope, where RTLD_NEXT looks: every loaded
 * object is asked through its own handle. */
static int ask_object(struct dl_phdr_info *info, size_t size, void *context)
{
    search *s = context;
    (void)size;
    if (!info->dlpi_name || !info->dlpi_name[0] || (s->hint && !strstr(info->dlpi_name, s->hint)))
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return 0;
    void *f = dlsym(handle, s->symbol);
    dlclose(handle);
    if (f && !is_ours(f)) {
        s->found = f;
        return 1;
    }
    return 0;
}

void *bzi_resolve(const char *symbol, const char *hint)
{
    void *next = dlsym(RTLD_NEXT, symbol);
    if (next)
        return next;
    search s = {.symbol = symbol, .hint = hint};
    dl_iterate_phdr(ask_object, &s);
    if (!s.found) {
        s.hint = NULL;
        dl_iterate_phdr(ask_object, &s);
    }
    return s.found;
}

static void program_name(char *out, size_t size)
{
    char raw[256];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, raw, sizeof raw - 1) : 0;
    if (fd >= 0)
        close(fd);
    n = n > 0 ? n : 0;
    raw[n] = 0;
    for (ssize_t i = 0; i + 1 < n; i++)
        raw[i] = raw[i] ? raw[i] : ' ';
    snprintf(out, size, "%s", raw);
}

/* Both clocks at one moment: the wall's between two looks at ours, as close together as in the best of some tries. Another program may
 * have the processor between two looks for 10 ms, by which all that is recorded would be too early. */
static void read_clocks(bz_spool_header *h)
{
    int64_t closest = INT64_MAX;
    for (int i = 0; i < 8; i++) {
        struct timespec wall;
        int64_t before = bzi_now();
        clock_gettime(CLOCK_REALTIME, &wall);
        int64_t apart = bzi_now() - before;
        if (apart >= closest)
            continue;
        closest = apart;
        h->started = before + apart / 2;
        h->started_wall = wall.tv_sec * INT64_C(1000000000) + wall.tv_nsec;
    }
}

/* What recording a call costs, on records that are thrown away. */
static int64_t measure_overhead(void)
{
    enum { N = 512 };
    uint64_t used = atomic_load(&spool.used);
    int64_t before = bzi_now();
    for (int i = 0; i < N; i++) {
        bzi_call c = {.start = bzi_now()};
        put_call(&c, bzi_now(), 0);
    }
    int64_t cost = (bzi_now() - before) / N;
    memset(spool.map + used, 0, atomic_load(&spool.used) - used);
    atomic_store(&spool.used, used);
    return cost > 0 ? cost : 1;
}

static void open_spool(void)
{
    int fd = -1;
    spool.header = NULL;
    atomic_store(&spool.backed, 0);
    for (int i = 0; i < 1000 && fd < 0; i++) { /* a process may exec: it comes here again with the same number */
        snprintf(spool.path, sizeof spool.path, "%s/%ld.%d.spool", spool.folder, (long)getpid(), i);
        fd = open(spool.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return;
    }
    if (fd < 0)
        return;
    if (ftruncate(fd, spool.limit) || !back(sizeof(bz_spool_header))) {
        unlink(spool.path);
        close(fd);
        return;
    }
    char *map = mmap(NULL, (size_t)spool.limit, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return;
    spool.size = (size_t)spool.limit;
    spool.header = (bz_spool_header *)(void *)map;
    *spool.header = (bz_spool_header){.process = getpid(), .parent = getppid(), .capacity = (uint64_t)spool.limit};
    read_clocks(spool.header);
    program_name(spool.header->program, sizeof spool.header->program);
    memcpy(spool.header->magic, BZ_SPOOL_MAGIC, 8);
    atomic_store(&spool.used, (sizeof(bz_spool_header) + 7) & ~(size_t)7);
    spool.map = map;
    spool.header->overhead = measure_overhead();
}

/* The child of a fork starts a file of its own. */
static void after_fork(void)
{
    if (!spool.map)
        return;
    munmap(spool.map, spool.size);
    spool.map = NULL;
    thread_id = 0;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&growth, NULL);
    memset(strings, 0, sizeof strings);
    atomic_store(&n_strings, 0);
    atomic_store(&n_stacks, 0);
    open_spool();
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("BENANZA_CAPTURE_DIR"), *limit = getenv("BENANZA_CAPTURE_LIMIT");
    if (!folder || strlen(folder) >= sizeof spool.folder)
        return;
    snprintf(spool.folder, sizeof spool.folder, "%s", folder);
    spool.backtrace = getenv("BENANZA_CAPTURE_BACKTRACE") != NULL;
    spool.marks_only = getenv("BENANZA_CAPTURE_MARKS_ONLY") != NULL;
    spool.limit = limit ? atoll(limit) : INT64_C(256) << 20;
    if (spool.limit < 1 << 20)
        spool.limit = 1 << 20;
    open_spool();
    pthread_atfork(NULL, NULL, after_fork);
}

/* A child of vfork has our memory, but is not us. */
static void finish_at(int64_t when)
{
    if (!spool.map || spool.header->process != getpid())
        return;
    spool.header->used = atomic_load(&spool.used);
    spool.header->finished = when;
}

/* A framework is told by its library: not every program's name or back-trace shows it. */
static int note_framework(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    (void)context;
    static const char *const LIBRARIES[] = {"libtorch_cpu.", "libonnxruntime.", "libmxnet.",
                                            "libtensorflow_framework."};
    const char *slash = strrchr(object->dlpi_name, '/'), *file = slash ? slash + 1 : object->dlpi_name;
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++)
        if (!strncmp(file, LIBRARIES[i], strlen(LIBRARIES[i])))
            bzi_fact("framework", file);
    return 0;
}

__attribute__((destructor)) static void finish(void)
{
    if (spool.map)
        dl_iterate_phdr(note_framework, NULL);
    finish_at(bzi_now());
}

/* Shells, and the workers that Python forks, leave this way, past all destructors. */
BZI_SHARED void _exit(int status)
{
    finish_at(BZ_SPOOL_LEFT);
    for (;;)
        syscall(SYS_exit_group, status);
}

BZI_SHARED void _Exit(int status)
{
    _exit(status);
}
