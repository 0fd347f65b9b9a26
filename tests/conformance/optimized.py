#!/usr/bin/python3
"""tests/conformance/optimized.py BENANZA MODEL...: models as ONNX Runtime's optimizer writes them, at every level, have the
work of the plain model, and shapes that are known. NODE_PATH must have onnxruntime-node.

Two things change by the optimizer's doing and are allowed for: a batch normalization that it makes a convolution of one
weight per channel (one multiplication per element), and activations that it computes in other operators."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

LEVELS = ['basic', 'extended', 'layout', 'all']
OPTIMIZE = """
const ort = require('onnxruntime-node'), [model, ...rest] = process.argv.slice(1);
(async () => {
  for (let i = 0; i < rest.length; i += 2)
    await ort.InferenceSession.create(model, {graphOptimizationLevel: rest[i], optimizedModelFilePath: rest[i + 1],
      logSeverityLevel: 3, intraOpNumThreads: 1});
})();
"""


def layers(benanza, model):
    done = subprocess.run([benanza, 'layers', '--json', model], capture_output=True, text=True)
    assert done.returncode == 0, (model, done.stderr)
    found = json.loads(done.stdout)
    return (found if isinstance(found, list) else found['models'])[0], done.stderr


def scaling(layer):
    """A convolution that only multiplies each channel by a number."""
    return re.search(r' w=(\d+)x1x1x1 .*group=\1( |$)', layer['key']) is not None


def work(model, plain):
    had = {layer['key'] for layer in plain['layers']}
    return sum(l['macs'] for l in model['layers'] if not (l['kind'] == 'conv' and scaling(l) and l['key'] not in had))


def main():
    benanza, models = sys.argv[1], sys.argv[2:]
    if not shutil.which('node') or subprocess.run(['node', '-e', "require('onnxruntime-node')"], capture_output=True).returncode:
        print('skipped: there is no node, or NODE_PATH has no onnxruntime-node')
        sys.exit(77)
    compared = 0
    for path in models:
        plain, _ = layers(benanza, path)
        with tempfile.TemporaryDirectory() as folder:
            files = [(level, os.path.join(folder, level + '.onnx')) for level in LEVELS]
            subprocess.run(['node', '-e', OPTIMIZE, os.path.abspath(path)] + [x for pair in files for x in pair], check=True)
            for level, file in files:
                model, warnings = layers(benanza, file)
                where = f'{path}, {level}'
                assert work(model, plain) == plain['totals']['macs'], (where, work(model, plain), plain['totals']['macs'])
                assert 'not known' not in warnings, (where, warnings)
                shapes = [o['shape'] for l in model['layers'] for o in l['outputs'] if o['shape'] is not None]
                assert shapes and all(isinstance(d, int) for s in shapes for d in s), where
                compared += 1
    print(f'{compared} optimized models have the work of the plain ones')


main()
