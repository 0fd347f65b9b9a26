/* The program's own use of CUPTI, as of PyTorch's profiler. CUPTI has one pair of callbacks for the buffers of all: who registers
 * last gets everybody's, also those that another one allocated. So there is one owner: the program where it asks, ourselves
 * until then. Programs that are linked to CUPTI come here first; those that look its functions up themselves are not seen. */
#include "profile/inject/record.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    bool theirs;
    void (*leave)(void); /* ours: gives up what CUPTI has of us */
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool bzi_cupti_take(void (*leave)(void))
{
    pthread_mutex_lock(&cupti.lock);
    bool is_free = !cupti.theirs;
    if (is_free)
        cupti.leave = leave;
    pthread_mutex_unlock(&cupti.lock);
    return is_free;
}

/* The callbacks are passed on as they are. */
typedef void callback(void);
BZI_SHARED int cuptiActivityRegisterCallbacks(callback *request, callback *complete);

int cuptiActivityRegisterCallbacks(callback *request, callback *complete)
{
    int (*next)(callback *, callback *) = NULL;
    void *symbol = bzi_resolve("cuptiActivityRegisterCallbacks", "libcupti");
    pthread_mutex_lock(&cupti.lock);
    if (cupti.leave)
        cupti.leave();
    cupti.leave = NULL;
    cupti.theirs = true;
    pthread_mutex_unlock(&cupti.lock);
    __builtin_memcpy(&next, &symbol, sizeof next); /* ISO C has no cast from one kind of pointer to the other */
    enum { NOT_INITIALIZED = 15 };
    return next ? next(request, complete) : NOT_INITIALIZED;
}
