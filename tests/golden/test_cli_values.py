#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decision trees, text, sequences, maps and optionals, on random data, against the same in Python."""
import os
import random
import struct
import subprocess
import sys
import tempfile

import onnx_bytes as onnx

SINTER = os.environ["SINTER_BIN"]
SEEDS = 40 if os.environ.get("SINTER_TEST_SCALE") == "full" else 6


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def tensor_attribute(name, type_, list_):
    raw = struct.pack("<%d%s" % (len(list_), onnx.PACK[type_]), *list_)
    return onnx.data(5, onnx.data(1, name) + onnx.data(5, onnx.num(1, len(list_)) + onnx.num(2, type_) + onnx.data(9, raw)) +
                     onnx.num(20, 4))


def model(nodes, inputs, outputs, domain, version):
    graph = nodes + onnx.data(2, "g") + b"".join(onnx.data(11, v) for v in inputs) + b"".join(onnx.data(12, v) for v in outputs)
    return (onnx.num(1, 10) + onnx.data(7, graph) + onnx.data(8, onnx.num(2, 21)) +
            onnx.data(8, onnx.data(1, domain) + onnx.num(2, version)))


def npy(rows):
    shape = (len(rows), len(rows[0]))
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % (shape[0] * shape[1]), *sum(rows, []))


