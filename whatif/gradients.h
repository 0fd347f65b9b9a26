/* What each layer of a training iteration gives to other workers, and who needs what comes back; private to the room. */
#ifndef BZ_WHATIF_GRADIENTS_H
#define BZ_WHATIF_GRADIENTS_H

#include "whatif/transformations.h"

typedef struct bz_gradient {
    const char *name; /* of the layer, or of the kernel where none is known */
    int64_t bytes;
    uint32_t last;  /* the last task of the layer on its way back: then the gradient is there */
    uint32_t first; /* the first one on that way */
    uint32_t
        forward;   /* the layer's first task forward, which the next iteration cannot start before it has the result */
    uint32_t rank; /* of the layer on the way forward: 0 is nearest to the input */
} bz_gradient;

/* Layers of the way back, in the order in which they are done; without bytes. Returns how many; 0 with a reason in `asked`. */
int bz_gradients_layers(const bz_flow *flow, bz_whatif_asked *asked, bz_gradient **list);

/* The same with bytes: layers in the order in which their gradients are there. Bytes are those of the file that was asked with (lines of NAME TAB
 * BYTES; the second layer of a name takes the second line with it), else `mb` megabytes, spread evenly over the layers.
 * Returns how many; 0 with a reason in `asked`; -1. */
int bz_gradients_find(const bz_flow *flow, bz_whatif_asked *asked, bz_gradient **list);

/* The link between machines, as it was asked for. Where it was not and there are records of a system: what that takes to send so many bytes to
 * another GPU, else to itself by TCP. */
typedef struct bz_gradient_link {
    double gbps, latency; /* µs of a message */
} bz_gradient_link;
int bz_gradients_link(bz_whatif_asked *asked, double bytes, bz_gradient_link *out);

/* Nanoseconds in which `bytes` pass at so many gigabits per second. */
int64_t bz_gradients_time(double bytes, double gbps);

/* When the first and the last task of the way back began; begin > end where there is none. An optimizer that sets gradients to zero does so
 * before the way back: that waits for no gradient. */
void bz_gradients_back(const bz_flow *flow, int64_t *begin, int64_t *end);

/* The first task of the update behind the way back, on a device, else on the host; BZ_NONE: there is none. */
uint32_t bz_gradients_update(const bz_flow *flow);

#endif
