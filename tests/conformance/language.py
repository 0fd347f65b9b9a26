#!/usr/bin/python3
"""tests/conformance/language.py BENANZA: language models as exporters write them (language_models.py) have the parameters that
their makers state, and the work of closed formulas, in prefill and decode, in f16 and 4 bits; dimensions that have names need
their lengths once."""
import json
import os
import subprocess
import sys
import tempfile

from language_models import BLOCK, CONFIGS, NAMES, OPSETS, PLAIN, make, save

POINTS = [('prefill', 2, 0, 512), ('decode', 1, 1024, 1), ('decode of many', 16, 3000, 1), ('chunk', 1, 512, 128)]
BANDWIDTH = 1e11  # of the machine made up below; it computes faster than it reads
MACHINE = {"v": 1, "record": "system", "slug": "machine", "stack": "onednn2.6.3", "date": 1700000000, "device": "cpu", "measured": {
    "threads": 1, "flops": {t: 1e15 for t in ("f32", "f16", "bf16")}, "launch": {"onednn": 1e-7},
    "bandwidth": [{"bytes": 2 ** 28, "read": BANDWIDTH, "copy": BANDWIDTH, "copy_cold": BANDWIDTH}]}}
TABLE = 4096  # rows of the tables of cosines and sines


def layers(benanza, path, style, batch, past, tokens):
    names = NAMES[style]
    dims = [f'--dim={name}={n}' for name, n in zip(names, (batch, tokens, past))]
    done = subprocess.run([benanza, 'layers', '--json', path] + dims, capture_output=True, text=True)
    assert done.returncode == 0, (path, done.stderr)
    taken = f'total_sequence_length is taken as past_sequence_length + sequence_length, {past + tokens}'
    cached = f'use_cache_branch is taken as {"true" if past else "false"}: past_key_values.0.key is {"not " if past else ""}empty'
    warned = [line for line in done.stderr.splitlines() if taken not in line and (style != 'merged' or cached not in line)]
    assert not warned and (style != 'genai' or taken in done.stderr), (path, done.stderr)
    found = json.loads(done.stdout)
    return (found if isinstance(found, list) else found['models'])[0]


def stored(c, weights):
    """Bytes of the matrices that every token needs: blocks and head."""
    elements = c.layers * c.weights() + c.vocab * c.hidden
    if weights != 'int4':
        return 2 * elements
    packed = c.layers * c.weights() + (0 if c.tied else c.vocab * c.hidden)
    return packed // 2 + packed // BLOCK * 2 + packed // BLOCK // 2 + 2 * (elements - packed)


def check_bound(benanza, path, db, name, style, weights):
    """The modelled part of a decode step's bound is what must be read over the bandwidth, at every length of a sweep."""
    c, (batch, tokens, past, _) = CONFIGS[name], NAMES[style]
    lengths = (0, 1024, 4096)
    dims = [f'--dim={batch}=1', f'--dim={tokens}=1', f'--dim={past}=' + ','.join(map(str, lengths))]
    done = subprocess.run([benanza, 'analyze', '--json', path, '--db', db, '--system', 'machine'] + dims, capture_output=True, text=True)
    assert done.returncode == 4, (path, done.stderr)
    models = json.loads(done.stdout)['models']
    assert len(models) == len(lengths)
    for m, length in zip(models, lengths):
        seen = min(length + 1, c.window) if c.window and style == 'genai' else length + 1  # others mask what is behind it
        cache = 2 * c.layers * c.kv * c.head * seen * 2
        least, most = stored(c, weights) + cache, 1.02 * stored(c, weights) + (1.02 if NAMES[style] != PLAIN else 10 * c.heads / c.kv) * cache
        assert m['model'].endswith(f', {past}={length}') and m['step']['past'] == length, m['model']
        assert least <= m['hardware'] * BANDWIDTH <= most, (name, style, weights, length, m['hardware'] * BANDWIDTH, least, most)
        assert abs(m['step']['tokens_per_second_hardware'] * m['hardware'] - 1) < 1e-9, m['step']


def check(benanza, path, name, style, weights):
    c = CONFIGS[name]
    beside = c.head // 2 if NAMES[style] == PLAIN else TABLE * c.head
    for what, batch, past, tokens in POINTS:
        m = layers(benanza, path, style, batch, past, tokens)
        where = (name, style, weights, what)
        outputs = {o['name']: o['shape'] for layer in m['layers'] for o in layer['outputs']}
        assert outputs['logits'] == [batch, tokens, c.vocab], (where, outputs['logits'])
        for i in (0, c.layers - 1):
            got = outputs[f'present.{i}.value']
            assert got == [batch, c.kv, past + tokens, c.head], (where, got)
        assert m['totals']['params'] == c.parameters() + beside, (where, m['totals']['params'], c.parameters())
        angles = c.head // 2 * tokens * batch if NAMES[style] == PLAIN else 0
        assert m['totals']['macs'] == c.macs(past, tokens, batch) + angles, (where, m['totals']['macs'], c.macs(past, tokens, batch))
        if tokens == 1 and batch == 1 and NAMES[style] != PLAIN:
            cache = 2 * c.layers * c.kv * c.head * (past + 1) * 2
            least = stored(c, weights) + cache
            assert least <= m['totals']['bytes'] <= 1.02 * least, (where, m['totals']['bytes'], least)


def main():
    count = 0
    for name, c in CONFIGS.items():
        assert c.parameters() == c.published, (name, c.parameters(), c.published)
        for style in OPSETS:
            if style == 'merged' and name not in ('llama-3-8b', 'qwen2-0.5b'):
                continue
            for weights in ('f16', 'int4', 'bf16') if name == 'llama-3-8b' else ('f16', 'int4'):
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, 'model.onnx')
                    save(make(name, style, weights), path)
                    check(sys.argv[1], path, name, style, weights)
                    if name in ('llama-2-7b', 'mistral-7b', 'qwen2-0.5b'):
                        with open(os.path.join(folder, 'machine.jsonl'), 'w') as f:
                            json.dump(MACHINE, f)
                        db = os.path.join(folder, 'db')
                        subprocess.run([sys.argv[1], 'db', 'import', '--db', db, f.name], check=True, stdout=subprocess.DEVNULL)
                        check_bound(sys.argv[1], path, db, name, style, weights)
                count += 1
    print(f'{count} graphs of {len(CONFIGS)} language models have the parameters, work and bytes of their configurations')


main()
