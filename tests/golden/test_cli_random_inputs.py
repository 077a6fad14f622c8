#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random inputs stay inside the tables that they index: every operator that indexes, behind every way in which an index is
made of an input. `sinter run` and `bench` must work without data, from the model and from its engine."""
import os
import re
import subprocess
import sys
import tempfile

import onnx_bytes as onnx

SINTER = os.environ["SINTER_BIN"]
I64 = onnx.I64
BOOL, FLOAT, I32 = 9, 1, 6


def typed(name, type_, dims):
    sizes = b"".join(onnx.data(1, onnx.num(1, d)) for d in dims)
    return onnx.data(1, name) + onnx.data(2, onnx.data(1, onnx.num(1, type_) + onnx.data(2, sizes)))


def const(name, list_, dims=None):
    return onnx.tensor(name, I64, [len(list_)] if dims is None else dims, list_)


def floats(name, dims):
    count = 1
    for d in dims:
        count *= d
    return onnx.tensor(name, FLOAT, dims, onnx.numbers(count))


def reshaped(dims):
    return const("shape", dims) + onnx.node("Reshape", ["j", "shape"], "k")


def graph_attribute(name, graph):
    return onnx.data(5, onnx.data(1, name) + onnx.data(6, graph) + onnx.num(20, 5))


# ---- what indexes: `j` is i64[4]; n is the size of the table; the largest number that i may be where j is i ----

INDEXED = {
    "Gather": lambda n: (floats("t", [n, 3]) + onnx.node("Gather", ["t", "j"], "y"), n - 1),
    "Gather axis": lambda n: (floats("t", [3, n]) + onnx.node("Gather", ["t", "j"], "y", onnx.integer("axis", 1)), n - 1),
    "GatherElements": lambda n: (floats("t", [n, 4]) + reshaped([1, 4]) + onnx.node("GatherElements", ["t", "k"], "y"), n - 1),
    "GatherND": lambda n: (floats("t", [n, 3]) + reshaped([4, 1]) + onnx.node("GatherND", ["t", "k"], "y"), n - 1),
    "GatherND 2": lambda n: (floats("t", [n + 3, n]) + reshaped([2, 2]) + onnx.node("GatherND", ["t", "k"], "y"), n - 1),
    "ScatterElements": lambda n: (floats("t", [n]) + floats("u", [4]) + onnx.node("ScatterElements", ["t", "j", "u"], "y"), n - 1),
    "ScatterND": lambda n: (floats("t", [n, 3]) + floats("u", [4, 3]) + reshaped([4, 1]) + onnx.node("ScatterND", ["t", "k", "u"], "y"), n - 1),
    "ReverseSequence": lambda n: (floats("t", [n, 4]) + onnx.node("ReverseSequence", ["t", "j"], "y"), n),
    "RoiAlign": lambda n: (floats("t", [n, 1, 5, 5]) + floats("r", [4, 4]) + onnx.node("RoiAlign", ["t", "r", "j"], "y"), n - 1),
    "MaxUnpool": lambda n: (floats("t", [1, 1, 2, 2]) + reshaped([1, 1, 2, 2]) +
                            onnx.node("MaxUnpool", ["t", "k"], "y", onnx.ints("kernel_shape", [2, 2]) + onnx.ints("strides", [n, n])), (n + 2) ** 2 - 1),
    "OneHot": lambda n: (const("depth", [n]) + floats("v", [2]) + onnx.node("OneHot", ["j", "depth", "v"], "y"), n - 1),
    "TensorScatter": lambda n: (floats("t", [4, n, 3]) + floats("u", [4, 1, 3]) + onnx.node("TensorScatter", ["t", "u", "j"], "y", onnx.integer("axis", 1)), n - 1),
}

# ---- how an index comes of the input `i`, i64[4] ----


def binary(op, number, is_first=True):
    ins = ["i", "c"] if is_first else ["c", "i"]
    return lambda n: const("c", [number if number is not None else n], []) + onnx.node(op, ins, "j")


def where(n):
    return (const("zero", [0], []) + const("n", [n], []) + onnx.node("Less", ["i", "zero"], "is") + onnx.node("Add", ["i", "n"], "up") +
            onnx.node("Where", ["is", "up", "i"], "j"))


def in_if(n):
    then = onnx.node("Identity", ["i"], "a") + onnx.data(2, "then") + onnx.data(12, typed("a", I64, [4]))
    other = onnx.node("Neg", ["i"], "b") + onnx.data(2, "other") + onnx.data(12, typed("b", I64, [4]))
    return (const("zero", [0], []) + onnx.node("ReduceMax", ["i"], "m", onnx.integer("keepdims", 0)) + onnx.node("Less", ["m", "zero"], "is") +
            onnx.node("If", ["is"], "j", graph_attribute("then_branch", then) + graph_attribute("else_branch", other)))


def in_loop(n):
    body = (onnx.node("Identity", ["go"], "on") + onnx.node("Add", ["s", "i"], "t1") + onnx.data(2, "body") + onnx.data(11, typed("at", I64, [])) +
            onnx.data(11, typed("go", BOOL, [])) + onnx.data(11, typed("s", I64, [4])) + onnx.data(12, typed("on", BOOL, [])) +
            onnx.data(12, typed("t1", I64, [4])))
    return const("trips", [1], []) + const("start", [0] * 4) + onnx.node("Loop", ["trips", "", "start"], "j", graph_attribute("body", body))


def cast_to(type_, out, source):
    return onnx.node("Cast", [source], out, onnx.integer("to", type_))


MADE = {
    "as it is": lambda n: onnx.node("Identity", ["i"], "j"),
    "cast": lambda n: cast_to(I32, "c", "i") + cast_to(I64, "j", "c"),
    "of a float": lambda n: cast_to(FLOAT, "c", "i") + onnx.node("Floor", ["c"], "d") + cast_to(I64, "j", "d"),
    "add": binary("Add", 2), "add below": binary("Add", -2), "sub": binary("Sub", 1), "from": binary("Sub", None, False),
    "mul": binary("Mul", 2), "mul by -1": binary("Mul", -1), "div": binary("Div", 3), "mod": binary("Mod", 1),
    "min": binary("Min", 0), "max": binary("Max", 0), "neg": lambda n: onnx.node("Neg", ["i"], "j"), "abs": lambda n: onnx.node("Abs", ["i"], "j"),
    "clip": lambda n: const("lo", [0], []) + const("hi", [0], []) + onnx.node("Clip", ["i", "lo", "hi"], "j"),
    "square": lambda n: onnx.node("Mul", ["i", "i"], "j"), "twice": lambda n: onnx.node("Add", ["i", "i"], "j"), "where": where,
    "concat": lambda n: const("two", [2]) + const("six", [6]) + onnx.node("Concat", ["i", "i"], "c", onnx.integer("axis", 0)) + onnx.node("Slice", ["c", "two", "six"], "j"),
    "transpose": lambda n: const("sq", [2, 2]) + const("fl", [4]) + onnx.node("Reshape", ["i", "sq"], "c") + onnx.node("Transpose", ["c"], "d") +
    onnx.node("Reshape", ["d", "fl"], "j"),
    "expand": lambda n: const("one", [1]) + const("fl", [4]) + const("zero", [0]) + onnx.node("Slice", ["i", "zero", "one"], "c") + onnx.node("Expand", ["c", "fl"], "j"),
    "gathered": lambda n: const("at", [3, 1, 1, 0]) + onnx.node("Gather", ["i", "at"], "j"),
    "cumsum": lambda n: const("axis", [0], []) + onnx.node("CumSum", ["i", "axis"], "j"),
    "sum": lambda n: const("fl", [4]) + onnx.node("ReduceSum", ["i"], "c") + onnx.node("Expand", ["c", "fl"], "j"),
    "largest": lambda n: const("fl", [4]) + onnx.node("ReduceMax", ["i"], "c") + onnx.node("Expand", ["c", "fl"], "j"),
    "if": in_if, "loop": in_loop,
}

failures = 0


def sinter(*words):
    return subprocess.run([SINTER, *words], capture_output=True, text=True, timeout=60)


def fail(*what):
    global failures
    failures += 1
    print("FAIL", *what)


def make(path, indexed, made, n):
    nodes, most = INDEXED[indexed](n)
    opset = 24 if indexed == "TensorScatter" else 18
    graph = MADE[made](n) + nodes + onnx.data(2, "g") + onnx.data(11, typed("i", I64, [4])) + onnx.data(12, onnx.data(1, "y"))
    onnx.write_model(path, graph, opset)
    return most


def one(work, indexed, made, n, seeds):
    model = os.path.join(work, "m.onnx")
    most = make(model, indexed, made, n)
    for seed in range(seeds):
        done = sinter("run", model, "--tune", "off", "--seed", str(seed))
        if done.returncode:
            fail(indexed, "of", made, "n", n, "seed", seed, done.stderr)
    if made == "as it is":
        shown = sinter("inspect", model).stdout
        found = re.search(r"^input  i i64\[4\](?: from -?\d+)? to (\d+)$", shown, re.M)
        if not found or int(found.group(1)) != most:
            fail(indexed, "n", n, "inspect shows", found and found.group(0), "wanted to", most)


def main():
    count = pairs = 0
    is_short = os.environ.get("SINTER_TEST_SCALE") == "third"
    with tempfile.TemporaryDirectory() as work:
        for indexed in INDEXED:
            for made in MADE:
                pairs += 1
                if is_short and pairs % 3:
                    continue
                # Some ways leave no number at all: a length that is the negative of a number that is not negative.
                for n in (1, 2, 5) if made == "as it is" else (2,):
                    one(work, indexed, made, n, 3)
                    count += 1
        model, engine = os.path.join(work, "m.onnx"), os.path.join(work, "e")
        make(model, "Gather", "as it is", 300)
        if sinter("build", model, "-o", engine, "--tune", "off").returncode or sinter("bench", engine, "--duration", "0").returncode:
            fail("an engine does not know what its inputs may hold")
    print(f"{count} models, {failures} failures")
    sys.exit(1 if failures else 0)


main()
