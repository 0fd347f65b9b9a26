// The Google Benchmark shim: the only C++ here.
#include "runtime/gbench.h"

#include <benchmark/benchmark.h>

#include <vector>

namespace
{

// Keeps the one result; prints nothing.
class keeper : public benchmark::BenchmarkReporter
{
  public:
    bool ReportContext(const Context &) override
    {
        return true;
    }
    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs)
            if (run.run_type == Run::RT_Iteration) {
                iterations = run.iterations;
                seconds = run.real_accumulated_time;
            }
    }
    int64_t iterations = 0;
    double seconds = -1;
};

} // namespace

double bz_gbench_sample(bz_gbench_body *body, void *context, double min_time, int64_t *iterations)
{
    keeper result;
    bool failed = false;
    benchmark::ClearRegisteredBenchmarks();
    benchmark::internal::Benchmark *b = benchmark::RegisterBenchmark("sample", [&](benchmark::State &state) {
        while (state.KeepRunningBatch(state.max_iterations)) {
            double seconds = body(context, state.max_iterations);
            if (seconds < 0) {
                failed = true;
                state.SkipWithError("gave up");
                break;
            }
            state.SetIterationTime(seconds);
        }
    });
    b->UseManualTime();
    if (*iterations)
        b->Iterations(*iterations);
    else
        b->MinTime(min_time);
    benchmark::RunSpecifiedBenchmarks(&result, "sample");
    benchmark::ClearRegisteredBenchmarks();
    if (failed || result.iterations == 0)
        return -1;
    *iterations = result.iterations;
    return result.seconds / static_cast<double>(result.iterations);
}
