#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no folder includes what tools/layers.txt does not allow, that the layers have no cycle, and that no two
sources have the same name. A name that two folders want begins with the folder's: cpu_move.c beside ops/move.c.

Headers of src/cuda/device name each other without a folder: the device's compiler gets them from memory."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SOURCES = {".c", ".h", ".def", ".cu", ".cuh"}
OUTSIDE = {"cli": ROOT / "cli", "examples": ROOT / "examples"}


def read_layers():
    layers = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, allowed = line.split(":")
            layers[name.strip()] = set(allowed.split())
    return layers


def cycle_of(layers):
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for other in sorted(layers.get(name, ())):
            found = visit(other)
            if found:
                return found
        path.pop()
        done.add(name)
        return None

    for name in layers:
        found = visit(name)
        if found:
            return found
    return None


def same_names():
    """Sources of one name in two folders. The emulator's headers stand in for the device's, under their names."""
    found = {}
    for folder in ("src", "cli", "tests", "bench", "examples"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in SOURCES and "emulator" not in file.parts:
                found.setdefault(file.name, []).append(str(file.relative_to(ROOT)))
    return [f"one name for several files: {' '.join(files)}" for files in found.values() if len(files) > 1]


def main():
    layers = read_layers()
    errors = []
    cycle = cycle_of(layers)
    if cycle:
        errors.append("tools/layers.txt: a cycle: " + " -> ".join(cycle))
    for folder in sorted(p.name for p in (ROOT / "src").iterdir() if p.is_dir()):
        if folder not in layers:
            errors.append(f"src/{folder}: not in tools/layers.txt")
    count = 0
    for name, allowed in layers.items():
        folder = OUTSIDE.get(name, ROOT / "src" / name)
        for file in sorted(folder.rglob("*")):
            if file.suffix not in (".c", ".h", ".def"):
                continue
            text = file.read_text()
            for match in INCLUDE.finditer(text):
                count += 1
                target = match.group(1)
                if file.parent.name == "device" and (file.parent / target).is_file():
                    continue
                first = target.split("/")[0] if "/" in target else name if name in OUTSIDE else ""
                if first == name or first in ("sinter", "generated") or first in allowed:
                    continue
                line = text.count("\n", 0, match.start()) + 1
                what = f"'{target}' has no folder" if not first else f"{name} may not include {first}"
                errors.append(f"{file.relative_to(ROOT)}:{line}: {what}")
    errors += same_names()
    for error in errors:
        print(error)
    print(f"{count} includes, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
