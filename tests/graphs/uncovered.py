#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What random graphs never have: compares the lines that graphs_test_random_graphs --coverage FILE wrote with the schemas of
ONNX and with what models have. Wants onnx; schemas of com.microsoft come from onnxruntime where that is installed.

    uncovered.py FILE [MODEL.onnx|FOLDER ...]"""
import collections
import pathlib
import re
import sys

try:
    import onnx
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TYPES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool"}


def full_name(domain, name):
    return name if domain in ("", "ai.onnx") else f"{domain}.{name}"


def schemas(names):
    """The newest schema of each operator."""
    found = {}
    every = list(onnx.defs.get_all_schemas())
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as state
        every += [s for s in state.get_all_operator_schema() if s.domain == "com.microsoft"]
    except (ImportError, AttributeError):
        pass
    for s in every:
        if full_name(s.domain, s.name) in names:
            found[full_name(s.domain, s.name)] = s
    return found


def pairs_of(graph, counts, ops):
    producer = {}
    for n in graph.node:
        name = full_name(n.domain, n.op_type)
        ops[name] += 1
        for i in n.input:
            if i in producer:
                counts[producer[i], name] += 1
        for o in n.output:
            producer[o] = name
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                pairs_of(a.g, counts, ops)


def models_of(paths):
    for path in map(pathlib.Path, paths):
        yield from sorted(path.rglob("model.onnx")) if path.is_dir() else [path]


def types_of(s, index):
    """The types that operand `index` of a schema may have."""
    if index >= len(s.inputs):
        return set()
    formal = s.inputs[index]
    texts = getattr(formal, "types", None) or [formal.typeStr]
    inner = [re.fullmatch(r"tensor\((\w+)\)", t) for t in texts]
    return {TYPES[m.group(1)] for m in inner if m and m.group(1) in TYPES}


def is_optional(formal):
    return str(formal.option).endswith("Optional")


def main():
    facts = collections.Counter(line.rstrip("\n") for line in open(sys.argv[1]))
    nodes = {f.split()[1]: n for f, n in facts.items() if f.startswith("node ")}
    given = {tuple(f.split()[1:3]) for f in facts if f.startswith("in ")}
    named = {tuple(f.split()[1:3]) for f in facts if f.startswith("out ")}
    types = {(f.split()[1], f.split()[2], f.split()[3]) for f in facts if f.startswith("in ")}
    attrs = {tuple(f.split()[1:3])[0] + " " + f.split()[2].split("=")[0] for f in facts if f.startswith("attr ")}
    pairs = {tuple(f.split()[1:3]) for f in facts if f.startswith("pair ")}
    print(f"{sum(nodes.values())} nodes of {len(nodes)} operators, {len(pairs)} pairs")
    ops, wanted = collections.Counter(), collections.Counter()
    for path in models_of(sys.argv[2:]):
        model = onnx.load(path, load_external_data=False)
        pairs_of(model.graph, wanted, ops)
        for f in model.functions:
            pairs_of(f, wanted, ops)
    print("operators of models that never occur:", *sorted(o for o in ops if o not in nodes))
    for name, s in sorted(schemas(nodes).items()):
        lacks = [f"attribute {a}" for a in sorted(s.attributes) if f"{name} {a}" not in attrs]
        lacks += [f"operand {i} {x.name}" for i, x in enumerate(s.inputs) if is_optional(x) and (name, str(i)) not in given]
        lacks += [f"result {i} {x.name}" for i, x in enumerate(s.outputs) if is_optional(x) and (name, str(i)) not in named]
        lacks += [f"type {t}" for t in sorted(types_of(s, 0)) if (name, "0", t) not in types]
        if lacks:
            print(f"{name} ({nodes[name]}): {', '.join(lacks)}")
    lost = [(n, p) for p, n in wanted.items() if p not in pairs]
    print(f"pairs of models: {len(wanted)}, {len(lost)} of them never occur:")
    for n, (a, b) in sorted(lost, reverse=True):
        print(f"{n:6} {a} {b}")


if __name__ == "__main__":
    main()
