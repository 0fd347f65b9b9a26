/* Bytes to another thread, and a byte back: by memory that both share, through pipes and sockets. The other thread waits for
 * work from open to close. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATIENT = 100000 }; /* turns, some 50 µs to 1 ms: longer than an exchange takes, shorter than a time slice */

typedef struct exchange {
    bool line; /* through a pipe or a socket; else shared memory */
    int turns; /* that await takes before it sleeps */
    const bz_plain *plain;
    int there[2], back[2]; /* the other thread reads there[0] and writes back[1]; -1: none */
    atomic_int turn;       /* of shared memory: 0 nobody's, 1 the other's, 2 to end */
    atomic_int copy, asleep;
    pthread_t other;
    bool runs;
} exchange;

static char *operand(const exchange *e, int i)
{
    return bz_plain_at(e->plain, i, atomic_load(&e->copy));
}

/* Who waits turns for a while, and then sleeps: also one that turns must not keep a processor busy while others are measured.
 * The counts of turns and sleepers are read and written in one order, so a sleeper is never missed. */
static int await(exchange *e, int from)
{
    int now;
    for (int turns = 0; (now = atomic_load(&e->turn)) == from; turns++) {
        if (turns < e->turns)
            continue;
        atomic_fetch_add(&e->asleep, 1);
        syscall(SYS_futex, &e->turn, FUTEX_WAIT_PRIVATE, from, NULL, NULL, 0);
        atomic_fetch_sub(&e->asleep, 1);
    }
    return now;
}

static void pass(exchange *e, int turn)
{
    atomic_store(&e->turn, turn);
    if (atomic_load(&e->asleep))
        syscall(SYS_futex, &e->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *serve_shared(void *context)
{
    exchange *e = context;
    while (await(e, 0) == 1) {
        memcpy(operand(e, 1), operand(e, 0), e->plain->size[0]);
        pass(e, 0);
    }
    return NULL;
}

static int move_all(ssize_t (*move)(int, void *, size_t), int file, char *at, size_t n)
{
    while (n) {
        ssize_t done = move(file, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

static ssize_t put(int file, void *at, size_t n)
{
    return write(file, at, n);
}

/* Ends when its end of the line is closed. */
static void *serve_line(void *context)
{
    exchange *e = context;
    char got;
    ssize_t n;
    while ((n = read(e->there[0], &got, 1)) == 1 || (n < 0 && errno == EINTR)) {
        char *y = operand(e, 1);
        if (n != 1)
            continue;
        *y = got;
        if (move_all(read, e->there[0], y + 1, e->plain->size[0] - 1) || move_all(put, e->back[1], &got, 1))
            break;
    }
    return NULL;
}

static int fail(const char *what, bz_error *err)
{
    return bz_fail(err, BZ_FAILED, "%s: %s", what, strerror(errno));
}

static int start(transfer *t, exchange *e, bz_error *err)
{
    errno = pthread_create(&e->other, NULL, e->line ? serve_line : serve_shared, e);
    e->runs = !errno;
    t->own = e;
    return e->runs ? 0 : fail("starting a thread", err);
}

static exchange *make(transfer *t, bool line, int turns)
{
    exchange *e = bz_alloc(1, sizeof *e);
    *e = (exchange){.line = line, .turns = turns, .plain = t->plain, .there = {-1, -1}, .back = {-1, -1}};
    t->own = e;
    return e;
}

int transfer_shared_open(transfer *t, bz_error *err)
{
    return start(t, make(t, false, t->row->way == BZ_TRANSFER_WAKE ? 0 : PATIENT), err);
}

int transfer_pipe_open(transfer *t, bz_error *err)
{
    exchange *e = make(t, true, 0);
    return pipe(e->there) || pipe(e->back) ? fail("making pipes", err) : start(t, e, err);
}

/* Both ways go through one pair. */
static int both_ways(exchange *e, int near, int far)
{
    e->there[1] = near;
    e->there[0] = far;
    e->back[0] = dup(near);
    e->back[1] = dup(far);
    return e->back[0] < 0 || e->back[1] < 0 ? -1 : 0;
}

int transfer_socket_open(transfer *t, bz_error *err)
{
    exchange *e = make(t, true, 0);
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || both_ways(e, pair[0], pair[1])
               ? fail("making a pair of sockets", err)
               : start(t, e, err);
}

/* Listens on a port that the kernel picks, of the loopback alone. */
static int connect_to_self(int *near, int *far)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *far = -1;
    if (listener >= 0 && *near >= 0 && !bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1) &&
        !getsockname(listener, (struct sockaddr *)&at, &size) && !connect(*near, (struct sockaddr *)&at, size))
        *far = accept(listener, NULL, NULL);
    if (*far >= 0) {
        setsockopt(*near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(*far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    } else if (*near >= 0) {
        close(*near);
    }
    if (listener >= 0)
        close(listener);
    return *far < 0 ? -1 : 0;
}

int transfer_tcp_open(transfer *t, bz_error *err)
{
    exchange *e = make(t, true, 0);
    int near, far;
    return connect_to_self(&near, &far) || both_ways(e, near, far) ? fail("connecting to this machine by TCP", err)
                                                                   : start(t, e, err);
}

int transfer_exchange(transfer *t, int copy)
{
    exchange *e = t->own;
    char answer;
    atomic_store(&e->copy, copy);
    if (!e->line) {
        pass(e, 1);
        await(e, 1);
        return 0;
    }
    return move_all(put, e->there[1], operand(e, 0), e->plain->size[0]) || move_all(read, e->back[0], &answer, 1);
}

static void shut(int *file)
{
    if (*file >= 0)
        close(*file);
    *file = -1;
}

void transfer_exchange_close(transfer *t)
{
    exchange *e = t->own;
    if (!e)
        return;
    if (e->runs && !e->line)
        pass(e, 2);
    if (e->line && e->there[1] >= 0) /* a duplicate of it would keep the line open */
        shutdown(e->there[1], SHUT_RDWR);
    shut(&e->there[1]);
    shut(&e->back[0]);
    if (e->runs)
        pthread_join(e->other, NULL);
    shut(&e->there[0]);
    shut(&e->back[1]);
    free(e);
}
