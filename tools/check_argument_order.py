#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no call and no initializer list has two members that add to a graph.

C does not say which member is evaluated first. So the numbers of values would depend on the compiler, and engines and
written models with them. All such members but one need local variables.

These functions add to a graph: those of the headers of src/ir that return the id of something new, export_fresh() for
the names of written models, and every function that calls one of them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["ir", "onnx", "network", "opt", "tune", "builder"]
BLANK = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
NEW = re.compile(r"^(?:static inline )?ir_(?:value|node|region)_id\s+(\w+)\(ir_(?:builder|graph) \*", re.M)
OPS = re.compile(r"^(?:OP|S)\((\w+)", re.M)
FUNCTION = re.compile(r"^(static )?[a-z][\w \t*]*?\b(\w+)\([^;{}]*\)\s*(\{.*?^\}|\{[^\n]*\}$)", re.M | re.S)
CALL = re.compile(r"(?<![.>\w])([A-Za-z_]\w*)\(")
TOKEN = re.compile(r"(?<![.>\w])(?:[A-Za-z_]\w*\s*)?\(|[(\[{)\]},;]")
STATEMENTS = {"if", "for", "while", "switch", "return", "sizeof", ""}


def blanked(file):
    return BLANK.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), file.read_text())


def makers_of(sources):
    """By file: the names of functions that add to a graph. A static function hides one of the same name elsewhere."""
    shared, own = {"export_fresh"}, {file: set() for file in sources}
    for header in (ROOT / "src/ir").glob("*.h"):
        shared.update(NEW.findall(blanked(header)))
    for table in ("ops.def", "scalar.def"):
        shared.update("build_" + name for name in OPS.findall((ROOT / "src/ops" / table).read_text()))
    functions = [(file, *parts) for file, text in sources.items() for parts in FUNCTION.findall(text)]
    statics = {file: {name for at, static, name, _ in functions if at == file and static} for file in sources}
    functions = [(file, static, name, set(CALL.findall(body))) for file, static, name, body in functions]
    count = -1
    while count != (count := len(shared) + sum(map(len, own.values()))):
        for file, static, name, calls in functions:
            if calls & (shared - statics[file] | own[file]):
                (own[file] if static else shared).add(name)
    return {file: shared - statics[file] | own[file] for file in sources}


def places(text, makers):
    """Where calls and lists begin that have two members with a call of a maker."""
    groups = []                 # of open brackets: [offset, is it a call or a list, members that make, does this one]
    for token in TOKEN.finditer(text):
        mark, name = token.group()[-1], token.group()[:-1].strip()
        if mark in "([{":
            for group in groups:
                group[3] |= name in makers
            groups.append([token.start(), mark == "{" or name not in STATEMENTS, 0, False])
        elif groups:
            group = groups[-1]
            group[1] &= mark != ";"
            group[2] += group[3]
            group[3] = False
            if mark in ")]}" and groups.pop()[1] and group[2] > 1:
                yield group[0]


def main():
    files = [file for folder in FOLDERS for file in sorted((ROOT / "src" / folder).glob("*.[ch]"))]
    sources = {file: blanked(file) for file in files}
    makers = makers_of(sources)
    errors = [(file, text.count("\n", 0, at) + 1) for file, text in sources.items() for at in places(text, makers[file])]
    for file, line in errors:
        print(f"{file.relative_to(ROOT)}:{line}: two members add to the graph, and C leaves open which is first")
    print(f"{len(sources)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
