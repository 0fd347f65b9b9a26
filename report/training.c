/* An iteration of training as a whole: what its phases cost, and the memory that it needs, as text and JSON. */
#include "training/training.h"
#include "base/member.h"

static const bz_member PHASE[] = {BZ_FIELDS(bz_phase_cost, phase, layers, macs, flops, bytes)};

static void put_memory(const bz_training *t, bz_json *j)
{
    bz_memory m;
    bz_memory_predict(t, &m);
    bz_json_key_object(j, "memory");
    BZ_JSON(j, BZ_TELL("peak", m.peak),
            BZ_TELL("layer", m.peak_layer >= 0 ? t->layers->layer[m.peak_layer].name : NULL), BZ_TELL("kept", m.kept));
    BZ_JSON_EACH (j, "classes", c, BZ_HELD_CLASSES)
        BZ_JSON(j, BZ_TELL("class", bz_held_name((bz_held)c)), BZ_TELL("at_peak", m.at_peak[c]),
                BZ_TELL("most", m.most[c]));
    bz_json_object_end(j);
}

void bz_report_training_json(const bz_training *t, bz_json *j)
{
    bz_phase_cost cost[BZ_TRAIN_PHASES];
    bz_training_costs(t, cost);
    bz_json_key_object(j, "training");
    BZ_JSON(j, BZ_TELL("weights", t->layers->trained), BZ_TELL("tensors", t->n_weights));
    bz_members_rows("phases", BZ_MEMBERS(PHASE), cost, sizeof *cost, BZ_TRAIN_PHASES, j);
    put_memory(t, j);
    bz_json_object_end(j);
}

void bz_report_training(const bz_training *t, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_phase_cost cost[BZ_TRAIN_PHASES];
    bz_memory m;
    bz_table *table = bz_table_of(&arena, "phase|>layers|>MACs|>bytes");
    bz_training_costs(t, cost);
    bz_memory_predict(t, &m);
    bz_buf_printf(out, "  one iteration of training changes %s weights in %d tensors\n\n",
                  BZ_SAY_COUNT((double)t->layers->trained), t->n_weights);
    for (int p = 0; p < BZ_TRAIN_PHASES; p++)
        BZ_ROW(table, BZ_SHOW(cost[p].phase), BZ_SHOW_INT(cost[p].layers), BZ_SHOW_COUNT(cost[p].macs),
               BZ_SHOW_BYTES((double)cost[p].bytes));
    bz_table_print(table, out);
    bz_buf_say(out, "\nmemory: at most %s, modelled, at layer '%s':", BZ_SAY_BYTES((double)m.peak),
               m.peak_layer >= 0 ? t->layers->layer[m.peak_layer].name : "");
    for (int c = 0; c < BZ_HELD_CLASSES; c++)
        if (m.at_peak[c])
            bz_buf_printf(out, " %s %s (%s)", bz_held_name((bz_held)c), BZ_SAY_BYTES((double)m.at_peak[c]),
                          BZ_SAY_SHARE((double)m.at_peak[c] / (double)m.peak));
    bz_buf_puts(out, "\n\n");
}
