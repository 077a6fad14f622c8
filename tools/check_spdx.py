#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file names its licence in its first lines. Build folders are left out."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".cmake", ".cu", ".cuh", ".hpp")
NAMES = ("CMakeLists.txt", "check", "demo", "run")
SKIPPED = (".git", ".cache", "__pycache__")
LINE = "SPDX-License-Identifier: Apache-2.0"


def source_files():
    for folder, folders, names in os.walk(ROOT):
        is_top = pathlib.Path(folder) == ROOT
        folders[:] = [f for f in folders if f not in SKIPPED and not (is_top and f.startswith("build"))]
        for name in names:
            path = pathlib.Path(folder, name)
            if path.is_file() and (path.suffix in SUFFIXES or path.name in NAMES):
                yield path


def main():
    count, bad = 0, []
    for path in source_files():
        count += 1
        if not any(LINE in line for line in path.read_text(errors="replace").splitlines()[:3]):
            bad.append(path.relative_to(ROOT))
    for name in sorted(bad):
        print(f"{name}: no '{LINE}' in its first three lines")
    print(f"{count} files, {len(bad)} without a licence")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
