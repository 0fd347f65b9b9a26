/* Sets of 'benanza predict --train': what is read predicts without a fall, and is read again as it is written. */
#include "predict/predict.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char PROBLEM[] = "conv x=1x64x56x56 w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
    bz_error err;
    bz_arena arena = {0};
    bz_predictor *p, *again;
    bz_problem problem;
    bz_shape shape;
    bz_machine machine;
    char *text = bz_arena_strn(&arena, (const char *)data, size);
    PROMISE(!bz_problem_parse(PROBLEM, &problem, &err) && !bz_machine_named("t4", &arena, &machine, &err));
    bz_shape_of(&problem, &shape);
    if (!bz_predictor_read(text, "set", &p, &err)) {
        bz_buf out = {0};
        bz_aim *aim = bz_predictor_aim(p, &machine, NULL, -1, NULL);
        bz_predicted_time is = bz_predict(aim, PROBLEM, &shape);
        PROMISE(!(is.seconds < 0) && !(is.spread < 0));
        bz_aim_free(aim);
        bz_predictor_write(p, &out);
        SAW(out.data, out.len);
        PROMISE(!bz_predictor_read(bz_buf_text(&out), "again", &again, &err));
        bz_predictor_free(again);
        bz_buf_free(&out);
        bz_predictor_free(p);
    }
    bz_arena_free(&arena);
    return 0;
}
