#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/network.md from src/network/layers.def: which call of TensorRT is which call here, and the
parameters of each kind of layer. --check: fails if the page is out of date."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "network.md"
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"


def macros(text):
    """Parameters by macro, with macros that are used in others."""
    joined = re.sub(r"[ \t]*\\\n[ \t]*", " ", text)
    found = {}
    for name, body in re.findall(r"#define PARAMS_(\w+)\(P\)(.*)", joined):
        rows = []
        for use in re.finditer(r'PARAMS_(\w+)\(P\)|P\((\w+), (\w+), ([^,]+), (\w+), "([^"]*)"\)', body):
            rows += found[use.group(1)] if use.group(1) else [use.groups()[1:]]
        found[name] = rows
    return found


def tables():
    text = (ROOT / "src" / "network" / "layers.def").read_text()
    params = macros(text)
    rows = re.findall(r'^LAYER\((\w+), (\w+), (\w+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)', text, re.M)
    out = ["| TensorRT | call | kind | inputs | outputs |", "|---|---|---|---|---|"]
    out.append("| addInput | `sinter_network_add_input` | | 0 | 1 |")
    for kind, name, least, most, outs, tensorrt, call in rows:
        inputs = least if least == most else f"{least} or more" if most == "LIST" else f"{least} to {most}"
        out.append(f"| {tensorrt} | `{call}` | `{name}` | {inputs} | {outs if name not in ('op', 'plugin') else 'any'} |")
    out.append("| addDistCollective | refused: an engine runs on one device | `dist_collective` | | |")
    out += ["", "| kind | parameter | form | default | meaning |", "|---|---|---|---|---|"]
    for kind, name, *_ in rows:
        for form, field, initial, words, meaning in params[name]:
            value = initial.replace("SINTER_DTYPE_", "").lower() if form not in ("INTS", "REALS", "WEIGHTS", "TEXT") else ""
            out.append(f"| `{name}` | `{field}` | {form.lower()} | {value} | {meaning} |")
    return "\n".join(out)


def main():
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    made = head + BEGIN + "\n" + tables() + "\n" + END + rest.split(END)[1]
    if "--check" in sys.argv:
        if made != page:
            sys.exit("docs/network.md is out of date: tools/write_network_docs.py writes it again")
        return
    PAGE.write_text(made)


if __name__ == "__main__":
    main()