def read_npy(path):
    with open(path, "rb") as file:
        content = file.read()
    return list(struct.unpack("<%df" % ((len(content) - 10 - struct.unpack("<H", content[8:10])[0]) // 4),
                              content[10 + struct.unpack("<H", content[8:10])[0]:]))


# ---- TreeEnsemble: modes LEQ LT GTE GT EQ NEQ MEMBER ----

class Forest:
    def __init__(self, chance, features, targets, modes):
        self.nodes, self.leaves, self.roots, self.members = [], [], [], []
        self.chance, self.features, self.targets, self.modes = chance, features, targets, modes
        for _ in range(chance.randint(1, 4)):
            self.whole = []         # nodes of this tree that have all their children: others may go on to them, too
            self.roots.append(self.grow(chance.randint(1, 5)))

    def grow(self, depth):
        """A node's index."""
        at = len(self.nodes)
        node = {"feature": self.chance.randrange(self.features), "mode": self.chance.choice(self.modes),
                "split": self.chance.randint(-3, 3) / 2, "missing": self.chance.randint(0, 1)}
        if node["mode"] == 6:
            node["set"] = [self.chance.randint(-3, 3) / 2 for _ in range(self.chance.randint(1, 4))]
        self.nodes.append(node)
        for side in "false", "true":
            leaf = depth == 1 or self.chance.random() < 0.3
            node[side + "leaf"] = leaf
            if not leaf and self.whole and self.chance.random() < 0.3:
                node[side] = self.chance.choice(self.whole)
                continue
            if leaf:
                self.leaves.append((self.chance.randrange(self.targets), self.chance.randint(-8, 8) / 4))
            node[side] = len(self.leaves) - 1 if leaf else self.grow(depth - 1)
        self.whole.append(at)
        return at

    def attributes(self, aggregate):
        n, members = self.nodes, []
        for node in n:
            members += node["set"] + [float("nan")] if node["mode"] == 6 else []
        made = [onnx.ints("tree_roots", self.roots), onnx.ints("nodes_featureids", [x["feature"] for x in n]),
                tensor_attribute("nodes_splits", onnx.FLOAT, [x["split"] for x in n]),
                tensor_attribute("nodes_modes", onnx.U8, [x["mode"] for x in n]),
                onnx.ints("nodes_missing_value_tracks_true", [x["missing"] for x in n]),
                onnx.ints("leaf_targetids", [t for t, _ in self.leaves]),
                tensor_attribute("leaf_weights", onnx.FLOAT, [w for _, w in self.leaves]),
                onnx.integer("n_targets", self.targets), onnx.integer("aggregate_function", aggregate)]
        for side in "false", "true":
            made.append(onnx.ints("nodes_%snodeids" % side, [x[side] for x in n]))
            made.append(onnx.ints("nodes_%sleafs" % side, [x[side + "leaf"] for x in n]))
        if members:
            made.append(tensor_attribute("membership_values", onnx.FLOAT, members))
        return b"".join(made)

    def leaf(self, row, at):
        while True:
            node = self.nodes[at]
            x, s = row[node["feature"]], node["split"]
            holds = [x <= s, x < s, x >= s, x > s, x == s, x != s, x in node.get("set", [])][node["mode"]]
            side = "true" if holds or (x != x and node["missing"]) else "false"
            at = node[side]
            if node[side + "leaf"]:
                return self.leaves[at]

    def answer(self, row, aggregate):
        found = [[] for _ in range(self.targets)]
        for root in self.roots:
            target, weight = self.leaf(row, root)
            found[target].append(weight)
        merge = [lambda l: sum(l) / len(self.roots), sum, lambda l: min(l, default=0), lambda l: max(l, default=0)][aggregate]
        return [f32(merge(l)) for l in found]


    def old_attributes(self, aggregate):
        """Of TreeEnsembleRegressor."""
        return (self.old_lists("target") + onnx.integer("n_targets", self.targets) +
                text_attribute("aggregate_function", ["AVERAGE", "SUM", "MIN", "MAX"][aggregate]))

    def old_lists(self, prefix):
        """Leaves are nodes behind the others."""
        names = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
        inner, tree = len(self.nodes), {}

        def visit(at, root):
            tree[at] = root
            for side in ("false", "true") if at < inner else ():
                visit(self.nodes[at][side] + (inner if self.nodes[at][side + "leaf"] else 0), root)
        for number, root in enumerate(self.roots):
            visit(root, number)
        all_ = range(inner + len(self.leaves))
        node = lambda i, key, other: self.nodes[i][key] if i < inner else other
        made = [onnx.ints("nodes_treeids", [tree[i] for i in all_]), onnx.ints("nodes_nodeids", list(all_)),
                onnx.ints("nodes_featureids", [node(i, "feature", 0) for i in all_]),
                onnx.ints("nodes_missing_value_tracks_true", [node(i, "missing", 0) for i in all_]),
                floats_attribute("nodes_values", [node(i, "split", 0) for i in all_]),
                texts_attribute("nodes_modes", [names[self.nodes[i]["mode"]] if i < inner else "LEAF" for i in all_]),
                onnx.ints(prefix + "_treeids", [tree[inner + i] for i in range(len(self.leaves))]),
                onnx.ints(prefix + "_nodeids", [inner + i for i in range(len(self.leaves))]),
                onnx.ints(prefix + "_ids", [t for t, _ in self.leaves]),
                floats_attribute(prefix + "_weights", [w for _, w in self.leaves])]
        for side in "false", "true":
            made.append(onnx.ints("nodes_%snodeids" % side, [self.nodes[i][side] + (inner if self.nodes[i][side + "leaf"] else 0)
                                                             if i < inner else 0 for i in all_]))
        return b"".join(made)


def floats_attribute(name, list_):
    return onnx.data(5, onnx.data(1, name) + b"".join(onnx.varint(7 << 3 | 5) + struct.pack("<f", v) for v in list_) + onnx.num(20, 6))


def check_trees(folder, seed):
    chance = random.Random(seed)
    features, targets, rows, aggregate = chance.randint(1, 4), chance.randint(1, 3), chance.randint(1, 7), seed % 4
    modes = [chance.randrange(7)] if seed % 3 == 0 else list(range(6 + seed % 2))
    forest = Forest(chance, features, targets, modes)
    x = [[chance.choice([float("nan")] + [v / 2 for v in range(-4, 5)] * 2) for _ in range(features)] for _ in range(rows)]
    node = onnx.node("TreeEnsemble", ["x"], "y", forest.attributes(aggregate) + onnx.data(7, "ai.onnx.ml"))
    bytes_ = model(node, [onnx.value("x", ["N", features])], [onnx.value("y", ["N", targets])], "ai.onnx.ml", 5)
    wanted = sum((forest.answer(row, aggregate) for row in x), [])
    failed = run(folder, bytes_, {"x": npy(x)}, "trees %d" % seed, wanted)
    if modes != [6] and 6 not in [n["mode"] for n in forest.nodes]:
        node = onnx.node("TreeEnsembleRegressor", ["x"], "y", forest.old_attributes(aggregate) + onnx.data(7, "ai.onnx.ml"))
        bytes_ = model(node, [onnx.value("x", ["N", features])], [onnx.value("y", ["N", targets])], "ai.onnx.ml", 3)
        failed += run(folder, bytes_, {"x": npy(x)}, "old trees %d" % seed, wanted)
    return failed


def check_classifier(folder, chance):
    """Of two classes the leaves say one score, which is a probability where no weight is below 0."""
    features, classes, rows = chance.randint(1, 4), chance.randint(2, 4), chance.randint(1, 7)
    forest = Forest(chance, features, 1 if classes == 2 else classes, list(range(6)))
    if classes == 2 and chance.random() < 0.5:
        forest.leaves = [(t, abs(w) / 4) for t, w in forest.leaves]
    is_share = classes == 2 and min(w for _, w in forest.leaves) >= 0
    is_text = chance.random() < 0.5
    labels = ["c%d" % i for i in range(classes)] if is_text else chance.sample(range(-9, 10), classes)
    x = [[chance.choice([float("nan")] + [v / 2 for v in range(-4, 5)] * 2) for _ in range(features)] for _ in range(rows)]
    scores, found = [], []
    for row in x:
        answer = forest.answer(row, 1)
        if classes == 2:
            answer = [1 - answer[0] if is_share else -answer[0], answer[0]]
            found.append(labels[answer[1] > (0.5 if is_share else 0)])
        else:
            found.append(labels[answer.index(max(answer))])
        scores += answer
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "l") + onnx.data(2, "y") + onnx.data(4, "TreeEnsembleClassifier") +
                     onnx.data(7, "ai.onnx.ml") + forest.old_lists("class") +
                     (texts_attribute("classlabels_strings", labels) if is_text else onnx.ints("classlabels_int64s", labels)))
    return answers(folder, node, [("x", onnx.FLOAT, ["N", features], npy(x))],
                   [("l", STRING if is_text else I64, read_texts if is_text else read_ints), ("y", onnx.FLOAT, read_npy)],
                   "TreeEnsembleClassifier", [([rows], found), scores], "ai.onnx.ml", 3)


