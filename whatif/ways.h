/* What a step of a framework makes of the layers of a model, as words: shared by library.c, products.c and joined.c; private to the room. */
#ifndef BZ_WHATIF_WAYS_H
#define BZ_WHATIF_WAYS_H

#include "whatif/layers.h"

/* "blocked pads constants turned conv+relu leaves erf" */
typedef struct bz_way {
    bool blocked;         /* convolutions and pools run in blocked layouts, by direct code of the framework's own */
    bool pads;            /* padding is done by what reads it, where that is a convolution or pool */
    bool constants;       /* what depends on constants alone is no longer computed */
    bool turned;          /* products of weights that the framework keeps have them the other way round */
    const char *patterns; /* groups of layers that become one call */
    const char *leaves;   /* kinds of layers that stay the framework's own; "" */
    const char *only;     /* all other kinds do; "" */
} bz_way;

int bz_way_read(const bz_whatif_asked *asked, bz_way *out);

/* [nodes]: groups of the bound that are of the way's patterns, the largest first, none within another: the group of each layer of the
 * main graph, a place of the bound, or -1. `picks` (may be NULL): those alone that it prices. */
int *bz_way_groups(const bz_whatif_asked *asked, const bz_way *way, const bz_picks *picks);

/* The library's picks in a type; NULL where nobody asked for them. */
const bz_picks *bz_way_picks(const bz_whatif_model *m, bz_dtype dtype, bool training);
/* As the program asks for them. */
static inline const bz_picks *bz_way_own_picks(const bz_whatif_model *m, bz_dtype dtype)
{
    return bz_way_picks(m, dtype, m->regret && m->regret->training);
}

/* The price of a place's share on the side that is asked for: the record's interval at its ends, and with weights from memory where `cold`. */
double bz_way_price(const bz_whatif_asked *asked, const bz_layer_place *place, const bz_pick *pick, bool cold);
/* Seconds that a call's weights take longer where a loop reads them that goes over all bytes of an iteration, and not over the call's alone; 0: nobody
 * measured that. */
double bz_way_again(const bz_whatif_asked *asked, const bz_pick *pick);
/* How many times as long as its record a call takes once its data is near, where it takes `now` times as long. */
double bz_way_slower(const bz_whatif_asked *asked, const bz_pick *pick, double now);

static inline const bz_bound_layer *bz_way_layer(const bz_whatif_asked *asked, const bz_layer_place *place, int k)
{
    return &asked->model->bound->layer[place->layer[k]];
}
bool bz_way_is_product(const bz_whatif_asked *asked, const bz_layer_place *place);

/* Channels in a block: as wide as the vectors that the library's direct code for this processor uses. picks of n layers */
int64_t bz_way_block(const bz_picks *direct, int n);
/* Do the channels of each group of a convolution fill blocks? Where not, oneDNN takes narrower blocks, so that the tensors before and behind it are
 * reordered, and ONNX Runtime's NCHWc code has nothing for it. A channel by itself lies in a lane: *whole, do such channels fill all blocks? */
bool bz_way_fills(const bz_layer *l, int64_t block, bool *whole);
/* x × sigmoid(x), which PyTorch's networks call as one operator: is node `mul` the product? *sigmoid is the sigmoid then. */
bool bz_way_is_silu(const bz_bound *b, int mul, int *sigmoid);
bool bz_way_same_shape(const bz_type *a, const bz_type *b);
/* [nodes]: bytes of results of layers before, floats in `dtype`, that the layer does not read and one behind it does: a skip connection's, those that a concatenation joins. */
double *bz_way_waiting(const bz_whatif_asked *asked, bz_dtype dtype);
/* Does a program of which a layer holds `most` bytes at once, and whose largest block has `largest`, take no memory anew in an iteration? The C library of GNU
 * maps a block that is larger than any it has mapped and got back, up to MAPPED; it gives the heap's end back to the system where more than twice the largest of
 * those is free (mallopt(3): M_MMAP_THRESHOLD). Blocks of weights that are prepared come back, too. */
bool bz_way_keeps_memory(double most, double largest);

/* Where a tensor passes between layers of two sides, as a library's and a framework's, it is reordered: once; for each layer that reads it; or, as it leaves
 * the side that is true, copied as it lies, once, and reordered for each that reads it, and on its way back once. */
typedef enum { BZ_BORDER_ONCE, BZ_BORDER_EACH, BZ_BORDER_COPY } bz_way_border;
typedef struct bz_way_borders {
    const bz_layer_map *map;
    const bool *side; /* [nodes] */
    const bool *gone; /* [places of the map]: no task does them any more */
    bz_way_border how;
    int64_t (*took)(const struct bz_way_borders *b, const bz_layer *from);
    bz_tally *added;
} bz_way_borders;
void bz_way_add_borders(bz_way_borders *b);

#endif
