/* The number in advice that no record and no recording tells: what it stands for, where it is from, and what a value
 * twice as large would change. Those of transformations stand with their parameters in whatif/transformations.c. Private to advice/. docs/benchmarks.md ("Advice") has the recordings; tests/bench/advice.py repeats them. */
#ifndef BZ_ADVICE_CONSTANTS_H
#define BZ_ADVICE_CONSTANTS_H

/* Share of the latency by which a program differs from one process to the next at the least: a gain is not known better. Measured: a ResNet-18
 * of PyTorch took 29.3 to 30.5 ms in three processes, one of ONNX Runtime 22.6 to 23.3 in four (Zen 5, 2026-11-23, tests/bench/advice.py), while the
 * iterations of one process told their median within 0.2 %. Twice: intervals are wider by as much. */
static const double ADVICE_PROCESSES = 0.01;

#endif