# ---- text: bytes, filled up with zeros to one width ----

I64, STRING = 7, 8
U8 = onnx.U8


def typed(name, type_, dims):
    sizes = b"".join(onnx.data(1, onnx.num(1, d) if isinstance(d, int) else onnx.data(2, d)) for d in dims)
    return onnx.data(1, name) + onnx.data(2, onnx.data(1, onnx.num(1, type_) + onnx.data(2, sizes)))


def npy_of(descr, shape, content):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, tuple(shape))).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


def texts_npy(shape, list_, more=0):
    width = max([len(t.encode()) for t in list_] + [1]) + more
    return npy_of("|u1", list(shape) + [width], b"".join(t.encode().ljust(width, b"\0") for t in list_))


def texts_attribute(name, list_):
    return onnx.data(5, onnx.data(1, name) + b"".join(onnx.data(9, t) for t in list_) + onnx.num(20, 8))


def text_attribute(name, text):
    return onnx.data(5, onnx.data(1, name) + onnx.data(4, text) + onnx.num(20, 3))


def read_array(path):
    """The shape, and the bytes, of a .npy file."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<H", content[8:10])[0]
    head = eval(content[10:10 + length].decode(), {"__builtins__": {}})
    return list(head["shape"]), content[10 + length:]


def read_texts(path):
    shape, content = read_array(path)
    width = shape.pop()
    count = 1
    for d in shape:
        count *= d
    return shape, [content[i * width:(i + 1) * width].rstrip(b"\0").decode() for i in range(count)]


def read_ints(path):
    shape, content = read_array(path)
    return shape, list(struct.unpack("<%dq" % (len(content) // 8), content))


WORDS = ["", "a", "B", "ab", "a,b", ",", ",,x", " lead", "trail ", "two  words here", "\t tab\n", "Monday", "mondaY", "end,"]


def some_texts(chance, count, more=()):
    return [chance.choice(WORDS + list(more)) for _ in range(count)]


def answers(folder, node, inputs, outputs, what, wanted, domain="", version=1):
    """inputs: (name, type, dims, content of the file). wanted: of each output, what its reader gives. Number of failures."""
    bytes_ = model(node, [typed(n, t, d) for n, t, d, _ in inputs], [typed(n, t, []) for n, t, _ in outputs], domain or "x", version)
    failed = 0
    with open(folder + "/model.onnx", "wb") as file:
        file.write(bytes_)
    for device in "cpu", "reference":
        command = [SINTER, "run", folder + "/model.onnx", "--output-dir", folder, "--device", device]
        for name, _, _, content in inputs:
            with open(folder + "/" + name + ".npy", "wb") as file:
                file.write(content)
            command += ["--input", "%s=%s/%s.npy" % (name, folder, name)]
        done = subprocess.run(command, capture_output=True, text=True)
        found = [read(folder + "/output_%d.npy" % i) for i, (_, _, read) in enumerate(outputs)] if not done.returncode else done.stderr
        if found != wanted:
            print("FAIL", what, device, "found", found, "wanted", wanted)
            failed += 1
    return failed


def check_concat(folder, chance):
    rows, columns = chance.randint(1, 3), chance.randint(1, 3)
    a, b = some_texts(chance, rows * columns, ["äöü"]), some_texts(chance, columns, ["日本"])
    node = onnx.data(1, onnx.data(1, "a") + onnx.data(1, "b") + onnx.data(2, "y") + onnx.data(4, "StringConcat"))
    wanted = [t + b[i % columns] for i, t in enumerate(a)]
    return answers(folder, node, [("a", STRING, ["N", "M"], texts_npy([rows, columns], a, chance.randint(0, 2))),
                                  ("b", STRING, ["M"], texts_npy([columns], b))], [("y", STRING, read_texts)],
                   "StringConcat", [([rows, columns], wanted)])


def check_equal(folder, chance):
    count = chance.randint(1, 6)
    a, b = some_texts(chance, count), some_texts(chance, count)
    node = (onnx.data(1, onnx.data(1, "a") + onnx.data(1, "b") + onnx.data(2, "e") + onnx.data(4, "Equal")) +
            onnx.data(1, onnx.data(1, "e") + onnx.data(2, "y") + onnx.data(4, "Cast") + onnx.integer("to", I64)))
    return answers(folder, node, [(n, STRING, ["N"], texts_npy([count], t)) for n, t in (("a", a), ("b", b))],
                   [("y", I64, read_ints)], "Equal", [([count], [int(x == y) for x, y in zip(a, b)])])


def check_split(folder, chance):
    rows, columns = chance.randint(1, 2), chance.randint(1, 3)
    x = some_texts(chance, rows * columns)
    between, most = chance.choice([None, "", ",", " ", "ab"]), chance.choice([None, 0, 1, 2])
    attributes = b"" if between is None else text_attribute("delimiter", between)
    attributes += b"" if most is None else onnx.integer("maxsplit", most)
    pieces = [t.split(between or None, -1 if most is None else most) for t in x]
    longest = max(len(p) for p in pieces)
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "y") + onnx.data(2, "n") + onnx.data(4, "StringSplit") + attributes)
    return answers(folder, node, [("x", STRING, ["N", "M"], texts_npy([rows, columns], x))], [("y", STRING, read_texts), ("n", I64, read_ints)],
                   "StringSplit %r %r" % (between, most),
                   [([rows, columns, longest], sum([p + [""] * (longest - len(p)) for p in pieces], [])),
                    ([rows, columns], [len(p) for p in pieces])])


def ascii(pattern):
    return re.compile(pattern, re.ASCII)


def check_tokenizer(folder, chance):
    """What lies between separators, or what an expression matches, of at least so many characters."""
    rows, columns, least, mark = chance.randint(1, 2), chance.randint(1, 3), chance.randint(1, 3), chance.randint(0, 1)
    x = some_texts(chance, rows * columns, ["a_b9 c-D", "end.", "x]^y", "3.5"])
    way = chance.choice(["separators", "tokenexp", "characters"])
    if way == "separators":
        between = chance.choice([[" "], [",", " "], ["[ ,]+"], ["\\s", ","], ["[^a-z]"]])
        attributes, pieces = texts_attribute("separators", between), [re.split("|".join(between), t) for t in x]
    elif way == "tokenexp":
        match = chance.choice(["[a-zA-Z0-9_]+", "\\w+", "\\b\\w\\w+\\b", "[^ ,]+", "[]^-]+", "[a-z][a-z]+", "\\W+"])
        attributes, pieces = text_attribute("tokenexp", match), [ascii(match).findall(t) for t in x]
    else:
        x, least = x[:-1] + ["äb日"], 1
        attributes = chance.choice([texts_attribute("separators", [""]), text_attribute("tokenexp", ".")])
        pieces = [[b for b in t if b"separators" in attributes or b != "\n"] for t in x]
    pieces = [["\2"] * mark + [p for p in row if len(p) >= least] + ["\3"] * mark for row in pieces]
    longest = max(len(p) for p in pieces)
    attributes += onnx.integer("mark", mark) + onnx.integer("mincharnum", least) + text_attribute("pad_value", "#pad")
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "y") + onnx.data(4, "Tokenizer") + onnx.data(7, "com.microsoft") + attributes)
    return answers(folder, node, [("x", STRING, ["N", "M"], texts_npy([rows, columns], x))], [("y", STRING, read_texts)],
                   "Tokenizer %r" % attributes,
                   [([rows, columns, longest], sum([p + ["#pad"] * (longest - len(p)) for p in pieces], []))], "com.microsoft")


def check_categories(folder, chance):
    """Without zeros, a text that is no category makes the run fail."""
    words = sorted(set(some_texts(chance, 5)))
    x = [chance.choice(words) for _ in range(chance.randint(1, 4))]
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "y") + onnx.data(4, "OneHotEncoder") + onnx.data(7, "ai.onnx.ml") +
                     texts_attribute("cats_strings", words) + onnx.integer("zeros", 0))
    wanted = [([len(x), len(words)], [float(w == t) for t in x for w in words])]
    failed = answers(folder, node, [("x", STRING, ["N"], texts_npy([len(x)], x))], [("y", onnx.FLOAT, lambda p: (read_array(p)[0], read_npy(p)))],
                     "OneHotEncoder", wanted, "ai.onnx.ml", 3)
    with open(folder + "/x.npy", "wb") as file:
        file.write(texts_npy([2], [x[0], "other"]))
    done = subprocess.run([SINTER, "run", folder + "/model.onnx", "--output-dir", folder, "--input", "x=%s/x.npy" % folder],
                          capture_output=True, text=True)
    if done.returncode == 0 or "none of the categories" not in done.stderr:
        print("FAIL OneHotEncoder of an unknown text", done.returncode, done.stderr)
        failed += 1
    return failed


def check_normalizer(folder, chance):
    count, sensitive, action = chance.randint(1, 6), chance.randint(0, 1), chance.choice(["NONE", "UPPER", "LOWER"])
    x, stop = some_texts(chance, count), sorted(set(some_texts(chance, chance.randint(0, 6))))
    attributes = onnx.integer("is_case_sensitive", sensitive) + text_attribute("case_change_action", action)
    attributes += texts_attribute("stopwords", stop) if stop else b""
    stopped = stop if sensitive else [s.lower() for s in stop]
    wanted = [t for t in x if (t if sensitive else t.lower()) not in stopped] or [""]
    wanted = [{"NONE": t, "UPPER": t.upper(), "LOWER": t.lower()}[action] for t in wanted]
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "y") + onnx.data(4, "StringNormalizer") + attributes)
    return answers(folder, node, [("x", STRING, ["N"], texts_npy([count], x))], [("y", STRING, read_texts)], "StringNormalizer",
                   [([len(wanted)], wanted)])


def check_label(folder, chance):
    """Text to numbers, and back."""
    keys = sorted(set(some_texts(chance, 5)))
    values = [chance.randint(-9, 9) for _ in keys]
    count = chance.randint(1, 6)
    x = some_texts(chance, count)
    node = (onnx.data(1, onnx.data(1, "x") + onnx.data(2, "n") + onnx.data(4, "LabelEncoder") + onnx.data(7, "ai.onnx.ml") +
                      texts_attribute("keys_strings", keys) + onnx.ints("values_int64s", values) + onnx.integer("default_int64", 99)) +
            onnx.data(1, onnx.data(1, "n") + onnx.data(2, "y") + onnx.data(4, "LabelEncoder") + onnx.data(7, "ai.onnx.ml") +
                      onnx.ints("keys_int64s", list(range(-9, 10))) + texts_attribute("values_strings", ["v%d" % v for v in range(-9, 10)]) +
                      text_attribute("default_string", "none")))
    numbers = [dict(zip(keys, values)).get(t, 99) for t in x]
    return answers(folder, node, [("x", STRING, ["N"], texts_npy([count], x))], [("n", I64, read_ints), ("y", STRING, read_texts)],
                   "LabelEncoder", [([count], numbers), ([count], ["none" if n == 99 else "v%d" % n for n in numbers])], "ai.onnx.ml", 4)


def check_categories(folder, chance):
    """One list of text beside one of numbers, which an input of either kind goes through."""
    words = sorted(set(some_texts(chance, 5)))
    numbers = chance.sample(range(-9, 10), len(words))
    count = chance.randint(1, 6)
    x, n = some_texts(chance, count), [chance.randint(-9, 9) for _ in range(count)]
    lists = texts_attribute("cats_strings", words) + onnx.ints("cats_int64s", numbers)

    def mapper(source, result, default):
        return onnx.data(1, onnx.data(1, source) + onnx.data(2, result) + onnx.data(4, "CategoryMapper") + onnx.data(7, "ai.onnx.ml") +
                         lists + default)
    nodes = mapper("x", "a", onnx.integer("default_int64", 99)) + mapper("n", "b", text_attribute("default_string", "none"))
    return answers(folder, nodes, [("x", STRING, ["N"], texts_npy([count], x)), ("n", I64, ["N"], ints_npy([count], n))],
                   [("a", I64, read_ints), ("b", STRING, read_texts)], "CategoryMapper",
                   [([count], [dict(zip(words, numbers)).get(t, 99) for t in x]), ([count], [dict(zip(numbers, words)).get(i, "none") for i in n])],
                   "ai.onnx.ml", 1)


def check_moves(folder, chance):
    """Operators that move elements move text."""
    rows, columns = chance.randint(1, 3), chance.randint(1, 3)
    a, b = some_texts(chance, rows * columns), some_texts(chance, columns)
    node = (onnx.data(1, onnx.data(1, "a") + onnx.data(1, "b") + onnx.data(2, "c") + onnx.data(4, "Concat") + onnx.integer("axis", 0)) +
            onnx.data(1, onnx.data(1, "c") + onnx.data(2, "y") + onnx.data(4, "Transpose") + onnx.ints("perm", [1, 0])))
    both = a + b
    wanted = [both[r * columns + k] for k in range(columns) for r in range(rows + 1)]
    return answers(folder, node, [("a", STRING, ["N", columns], texts_npy([rows, columns], a)), ("b", STRING, [1, columns], texts_npy([1, columns], b, 1))],
                   [("y", STRING, read_texts)], "moves", [([columns, rows + 1], wanted)])


def check_picks(folder, chance):
    """Text at several indices, or at one without an axis."""
    count, dims = chance.randint(1, 5), chance.choice([[], [2], [3, 1]])
    x, picks = some_texts(chance, count), [chance.randrange(count) for _ in range({0: 1, 1: 2, 2: 3}[len(dims)])]
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(1, "i") + onnx.data(2, "y") + onnx.data(4, "ArrayFeatureExtractor") +
                     onnx.data(7, "ai.onnx.ml"))
    return answers(folder, node, [("x", STRING, ["N"], texts_npy([count], x)), ("i", I64, dims, ints_npy(dims, picks))],
                   [("y", STRING, read_texts)], "ArrayFeatureExtractor", [([1, len(picks)], [x[i] for i in picks])], "ai.onnx.ml", 1)


# ---- sequences, maps and optionals: x.values, x.shapes, x.keys and x.has ----

def maps_type(name, key, value):
    """A sequence of maps."""
    inner = onnx.num(1, key) + onnx.data(2, onnx.data(1, onnx.num(1, value) + onnx.data(2, b"")))
    return onnx.data(1, name) + onnx.data(2, onnx.data(4, onnx.data(1, onnx.data(5, inner))))


def check_maps(folder, chance):
    rows, count, is_text = chance.randint(1, 4), chance.randint(1, 4), chance.random() < 0.5
    keys = ["k" * i + "!" for i in range(count)] if is_text else [chance.randint(-99, 99) for _ in range(count)]
    x = [float(chance.randint(-9, 9)) for _ in range(rows * count)]
    node = onnx.data(1, onnx.data(1, "x") + onnx.data(2, "y") + onnx.data(4, "ZipMap") + onnx.data(7, "ai.onnx.ml") +
                     (texts_attribute("classlabels_strings", keys) if is_text else onnx.ints("classlabels_int64s", keys)))
    inputs, files = [typed("x", onnx.FLOAT, ["N", count])], {"x": floats_npy([rows, count], x)}
    key_type = STRING if is_text else I64
    failed = runs(folder, model(node, inputs, [maps_type("y", key_type, onnx.FLOAT)], "ai.onnx.ml", 1), files,
                  [None if is_text else ([count], keys, "q"), ([rows, count], x, "f")], "ZipMap")
    if is_text and not failed and read_texts(folder + "/output_0.npy") != ([count], keys):
        print("FAIL ZipMap found", read_texts(folder + "/output_0.npy"), "wanted", keys)
        failed += 1
    # Other types than what the node gives are refused.
    for wrong, says in ((sequence_type("y", onnx.FLOAT, 1), "maps"), (maps_type("y", I64 if is_text else STRING, onnx.FLOAT), "the model says")):
        with open(folder + "/model.onnx", "wb") as file:
            file.write(model(node, inputs, [wrong], "ai.onnx.ml", 1))
        done = subprocess.run([SINTER, "run", folder + "/model.onnx", "--input", "x=%s/x.npy" % folder], capture_output=True, text=True)
        if not done.returncode or says not in done.stderr:
            print("FAIL ZipMap of another type:", done.returncode, done.stderr)
            failed += 1
    return failed


def sequence_type(name, type_, rank, optional=False):
    """A sequence of tensors with free sizes; or an optional tensor."""
    tensor_ = onnx.data(1, onnx.num(1, type_) + onnx.data(2, b"".join(onnx.data(1, b"") for _ in range(rank))))
    return onnx.data(1, name) + onnx.data(2, onnx.data(9 if optional else 4, onnx.data(1, tensor_)))


def some_tensor(chance, rank):
    dims = [chance.randint(0, 3) for _ in range(rank)]
    count = 1
    for d in dims:
        count *= d
    return dims, [float(chance.randint(-9, 9)) for _ in range(count)]


def floats_npy(dims, list_):
    return npy_of("<f4", dims, struct.pack("<%df" % len(list_), *list_))


def ints_npy(dims, list_):
    return npy_of("<i8", dims, struct.pack("<%dq" % len(list_), *list_))


def sequence_files(name, tensors, rank):
    all_ = sum((v for _, v in tensors), [])
    return {name + ".values": floats_npy([len(all_)], all_), name + ".shapes": ints_npy([len(tensors), rank], sum((d for d, _ in tensors), []))}


def runs(folder, bytes_, files, wanted, what):
    """wanted: of each output, its shape and numbers; None: not looked at."""
    failed = 0
    with open(folder + "/model.onnx", "wb") as file:
        file.write(bytes_)
    for device in "cpu", "reference":
        command = [SINTER, "run", folder + "/model.onnx", "--output-dir", folder, "--device", device]
        for name, content in files.items():
            with open(folder + "/" + name + ".npy", "wb") as file:
                file.write(content)
            command += ["--input", "%s=%s/%s.npy" % (name, folder, name)]
        done = subprocess.run(command, capture_output=True, text=True)
        found = done.stderr if done.returncode else []
        for i in range(0 if done.returncode else len(wanted)):
            shape, content = read_array(folder + "/output_%d.npy" % i)
            kind = "f" if wanted[i] and wanted[i][2] == "f" else "?" if wanted[i] and wanted[i][2] == "?" else "q"
            found.append((shape, list(struct.unpack("<%d%s" % (len(content) // struct.calcsize(kind), kind), content)), kind) if wanted[i] else None)
        if found != wanted:
            print("FAIL", what, device, "found", found, "wanted", wanted)
            failed += 1
    return failed


def sequence_wanted(tensors, rank):
    all_ = sum((v for _, v in tensors), [])
    return [([len(all_)], all_, "f"), ([len(tensors), rank], sum((d for d, _ in tensors), []), "q")]


def simple(op, ins, outs, attributes=b""):
    return onnx.data(1, b"".join(onnx.data(1, i) for i in ins) + b"".join(onnx.data(2, o) for o in outs) + onnx.data(4, op) + attributes)


def check_sequence(folder, chance):
    """A tensor comes in, one goes, and one is taken out."""
    rank = chance.randint(0, 3)
    x, t = [some_tensor(chance, rank) for _ in range(chance.randint(0, 4))], some_tensor(chance, rank)
    at, gone, taken = chance.randint(-len(x), len(x)), chance.randint(0, len(x)), chance.randint(-len(x) - 1, len(x))
    graph = b"".join(onnx.tensor(n, I64, [], [v]) for n, v in (("at", at), ("gone", gone), ("taken", taken)))
    graph += (simple("SequenceInsert", ["x", "t", "at"], ["more"]) + simple("SequenceErase", ["more", "gone"], ["y"]) +
              simple("SequenceAt", ["more", "taken"], ["one"]) + simple("SequenceLength", ["y"], ["n"]))
    more = list(x)
    more.insert(at, t)
    less = more[:gone] + more[gone + 1:]
    free = ["t%d" % i for i in range(rank)]
    bytes_ = model(graph, [sequence_type("x", onnx.FLOAT, rank), typed("t", onnx.FLOAT, free)],
                   [sequence_type("y", onnx.FLOAT, rank), typed("one", onnx.FLOAT, ["o%d" % i for i in range(rank)]), typed("n", I64, [])], "x", 1)
    files = dict(sequence_files("x", x, rank), t=floats_npy(*t))
    return runs(folder, bytes_, files, sequence_wanted(less, rank) + [(more[taken][0], more[taken][1], "f"), ([], [len(less)], "q")],
                "sequence")


def check_optional(folder, chance):
    """A value goes through, and whether there is one."""
    has, t = chance.randint(0, 1), some_tensor(chance, 1)
    graph = simple("Identity", ["x"], ["y"]) + simple("OptionalHasElement", ["x"], ["h"])
    bytes_ = model(graph, [sequence_type("x", onnx.FLOAT, 1, True)], [sequence_type("y", onnx.FLOAT, 1, True), typed("h", 9, [])], "x", 1)
    files = {"x": floats_npy(*t), "x.has": npy_of("|b1", [], bytes([has]))}
    return runs(folder, bytes_, files, [(t[0], t[1], "f"), ([], [bool(has)], "?"), ([], [bool(has)], "?")], "optional")


def check_optional_taken(folder, chance):
    """The value is taken: the run fails where there is none."""
    t = some_tensor(chance, 1)
    bytes_ = model(simple("OptionalGetElement", ["x"], ["v"]) + simple("Neg", ["v"], ["y"]), [sequence_type("x", onnx.FLOAT, 1, True)],
                   [typed("y", onnx.FLOAT, ["n"])], "x", 1)
    files = {"x": floats_npy(*t), "x.has": npy_of("|b1", [], b"\1")}
    failed = runs(folder, bytes_, files, [(t[0], [-v for v in t[1]], "f")], "optional taken")
    with open(folder + "/x.has.npy", "wb") as file:
        file.write(npy_of("|b1", [], b"\0"))
    done = subprocess.run([SINTER, "run", folder + "/model.onnx", "--input", "x=%s/x.npy" % folder, "--input", "x.has=%s/x.has.npy" % folder],
                          capture_output=True, text=True)
    if done.returncode and "optional that has none" in done.stderr:
        return failed
    print("FAIL optional taken: it has none, and the run says", done.stderr)
    return failed + 1


def run(folder, bytes_, inputs, what, wanted):
    return max(run_on(device, folder, bytes_, inputs, what, wanted) for device in ("cpu", "reference"))


def run_on(device, folder, bytes_, inputs, what, wanted):
    with open(folder + "/model.onnx", "wb") as file:
        file.write(bytes_)
    command = [SINTER, "run", "--device", device, folder + "/model.onnx", "--output-dir", folder]
    for name, content in inputs.items():
        with open(folder + "/" + name + ".npy", "wb") as file:
            file.write(content)
        command += ["--input", "%s=%s/%s.npy" % (name, folder, name)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print("FAIL", what, done.stderr)
        return 1
    found = read_npy(folder + "/output_0.npy")
    if len(found) == len(wanted) and all(abs(a - b) <= 1e-5 for a, b in zip(found, wanted)):
        return 0
    print("FAIL", what, "found", found, "wanted", wanted)
    return 1


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(SEEDS):
            failed += check_trees(folder, seed)
            for check in (check_classifier, check_concat, check_equal, check_split, check_normalizer, check_label, check_categories, check_moves,
                          check_picks, check_sequence, check_maps, check_optional, check_optional_taken):
                failed += check(folder, random.Random(seed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
