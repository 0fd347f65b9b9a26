#!/usr/bin/python3
"""tests/conformance/optimized.py BENANZA LOWERING MODEL...: models as ONNX Runtime's optimizer writes them, at every level, have the
work of the plain model, shapes that are known, and results of the shapes that ONNX Runtime computes. Every layer has a price
(LOWERING, conformance_lowering, writes it as library calls) or a listed reason. NODE_PATH must have onnxruntime-node.

Two things change by the optimizer's doing and are allowed for: a batch normalization that it makes a convolution of one
weight per channel (one multiplication per element), and activations that it computes in other operators."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

RUN = """
const ort = require('onnxruntime-node'), TYPES = {int64: BigInt64Array, int32: Int32Array, float32: Float32Array, bool: Uint8Array};
(async () => {
  const session = await ort.InferenceSession.create(process.argv[1], {logSeverityLevel: 3}), feeds = {}, shapes = {};
  for (const {name, type, shape} of session.inputMetadata)
    feeds[name] = new ort.Tensor(type, new TYPES[type](shape.reduce((a, b) => a * b, 1)), shape);
  for (const [name, value] of Object.entries(await session.run(feeds)))
    shapes[name] = value.dims;
  console.log(JSON.stringify(shapes));
})();
"""
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
    benanza, lowering, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    reasons = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'unlowered.txt')
    if not shutil.which('node') or subprocess.run(['node', '-e', "require('onnxruntime-node')"], capture_output=True).returncode:
        print('skipped: there is no node, or NODE_PATH has no onnxruntime-node')
        sys.exit(77)
    compared = 0
    for path in models:
        plain, _ = layers(benanza, path)
        with tempfile.TemporaryDirectory() as folder:
            files = [(level, os.path.join(folder, level + '.onnx')) for level in LEVELS]
            subprocess.run(['node', '-e', OPTIMIZE, os.path.abspath(path)] + [x for pair in files for x in pair], check=True)
            ran = json.loads(subprocess.run(['node', '-e', RUN, os.path.abspath(path)], capture_output=True, text=True, check=True).stdout)
            lowered = subprocess.run([lowering, reasons] + [file for _, file in files], capture_output=True, text=True).stdout
            assert 'NOT LISTED' not in lowered, (path, [l for l in lowered.splitlines() if 'NOT LISTED' in l])
            for level, file in files:
                model, warnings = layers(benanza, file)
                where = f'{path}, {level}'
                assert work(model, plain) == plain['totals']['macs'], (where, work(model, plain), plain['totals']['macs'])
                assert 'not known' not in warnings, (where, warnings)
                shapes = [o['shape'] for l in model['layers'] for o in l['outputs'] if o['shape'] is not None]
                assert shapes and all(isinstance(d, int) for s in shapes for d in s), where
                results = {o['name']: o['shape'] for l in model['layers'] for o in l['outputs']}
                assert ran and all(results[name] == shape for name, shape in ran.items()), (where, ran)
                assert all(l['priced'] for l in model['layers']), (where, [l['name'] for l in model['layers'] if not l['priced']])
                compared += 1
    print(f'{compared} optimized models have the work of the plain ones, the shapes that ONNX Runtime computes, and prices')


main()
