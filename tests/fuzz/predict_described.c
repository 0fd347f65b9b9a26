/* Files that describe a GPU or a processor: what is taken has rates, and a roofline that is a time. */
#include "predict/predict.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char PROBLEM[] = "conv x=1x64x56x56 w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
    bz_error err;
    bz_arena arena = {0};
    bz_problem problem;
    bz_shape shape;
    bz_machine machine;
    char *text = bz_arena_strn(&arena, (const char *)data, size);
    FILE *f = fmemopen(text, size + 1, "r");
    PROMISE(f && !bz_problem_parse(PROBLEM, &problem, &err));
    bz_shape_of(&problem, &shape);
    if (!bz_machine_described(f, "file", &machine, &err)) {
        PROMISE(machine.f32 > 0 && machine.bandwidth > 0 && machine.vouched > 0 && machine.vouched <= 1);
        for (double bytes = 1; bytes < 1e13; bytes *= 3)
            PROMISE(bz_machine_bandwidth(&machine, bytes) > 0);
        double seconds = bz_shape_roofline(&shape, &machine, machine.launch, 1);
        PROMISE(seconds >= 0 && !isnan(seconds));
    }
    fclose(f);
    bz_arena_free(&arena);
    return 0;
}
