#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sinter report` on random graphs with names that HTML would take for its own: the page is well-formed, self-contained, says
every step, draws each of them, and its figures agree with the engine's own report."""
import html.parser
import json
import os
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.environ["SINTER_SOURCE_DIR"] + "/tests/golden")
import onnx_bytes as onnx
from cli_rig import SINTER, check, failures

SOURCE = os.environ["SINTER_SOURCE_DIR"]
VOID = {"meta", "br"}
NAMES = ["<b>", "</title>", "a&b", "\"q\"", "'s'", "x</script>y", "<svg>", "-->", "&amp;", "\u00fc", "a b", "\t"]
random.seed(int(os.environ.get("SINTER_TEST_SEED", 1)))


class Page(html.parser.HTMLParser):
    """Tags that close in order, and what would load something."""
    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.count, self.text = [], [], {}, []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        for key, value in attrs:
            if key in ("src", "href") or key.startswith("on") or "url(" in (value or ""):
                self.wrong.append("%s of %s" % (key, tag))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append("</%s> where none is open" % tag)

    def handle_data(self, text):
        self.text.append(text)


def model(path):
    """A chain or a bush of operators over [2, 8], with odd names."""
    names, body, used = ["x"], b"", {"x"}
    for index in range(random.randrange(2, 14)):
        name = random.choice(NAMES) + str(index)
        used.add(name)
        op = random.choice(["Relu", "Exp", "Softmax", "Add", "Mul", "MatMul", "Sigmoid"])
        ins = [random.choice(names[-3:])]
        if op in ("Add", "Mul"):
            ins.append(random.choice(names))
        if op == "MatMul":
            ins.append("w%d" % index)
            body += onnx.tensor("w%d" % index, onnx.FLOAT, [8, 8], onnx.numbers(64, 0.3))
        body += onnx.node(op, ins, name)
        names.append(name)
    graph = body + onnx.data(2, "g") + onnx.data(11, onnx.value("x", [2, 8])) + onnx.data(12, onnx.value(names[-1], [2, 8]))
    onnx.write_model(path, graph)
    return names[-1]


def report(*words, status=0):
    done = subprocess.run([SINTER, "report", *words, "--tune", "off"], capture_output=True, text=True, timeout=120)
    check(done.returncode == status, words, "status", done.returncode, done.stderr)
    return done.stderr


def look(path, steps, has_times, has_accuracy):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = Page()
    page.feed(text)
    page.close()
    check(not page.open and not page.wrong, path, page.open, page.wrong[:3])
    check("http" not in text.lower(), path, "names another place")
    check(page.count.get("g", 0) == min(len(steps), 1500), path, "boxes", page.count.get("g"), "steps", len(steps))
    shown = "".join(page.text)
    for step in steps:
        check(step["kernel"] in shown and step["problem"] in shown, path, step)
        check(step["name"].strip() in shown or not step["name"].isprintable(), path, step["name"])
    check(("share %" in shown) == has_times, path, "times")
    check("Accuracy" in shown and ("Nothing was given to compare with" not in shown) == has_accuracy, path, "accuracy")
    for start in range(len(text)):
        start = text.find("<svg", start)
        if start < 0:
            break
        try:
            xml.etree.ElementTree.fromstring(text[start:text.index("</svg>", start) + 6])
        except xml.etree.ElementTree.ParseError as error:
            check(False, path, error)
            break
        text = text[text.index("</svg>", start) + 6:]


def main():
    with tempfile.TemporaryDirectory() as work:
        for index in range(8):
            path, out = "%s/m%d.onnx" % (work, index), "%s/m%d.html" % (work, index)
            name = model(path)
            inspected = subprocess.run([SINTER, "inspect", path, "--json"], capture_output=True, text=True, check=True).stdout
            steps = json.loads(inspected)["engine"]["profiles"][0]["steps"]
            produced = set()
            for step in steps:
                for tensor in step["in"]:
                    check(tensor["kind"] in ("weight", "input") or tensor["storage"] in produced, path, "is read before it is written", tensor)
                produced.update(tensor["storage"] for tensor in step["out"])
            has_times = index % 2 == 0
            words = ["--duration", "0.02"] if has_times else ["--no-run"]
            if has_times and "\t" not in name:
                onnx.write_npy(work + "/want.npy", [2, 8], onnx.numbers(16))
                words += ["--expect=" + name + "=" + work + "/want.npy"] if index % 4 else ["--against=reference:" + path]
            report(path, "-o", out, *words)
            look(out, steps, has_times, any(word.startswith(("--expect", "--against")) for word in words))
        report(SOURCE + "/examples/digits/digits.onnx", "-o", work + "/d.html", "--shape", "N=2", "--duration", "0.02")
        check("page of HTML" in report(path, "-o", path, status=1), "a model is overwritten")
        check("-o FILE" in report(path, status=2), "no -o")
        report(path, "-o", work + "/no/such.html", "--no-run", status=1)
        report(path, "-o", work + "/x.html", "--no-run", "--expect", "y=z", status=2)
        check("needs a run" in report(path, "-o", work + "/x.html", "--no-run", "--against", path, status=2), "--against without a run")
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
