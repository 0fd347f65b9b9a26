/* Families that are still to be written: this file goes when the last of them is there. */
#include "modelproc/op.h"

static const op ROWS[1] = {{.kind = "none", .name = "-"}};

const op_table ops_rnn = {ROWS, 0};
const op_table ops_quant = {ROWS, 0};
const op_table ops_vision = {ROWS, 0};
const op_table ops_signal = {ROWS, 0};
const op_table ops_sequence = {ROWS, 0};
const op_table ops_random = {ROWS, 0};
const op_table ops_loss = {ROWS, 0};
const op_table ops_text = {ROWS, 0};
const op_table ops_ml = {ROWS, 0};
const op_table ops_microsoft = {ROWS, 0};
const op_table ops_training = {ROWS, 0};
