/* How many blocks of a kernel one multiprocessor holds. The limits are facts of the architectures (CUDA C++ programming guide,
 * technical specifications per compute capability). */
#include "predict/predict.h"

enum { WARP = 32, UNIT = 256, PLENTY = 1 << 20 };

static const struct {
    bz_occupancy_limits limits;
    int blocks, parts; /* parts: of a multiprocessor, each with registers of its own */
} CHIPS[] = {
    {{30, 2048, 65536, 65536, 49152}, 16, 4},   {{35, 2048, 65536, 65536, 49152}, 16, 4},
    {{37, 2048, 131072, 65536, 114688}, 16, 4}, {{50, 2048, 65536, 65536, 65536}, 32, 4},
    {{52, 2048, 65536, 65536, 98304}, 32, 4},   {{60, 2048, 65536, 65536, 65536}, 32, 2},
    {{61, 2048, 65536, 65536, 98304}, 32, 4},   {{70, 2048, 65536, 65536, 98304}, 32, 4},
    {{75, 1024, 65536, 65536, 65536}, 16, 4},   {{80, 2048, 65536, 65536, 167936}, 32, 4},
    {{86, 1536, 65536, 65536, 102400}, 16, 4},  {{89, 1536, 65536, 65536, 102400}, 24, 4},
    {{90, 2048, 65536, 65536, 233472}, 32, 4},  {{100, 2048, 65536, 65536, 233472}, 32, 4},
    {{120, 1536, 65536, 65536, 102400}, 24, 4},
};
enum { CHIP_COUNT = sizeof CHIPS / sizeof *CHIPS };

/* The row of a capability; of one that is newer than all the newest below it. */
static int chip_of(int capability)
{
    int found = -1;
    for (int i = 0; i < CHIP_COUNT; i++)
        if (CHIPS[i].limits.capability <= capability)
            found = i;
    return found;
}

bool bz_occupancy_limits_of(int capability, bz_occupancy_limits *out)
{
    int i = chip_of(capability);
    if (i >= 0)
        *out = CHIPS[i].limits;
    return i >= 0;
}

static int up(int v, int unit)
{
    return (v + unit - 1) / unit * unit;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Registers are handed out by warp, in units, from the part of the multiprocessor that the warp runs in. */
static int by_registers(const bz_occupancy_limits *l, int parts, int registers, int warps)
{
    int each = up(registers * WARP, UNIT);
    if (!registers)
        return PLENTY;
    if (registers > (l->capability < 70 ? 255 : 256) || each * up(warps, parts) > l->block_registers)
        return 0;
    int four = 4 * (l->registers / 4 / each) / warps, own = parts * (l->registers / parts / each) / warps;
    return l->capability == 60 && !four ? 0 : own;
}

int bz_occupancy(const bz_occupancy_limits *l, const bz_launch *k)
{
    int chip = chip_of(l->capability), shared = k->shared_static + k->shared_dynamic;
    if (chip < 0 || k->threads < 1 || k->threads > 1024 || k->registers < 0 || k->registers > 1024 ||
        k->shared_static < 0 || k->shared_dynamic < 0 || k->shared_static > PLENTY || k->shared_dynamic > PLENTY ||
        shared > 49152)
        return 0;
    int warps = (k->threads + WARP - 1) / WARP, reserved = l->capability >= 80 ? 1024 : 0;
    int taken = up(shared + reserved, l->capability < 80 ? 256 : 128);
    int most = least(CHIPS[chip].blocks, l->threads / WARP / warps);
    most = least(most, by_registers(l, CHIPS[chip].parts, k->registers, warps));
    return shared || reserved ? least(most, taken ? l->shared / taken : PLENTY) : most;
}
