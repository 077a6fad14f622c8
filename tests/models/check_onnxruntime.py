#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of tests/models in ONNX Runtime: are the results that they state right?

  check_onnxruntime.py [PART OF A NAME ...]      needs numpy, onnx and onnxruntime

Cases that ONNX Runtime refuses are listed and do not count. Cases that sinter refuses are left out.
"""
import glob
import os
import re
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime

TYPES = {'float': np.float32, 'double': np.float64, 'float16': np.float16, 'bool': np.bool_,
         **{f'{u}int{n}': np.dtype(f'{u}int{n}') for u in ('', 'u') for n in (8, 16, 32, 64)}}


def tensor(text):
    m = re.match(r'(\w+)\s*(?:\[([^\]]*)\])?\s*(iota|\{([^}]*)\})', text)
    kind, shape = TYPES[m[1]], [int(d) for d in m[2].split(',')] if m[2] else []
    if m[3] == 'iota':
        data = np.arange(np.prod(shape, dtype=int))
    else:
        data = np.array([float(v) if np.issubdtype(kind, np.floating) else int(v) for v in m[4].split(',') if v.strip()])
    return data.astype(kind).reshape(shape)


def cases(path):
    text = re.sub(r'(?m)^\s*#.*$', '', open(path).read())
    for block in re.split(r'(?m)^case ', text)[1:]:
        name, rest = block.split('\n', 1)
        opset = re.match(r'\s*opset (\d+)', rest)
        graph = re.search(r'(?ms)^\w+ \(.*?^\}', rest)
        runs, current = [], None
        for m in re.finditer(r'(?m)^(->)?\s*(refused|fails|\w+)\s*(=)?\s*((?:\w+\s*(?:\[[^\]]*\])?\s*(?:iota|\{[^}]*\}))|".*")', rest[graph.end():]):
            if m[2] == 'refused':
                runs = None
                break
            if not m[1]:
                if current is None or current[1] or current[2]:
                    current = ({}, {}, [])
                    runs.append(current)
                current[0][m[2]] = tensor(m[4])
            elif m[2] == 'fails':
                current[2].append(m[4])
            else:
                current[1][m[2]] = tensor(m[4])
        yield name, int(opset[1]) if opset else 18, graph[0], runs


def check(name, opset, text, runs):
    graph = onnx.parser.parse_graph(text)
    domains = [onnx.helper.make_opsetid('', opset), onnx.helper.make_opsetid('com.microsoft', 1)]
    model = onnx.helper.make_model(graph, opset_imports=domains, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    for given, wanted, fails in runs:
        if fails:
            continue
        got = session.run(list(wanted), given)
        for (output, want), have in zip(wanted.items(), got):
            if want.dtype == have.dtype and want.ndim == have.ndim and not want.size and not have.size:
                continue  # sizes that only a loop's body could tell are 0 where it did not run; sinter may know more
            if want.dtype != have.dtype or want.shape != have.shape or not np.allclose(want, have, 1e-5, 1e-5, True):
                return f'{output} is {have.dtype}{list(have.shape)} {have.ravel()[:24].tolist()}, the case says ' \
                       f'{want.dtype}{list(want.shape)} {want.ravel()[:24].tolist()}'
    return None


def main():
    wrong = refused = right = 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), '*.txt'))):
        for name, opset, text, runs in cases(path):
            if runs is None or (sys.argv[1:] and not any(part in name for part in sys.argv[1:])):
                continue
            try:
                difference = check(name, opset, text, runs)
            except Exception as e:  # noqa: BLE001
                print(f'refused: {name}: {str(e).splitlines()[0][:300]}')
                refused += 1
                continue
            if difference:
                print(f'WRONG: {name}: {difference}')
            wrong += bool(difference)
            right += not difference
    print(f'{right} right, {wrong} wrong, {refused} refused by ONNX Runtime')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
