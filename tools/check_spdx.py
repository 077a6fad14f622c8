#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file that git knows names its licence in its first lines."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".cmake", ".cu", ".cuh", ".hpp")
NAMES = ("CMakeLists.txt", "check", "demo", "run")
LINE = "SPDX-License-Identifier: Apache-2.0"


def main():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode:
        files = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if "build" not in p.relative_to(ROOT).parts[:1]]
    else:
        files = listed.stdout.split("\0")
    bad = []
    for name in files:
        path = ROOT / name
        if not path.is_file() or not (path.suffix in SUFFIXES or path.name in NAMES):
            continue
        if not any(LINE in line for line in path.read_text(errors="replace").splitlines()[:3]):
            bad.append(name)
    for name in bad:
        print(f"{name}: no '{LINE}' in its first three lines")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
