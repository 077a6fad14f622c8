#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses lists of ops outside the folders that may have them: a new op would be missing from such a list, silently. What
code has to know of ops is a trait (src/ops/traits.def) that each op's row states.

A list is a `case OP_x`, an entry of a table by op (`[OP_x] =`), or two different ops in one statement or condition that
compares them (`op == OP_a || op == OP_b`)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Kernels say what they run, conversions and rules what they make or match: those are rows of their own.
ALLOWED = ("src/ops/", "src/cpu/", "src/cuda/", "src/onnx/", "src/network/lower_", "src/opt/rules_")
CHECKED = ("src/**/*.c", "src/**/*.h", "cli/*.c", "tests/*.c", "tests/*.h")
# (file, ops): why the list is right. Each has to be met, or it goes.
EXCEPTIONS = {
    ("src/tune/lower_call.c", "if loop"): "the three forms of control flow, of which each step kind runs one",
    ("src/engine/verify_step.c", "if loop scan"): "the three forms of control flow, by step kind",
    ("src/ir/infer.c", "if loop"): "the three forms of control flow have shape functions of their own",
    ("tests/case_rig.c", "cast mul"): "exact on small integers where only a product follows",
    ("tests/case_data.c", "gather scatter_elements"): "data of cases: these two take negative indices",
}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
COMPARED = re.compile(r"[!=]=\s*OP_([a-z]\w*)")
LISTED = re.compile(r"\bcase\s+OP_([a-z]\w*)|\[\s*OP_([a-z]\w*)\s*\]\s*=|\]\s*=\s*OP_([a-z]\w*)")
SEPARATOR = re.compile(r"[;{}]")


def lists_of(text):
    """Pairs of offset and ops."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = TEXT.sub(blank, COMMENT.sub(blank, text))
    begin = 0
    for end in [m.start() for m in SEPARATOR.finditer(text)] + [len(text)]:
        part = text[begin:end]
        ops = set(COMPARED.findall(part))
        listed = {name for m in LISTED.finditer(part) for name in m.groups() if name}
        if listed or len(ops) > 1:
            yield begin + len(part) - len(part.lstrip()), ops | listed
        begin = end + 1


def main():
    errors, met, files = [], set(), 0
    for pattern in CHECKED:
        for file in sorted(ROOT.glob(pattern)):
            name = str(file.relative_to(ROOT))
            if name.startswith(ALLOWED):
                continue
            files += 1
            text = file.read_text()
            for at, ops in lists_of(text):
                key = (name, " ".join(sorted(ops)))
                if key in EXCEPTIONS:
                    met.add(key)
                    continue
                line = text.count("\n", 0, at) + 1
                errors.append(f"{name}:{line}: a list of ops ({key[1]}): make it a trait, src/ops/traits.def")
    errors += [f"tools/check_op_lists.py: the exception {key} is met no more" for key in EXCEPTIONS if key not in met]
    for error in errors:
        print(error)
    print(f"{files} files, {len(EXCEPTIONS)} exceptions, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
