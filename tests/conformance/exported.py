#!/usr/bin/python3
"""tests/conformance/exported.py BENANZA [CASE...]: small models, each with a structure that exporters and runtimes write. `layers` counts
the work of a formula that stands beside the graph, knows the shapes, and ends with the status and the sentence that are due; `bound
--no-run` ends by itself with a documented one."""
import json
import os
import subprocess
import sys
import tempfile

import exported_fused
import exported_parts
from exported_graph import CASES
from onnx import save

assert exported_fused and exported_parts  # they fill CASES


def wrong_with(model, listed, macs, outs, dtypes=None, said='', status=0, unknown=False):
    wrong = [f'ends with {listed.returncode}, not {status}'] if listed.returncode != status else []
    if said not in listed.stderr or (not said and listed.stderr):
        wrong.append(f'says {listed.stderr!r}')
    layers = (model if isinstance(model, list) else model['models'])[0]
    if layers['totals']['macs'] != macs:
        wrong.append(f"{layers['totals']['macs']} MACs, not {macs}")
    shapes = {o['name']: o['shape'] for l in layers['layers'] for o in l['outputs']}
    wrong += [f'{name} is {shapes.get(name)}, not {shape}' for name, shape in outs.items() if shapes.get(name) != shape]
    for l in layers['layers']:
        kind = (dtypes or {}).get(l['op'])
        if kind and any(i['dtype'] != kind for i in l['inputs']):
            wrong.append(f"{l['name']} is not of {kind}")
    if unknown != (layers['totals']['open'] > 0):
        wrong.append(f"{layers['totals']['open']} layers are open")
    return wrong


def main():
    benanza, only, count, failed = sys.argv[1], sys.argv[2:], 0, 0
    for f in CASES:
        if only and f.__name__ not in only:
            continue
        model, options, macs, outs, *more = f()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f.__name__ + '.onnx')
            save(model, path)
            listed = subprocess.run([benanza, 'layers', '--json', path] + options, capture_output=True, text=True)
            bound = subprocess.run([benanza, 'bound', '--no-run', '--json', '--db', folder + '/db', path] +
                                   [o for o in options if not o.startswith('--trips')], capture_output=True, text=True)
        count += 1
        wrong = [listed.stderr] if not listed.stdout else wrong_with(json.loads(listed.stdout), listed, macs, outs, **(more[0] if more else {}))
        if bound.returncode not in (0, 4):
            wrong.append(f'bound ends with {bound.returncode}: {bound.stderr}')
        if wrong:
            print(f.__name__ + ': ' + '; '.join(wrong))
            failed += 1
    print(f'{count - failed} of {count} models have the work of their formulas')
    sys.exit(failed > 0)


main()
