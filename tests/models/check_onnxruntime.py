#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of tests/models in ONNX Runtime: are the results that they state right?

  check_onnxruntime.py [PART OF A NAME ...]      needs numpy, onnx and onnxruntime

Cases that ONNX Runtime refuses are listed and do not count. Cases that sinter refuses are left out. APART says where
ONNX Runtime does something else, and has to: a case of it that agrees is wrong, too. --reference asks ONNX's own
evaluator, which has limits of its own, and has no such list.
"""
import glob
import multiprocessing
import os
import re
import sys

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime

REFERENCE = '--reference' in sys.argv
CHOSEN = [a for a in sys.argv[1:] if a != '--reference']

TYPES = {'float': np.float32, 'double': np.float64, 'float16': np.float16, 'bool': np.bool_,
         'bfloat16': ml_dtypes.bfloat16,
         **{f'{u}int{n}': np.dtype(f'{u}int{n}') for u in ('', 'u') for n in (8, 16, 32, 64)}}


APART = {
    r'reduce (Max|Min) of (float|float16|double)$': 'a NaN behind the first numbers is lost',
    r'(Max|GlobalMax)Pool$|MaxPool with padding of what is low': 'NaN is lost, and -inf becomes the least finite number',
    r'reduce Sum of int(32|64) wraps': 'sums of integers saturate',
    r'(ArgMax|TopK) of NaN': 'NaN is no number to compare with; here it is the largest',
    r'LogSoftmax of double': 'a line with an infinity is NaN only where the infinity is',
    r'LayerNormalization|InstanceNormalization': 'variances are differences of squares',
    r'fmod of u?int64': 'through double',
    r'Cast of (float|double|float16) to u?int': 'out of range is undefined in the text; here it saturates',
    r'DynamicQuantizeLSTM with': 'its input, and its state before each step, are quantised, too',
    r'Cast of float to float8e(4m3fn|5m2), saturate 0': 'what rounds beyond the largest number',
}


def tensor(text):
    m = re.match(r'(\w+)\s*(?:\[([^\]]*)\])?\s*(iota|\{([^}]*)\})', text)
    kind, shape = TYPES[m[1]], [int(d) for d in m[2].split(',')] if m[2] else []
    if m[3] == 'iota':
        data = np.arange(np.prod(shape, dtype=int))
    else:
        data = np.array([int(v) if np.dtype(kind).kind in 'iub' else float(v) for v in m[4].split(',') if v.strip()],
                        object)
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
    if REFERENCE:
        session = onnx.reference.ReferenceEvaluator(model)
    else:
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


def answer(pipe, *case):
    try:
        pipe.send((check(*case), None))
    except Exception as e:  # noqa: BLE001
        pipe.send((None, str(e).splitlines()[0][:300]))


def check_apart(*case):
    """In a process of its own: (difference, why it was refused). Integers divided by 0 end ONNX Runtime's process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context('fork').Process(target=answer, args=(theirs, *case))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return None, 'its process ended'
    finally:
        process.join()


def main():
    wrong = refused = right = 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), '*.txt'))):
        for name, opset, text, runs in cases(path):
            if runs is None or (CHOSEN and not any(part in name for part in CHOSEN)):
                continue
            difference, why = check_apart(name, opset, text, runs)
            if why:
                print(f'refused: {name}: {why}')
                refused += 1
                continue
            apart = None if REFERENCE else next((APART[p] for p in APART if re.match(p, name)), None)
            if apart and not difference:
                print(f'WRONG: {name}: agrees, unlike APART ({apart})')
            elif difference and not apart:
                print(f'WRONG: {name}: {difference}')
            wrong += bool(difference) != bool(apart)
            right += bool(difference) == bool(apart)
    print(f'{right} right, {wrong} wrong, {refused} refused by ONNX Runtime')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
