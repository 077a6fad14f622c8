#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sinter debug` on random models with a planted failure: the layers that have to stay f32 are those that overflow, and the
reduced model is the planted nodes and still fails."""
import json
import os
import random
import subprocess
import sys
import tempfile

import onnx_bytes as onnx
from cli_rig import check, failures, sinter

ROUNDS = 40 if os.environ.get("SINTER_TEST_SCALE") == "full" else 4
random.seed(int(os.environ.get("SINTER_TEST_SEED", 1)))


class Graph:
    """A random graph over [2, 6]: each node has a weight of its own. `plant` is called with the graph at a random place, and
    returns the value that later nodes may read."""

    def __init__(self, path, plant, least=3, most=14):
        self.body, self.values, self.count = b"", ["x"], 0
        nodes = random.randint(least, most)
        place = random.randrange(nodes)
        for index in range(nodes):
            if index == place:
                self.values.append(plant(self))
            self.values.append(self.add(random.choice(["Add", "Sub", "Mul", "Max"]), self.pick(), self.weight(0.5)))
        self.body += onnx.data(11, onnx.value("x", [2, 6])) + onnx.data(12, onnx.value(self.values[-1], [2, 6]))
        for name in self.values[1:-1]:
            if random.random() < 0.2 or name == "planted":
                self.body += onnx.data(12, onnx.value(name, [2, 6]))
        onnx.write_model(path, self.body)

    def pick(self):
        return random.choice(self.values[-4:])

    def weight(self, size):
        name = f"w{self.count}"
        self.body += onnx.tensor(name, onnx.FLOAT, [6], [size + abs(w) * size / 2 for w in onnx.numbers(6)])
        return name

    def add(self, op, *ins, name=None):
        out = name or f"v{self.count}"
        self.body += onnx.node(op, ins, out)
        self.count += 1
        return out


def overflow(g):
    """Too large for fp16 in between. Both layers see the large number."""
    big = g.add("Mul", g.pick(), g.weight(3e8), name="big")
    return g.add("Mul", big, g.weight(3e-9), name="planted")


def layers_that_overflow_stay_f32(folder):
    model, engine = f"{folder}/m.onnx", f"{folder}/m.sinter"
    loose = ["--atol", 0.02, "--rtol", 0.02]
    for turn in range(ROUNDS):
        graph = Graph(model, overflow)
        flags = ["--mode", random.choice(["bisect", "linear"]), "--dir", random.choice(["forward", "reverse"])]
        status, out, err = sinter("debug", "precision", model, *loose, *flags, "--json", "-o", engine)
        check(status == 0 and sorted(json.loads(out)["f32"]) == ["big", "planted"], turn, flags, out, err)
        check(json.loads(out or "{}").get("layers") == graph.count, turn, "layers")
        check(sinter("compare", engine, "reference:" + model, *loose)[0] == 0, turn, "the engine is not within the tolerances")
        status, out, err = sinter("debug", "precision", model, *loose, "--precision", "bf16")
        check(status == 0 and "0 of" in out, turn, "bf16 has the range of f32", out, err)
    status, _, err = sinter("debug", "precision", model, "--cosine-similarity-threshold", 2)
    check(status == 1 and "with every layer in f32" in err, "a bound that nothing can hold", err)


def nodes_of(path):
    """Names of the nodes of a model that this test or the command wrote: the operators are short, the names tell."""
    status, out, err = sinter("inspect", path, "--stage", "import")
    check(status == 0, path, err)
    return out


def reduced_to_what_a_command_wants(folder):
    model, small = f"{folder}/m.onnx", f"{folder}/small.onnx"
    for turn in range(ROUNDS):
        count = random.choice([1, 2])

        def plant(g):
            for k in range(count):
                g.values.append(g.add("Add", g.pick(), g.weight(0.5), name=f"plant{k}"))
                g.values.append(g.add("Sub", g.pick(), g.weight(0.5)))
            return g.values[-1]
        graph = Graph(model, plant)
        has = " && ".join(f"grep -q plant{k} {{}}" for k in range(count))
        # A name is in the file as an input, too: the node's weight is not.
        command = [f"if {has}; then exit 3; fi", f"if {has}; then kill -SEGV $$; fi", f"if {has}; then echo broken; exit 1; fi"][turn % 3]
        more = ["--fail-regex", "brok[e]n"] if turn % 3 == 2 else []
        status, out, err = sinter("debug", "reduce", model, "-o", small, "--check", command, "--mode", random.choice(["bisect", "linear"]), *more)
        nodes = nodes_of(small)
        check(status == 0 and all(f"plant{k}" in nodes for k in range(count)), turn, out, err)
        check(f": {min(count, 2)} of {graph.count} nodes" in out or f": 1 of {graph.count} nodes" in out, turn, out)
        check(subprocess.run(["sh", "-c", command.replace("{}", small)], capture_output=True).returncode != 0, turn, "it does not fail any more")
    status, _, err = sinter("debug", "reduce", model, "-o", small, "--check", "true")
    check(status == 1 and "does not fail" in err, err)
    status, _, err = sinter("debug", "reduce", model, "-o", small, "--check", "false", "--fail-regex", "never")
    check(status == 1 and "does not fail" in err, err)


def reduced_to_what_is_inexact(folder):
    """bf16 hurts where numbers are large: one node, whose result is an output."""
    def large(g):
        g.values.append(g.add("Mul", g.pick(), g.weight(3e5), name="planted"))
        return g.add("Mul", "planted", g.weight(1e-6))
    model, small = f"{folder}/m.onnx", f"{folder}/small.onnx"
    flags = ["--allow", "bf16", "--lower", "always", "--atol", 20, "--rtol", 0]
    for turn in range(ROUNDS):
        graph = Graph(model, large)
        status, out, err = sinter("debug", "reduce", model, "-o", small, *flags)
        check(status == 0, turn, out, err)
        kept = int(out.split(": ")[1].split(" of ")[0]) if status == 0 else 99
        check(kept == 1, turn, kept, "of", graph.count, out)
        data = [word for line in out.splitlines() if line.startswith("  --input") for word in line.strip().replace("'", "").split(" ", 1)]
        status, out, err = sinter("compare", small, "reference:" + small, *flags, *data)
        check(status == 1 and "FAILED" in out, turn, "it does not fail any more", out, err)
    status, _, err = sinter("debug", "reduce", model, "-o", small, "--atol", 1e6)
    check(status == 1 and "does not fail" in err, err)


def reduced_to_what_cannot_be_built(folder):
    model, small = f"{folder}/m.onnx", f"{folder}/small.onnx"
    for turn in range(ROUNDS):
        graph = Graph(model, lambda g: g.add("Mystery", g.pick(), g.weight(0.5), name="planted"))
        status, out, err = sinter("debug", "reduce", model, "-o", small)
        check(status == 0 and b"Mystery" in open(small, "rb").read(), turn, out, err)
        check(sinter("run", small)[0] == 1, turn, "it can be built")
        check(int(out.split(": ")[1].split(" of ")[0]) <= graph.count, turn, out)


def what_is_refused(folder):
    model, engine = f"{folder}/m.onnx", f"{folder}/m.sinter"
    Graph(model, overflow)
    sinter("build", model, "-o", engine, "--tune", "off")
    open(f"{folder}/notes.txt", "w").write("mine")
    for words, status, text in (
            (["bisect", model], 2, "expected precision or reduce"), (["reduce", model], 2, "-o OUT.onnx is missing"),
            (["reduce", model, "-o", f"{folder}/o.onnx", "--fail-regex", "["], 2, "no regular expression"),
            (["reduce", engine, "-o", f"{folder}/o.onnx"], 1, "no ONNX model"), (["reduce", model, "-o", model], 1, model),
            (["reduce", model, "-o", f"{folder}/notes.txt"], 1, "notes.txt"),
            (["precision", engine], 1, "is an engine"), (["precision", model, "--allow", "fp16"], 1, "--allow"),
            (["precision", f"{folder}/none.onnx"], 1, "none.onnx"), (["precision", model, "--mode", "half"], 2, "--mode")):
        done = sinter("debug", *words)
        check(done[0] == status and text in done[2], words, done)


with tempfile.TemporaryDirectory() as work:
    os.environ["TMPDIR"] = work
    for test in (layers_that_overflow_stay_f32, reduced_to_what_a_command_wants, reduced_to_what_is_inexact,
                 reduced_to_what_cannot_be_built, what_is_refused):
        os.makedirs(f"{work}/{test.__name__}")
        test(f"{work}/{test.__name__}")
        check(not [f for f in os.listdir(work) if f.startswith(".sinter")], test.__name__, "left files")
sys.exit(1 if failures else 0)
