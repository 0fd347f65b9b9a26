/* Which counters make up what a person asks for. Names are those of the profiling library of CUDA 13, which knows chips
 * from Volta to Blackwell; tests/cuda/counters.c holds every row against it. */
#include "runtime/metrics.h"

#include <string.h>

#define ALL "GV TU GA GH AD GB"

/* A chip without memory of its own counts no DRAM: the processor's is behind another unit. */
#define NO_DRAM " !GV11B !GA10B !GB10B !GB20B"

const bz_metric bz_metrics[] = {
    /* Instructions of threads; a fused multiply-add is two operations. */
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_fadd_pred_on.sum"},
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_fmul_pred_on.sum"},
    {"flops", "flops", NULL, 2, ALL, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"},
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_hadd_pred_on.sum"},
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_hmul_pred_on.sum"},
    {"flops", "flops", NULL, 2, ALL, "sm__sass_thread_inst_executed_op_hfma_pred_on.sum"},
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_dadd_pred_on.sum"},
    {"flops", "flops", NULL, 1, ALL, "sm__sass_thread_inst_executed_op_dmul_pred_on.sum"},
    {"flops", "flops", NULL, 2, ALL, "sm__sass_thread_inst_executed_op_dfma_pred_on.sum"},
    /* Tensor cores, by the type of their operands: operations already, of integers too. */
    {"flops", "flops", "tensor_flops", 1, "GV TU GA AD GB !TU11", "sm__ops_path_tensor_src_fp16_dst_fp16.sum"},
    {"flops", "flops", "tensor_flops", 1, "GV GA AD GB", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"},
    {"flops", "flops", "tensor_flops", 1, "GH", "sm__ops_path_tensor_src_fp16.sum"},
    {"flops", "flops", "tensor_flops", 1, "TU !TU11", "sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum"},
    {"flops", "flops", "tensor_flops", 1, "GA GH AD GB", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"},
    {"flops", "flops", "tensor_flops", 1, "GA GH AD GB", "sm__ops_path_tensor_src_tf32_dst_fp32.sum"},
    {"flops", "flops", "tensor_flops", 1, "GA GH AD GB", "sm__ops_path_tensor_src_fp64.sum"},
    {"flops", "flops", "tensor_flops", 1, "TU GA GH AD GB !TU11", "sm__ops_path_tensor_src_int8.sum"},
    {"flops", "flops", "tensor_flops", 1, "GH AD", "sm__ops_path_tensor_src_fp8.sum"},
    {"flops", "flops", "tensor_flops", 1, "GB100 GB102 GB10B", "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16.sum"},
    {"flops", "flops", "tensor_flops", 1, "GB100 GB102 GB10B", "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum"},
    {"flops", "flops", "tensor_flops", 1, "GB11 GB20", "sm__ops_path_tensor_src_fp8_dst_fp16.sum"},
    {"flops", "flops", "tensor_flops", 1, "GB11 GB20", "sm__ops_path_tensor_src_fp8_dst_fp32.sum"},
    {"dram", "dram_read", NULL, 1, "GV TU GA GH AD GB1" NO_DRAM, "dram__bytes_read.sum"},
    {"dram", "dram_write", NULL, 1, "GV TU GA GH AD GB1" NO_DRAM, "dram__bytes_write.sum"},
    {"dram", "dram_read", NULL, 1, "GB2" NO_DRAM, "dram__bytes_op_read.sum"},
    {"dram", "dram_write", NULL, 1, "GB2" NO_DRAM, "dram__bytes_op_write.sum"},
    /* Warps in flight over those that a multiprocessor has room for, while it is busy: percent. */
    {"occupancy", "occupancy", NULL, 0.01, ALL, "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {0},
};

bool bz_metric_is_on(const bz_metric *m, const char *chip)
{
    bool on = false;
    for (const char *at = m->chips; *at;) {
        size_t n = strcspn(at, " ");
        bool out = *at == '!';
        if (!strncmp(chip, at + out, n - out)) {
            if (out)
                return false;
            on = true;
        }
        at += n + strspn(at + n, " ");
    }
    return on;
}

size_t bz_metrics_word(const char **list, const char **word)
{
    *word = *list + strspn(*list, ",");
    size_t n = strcspn(*word, ",");
    *list = *word + n;
    return n;
}

bool bz_metrics_group(const char *word, size_t n)
{
    for (const bz_metric *m = bz_metrics; m->group; m++)
        if (strlen(m->group) == n && !strncmp(word, m->group, n))
            return true;
    return false;
}

/* UNIT__WHAT.ROLLUP */
bool bz_metrics_name(const char *word, size_t n)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    const char *unit = strstr(word, "__"), *rollup = memchr(word, '.', n);
    return n < 96 && strspn(word, LETTERS) >= n && unit && unit > word && rollup && unit < rollup;
}

int bz_metrics_check(const char *list, bool *counters, bz_error *err)
{
    const char *word, *at = list;
    *counters = false;
    for (size_t n; (n = bz_metrics_word(&at, &word));) {
        bool counter = bz_metrics_group(word, n) || bz_metrics_name(word, n);
        *counters |= counter;
        if (!counter && (n != 7 || strncmp(word, "kernels", n) != 0))
            return bz_fail(err, BZ_USAGE,
                           "--metrics knows kernels, flops, dram, occupancy, and counters by name such as "
                           "dram__bytes_read.sum; or none; not '%.*s'",
                           (int)(n < 96 ? n : 96), word);
    }
    if (!list[strspn(list, ",")])
        return bz_fail(err, BZ_USAGE,
                       "--metrics takes a list: kernels, flops, dram, occupancy, or names of counters; or none");
    return 0;
}
