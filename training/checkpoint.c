/* Activations that are computed again: the forward pass is cut into parts, and what lives within a part is not kept. Before the
 * backward pass of a part its layers run once more, from what the part before it left. */
#include "training/build.h"

/* Chance is not asked twice: what it made is kept. */
static bool is_forward(const build *b, const step *s)
{
    const bz_node *node = s->layer->node;
    bz_value_id made = node->n_out == 1 ? grad_id(b, node->out[0]) : BZ_NO_VALUE;
    bool elsewhere = made >= 0 && (b->turned[made] >= 0 || b->trained[made]);
    return s->layer->class != BZ_CONSTANT && !elsewhere && !bz_layer_has(s->layer, BZ_LAYER_RANDOM);
}

/* Parts of about as many bytes of results each; the last one is never computed again, since its backward pass follows at once. */
void checkpoint_cut(build *b)
{
    double all = 0, before = 0;
    int parts = b->options->parts > 1 ? b->options->parts : 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->n_steps; i++) {
            step *s = &b->steps[i];
            double own = 0;
            for (int k = 0; k < s->layer->n_out; k++) {
                int64_t bytes = s->layer->class == BZ_VIEW ? 0 : bz_type_bytes(&s->layer->out[k]);
                own += bytes > 0 ? (double)bytes : 0;
            }
            if (!pass) {
                all += own;
                continue;
            }
            s->part = all > 0 ? (int)(before / all * parts) : 0;
            s->part = s->part < parts ? s->part : parts - 1;
            before += own;
        }
}

/* The layers of the part that ends with step `last`. */
int checkpoint_again(build *b, int last)
{
    int part = b->steps[last].part, first = last;
    if (b->options->parts < 2 || part == b->steps[b->n_steps - 1].part)
        return 0;
    while (first > 0 && b->steps[first - 1].part == part)
        first--;
    for (int i = first; i <= last; i++)
        for (int k = 0; k < b->steps[i].layer->n_out && is_forward(b, &b->steps[i]); k++)
            if (b->steps[i].layer->node->out[k] >= 0)
                b->name[grad_id(b, b->steps[i].layer->node->out[k])] = NULL;
    b->again = true;
    for (int i = first; i <= last; i++)
        if (is_forward(b, &b->steps[i]) && forward_put(b, &b->steps[i]))
            return -1;
    b->again = false;
    return 0;
}
