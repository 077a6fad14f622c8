#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the public names of TensorRT's C++ headers that include/sinter/compat lacks: classes, values of enums, methods.

    tools/list_missing_names.py FOLDER [MAJOR]

FOLDER has TensorRT's headers (NvInfer.h and those beside it), MAJOR is their version, 10 if it is not said. A class is looked for by
name, whatever namespace it is in; a method counts where the class or a base of it has one of that name, whatever its arguments."""
import pathlib
import re
import subprocess
import sys

COMPAT = pathlib.Path(__file__).resolve().parents[1] / "include/sinter/compat"
# Headers of products that are not here, and what is behind inline methods.
OTHERS = ("Safe", "Uff", "Caffe", "Impl", "Consistency")
BLOCK = re.compile(r"\b(enum class|enum|class|struct)\s+(?:[A-Z_]+\s+)*(\w+)\s*(?:final\s*)?(?::([^{;]*))?\{")
WORDS = {"noexcept", "operator", "sizeof", "throw", "decltype", "defined", "static_assert", "if", "for", "while", "return", "switch"}


def plain(text):
    """Without comments and lines of the preprocessor."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)


def end_of(text, at):
    """Where the block ends that begins before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


def members(text):
    """The text without what is between braces."""
    made, depth = [], 0
    for c in text:
        depth -= c == "}"
        if depth == 0:
            made.append(";" if c == "}" else c)
        depth += c == "{"
    return "".join(made)


def read(text):
    """name -> (its values and methods, its bases)."""
    found = {}
    for match in BLOCK.finditer(text):
        kind, name, bases = match.groups()
        body = text[match.end():end_of(text, match.end())]
        names, above = found.setdefault(name, (set(), set()))
        if kind.startswith("enum"):
            names.update(re.findall(r"\b(k[A-Z]\w*)\b", re.sub(r"=[^,]*", "", body)))
            continue
        above.update(re.findall(r"(\w+)\s*(?:<[^>]*>)?\s*(?:,|$)", (bases or "").strip()))
        is_public = kind == "struct"
        for part in re.split(r"\b(public|private|protected)\s*:", members(body)):
            if part in ("public", "private", "protected"):
                is_public = part == "public"
            elif is_public:
                names.update(n for n in re.findall(r"\b([a-z]\w*)\s*\(", part) if n not in WORDS)
    return found


def compat(major):
    source = "".join(f"#include <{name}>\n" for name in ("NvInfer.h", "NvInferPlugin.h", "NvOnnxParser.h", "NvOnnxConfig.h"))
    done = subprocess.run(["g++", "-std=c++17", "-E", "-P", f"-DNV_TENSORRT_MAJOR={major}", "-I", COMPAT, "-I", COMPAT / "host", "-x", "c++", "-"],
                          input=source, capture_output=True, text=True, check=True)
    text = done.stdout[done.stdout.index("namespace nvinfer1"):]
    return read(text), text


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    major = sys.argv[2] if len(sys.argv) > 2 else "10"
    headers = [f for f in sorted(pathlib.Path(sys.argv[1]).glob("Nv*.h")) if not any(word in f.name for word in OTHERS)]
    theirs = read(plain("\n".join(f.read_text(errors="replace") for f in headers)))
    ours, text = compat(major)

    def all_of(name, seen=frozenset()):
        names, bases = ours.get(name, (set(), set()))
        alias = re.search(rf"\busing\s+{name}\s*=\s*(?:\w+::)*(\w+)\s*;", text)
        bases = (bases | {alias.group(1)} if alias else bases) - seen
        return names.union(*(all_of(b, seen | {name}) for b in bases))

    for name, (names, _) in sorted(theirs.items()):
        if re.match(r"V[A-Z]", name):               # what is behind a class
            continue
        if not re.search(rf"\b{name}\b", text):
            print(name)
            continue
        missing = names - all_of(name)
        if missing:
            print(f"{name}: {' '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
