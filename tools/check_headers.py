#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header alone: public ones as C11 and as C++, inner ones as C11.

Headers of one instruction set (*_avx2.h, *_avx512.h) and templates (*.inc.h) are included only by their own sources and
are left out. C++ is skipped with a note where there is no C++ compiler."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", str(ROOT / "include")]


def compile_alone(job):
    command, language, include = job
    source = f'#include "{include}"\n#include "{include}"\nextern int header_compiles_alone;\n'
    done = subprocess.run(command + ["-x", language, "-"], input=source, text=True, capture_output=True)
    return include, language, done.returncode, done.stderr


def main():
    cc = os.environ.get("CC") or shutil.which("gcc") or "cc"
    cxx = shutil.which("g++") or shutil.which("clang++")
    c11 = [cc, "-std=c11", "-D_GNU_SOURCE"] + STRICT
    jobs = []
    for header in sorted((ROOT / "include/sinter").glob("*.h")):
        name = "sinter/" + header.name
        jobs.append((c11, "c", name))
        if cxx:
            jobs.append(([cxx, "-std=c++11"] + STRICT, "c++", name))
    for header in sorted((ROOT / "src").rglob("*.h")):
        if header.name.endswith((".inc.h", "_avx2.h", "_avx512.h")):
            continue
        name = str(header.relative_to(ROOT / "src"))
        jobs.append((c11 + ["-Wno-unused-function", "-I", str(ROOT / "src")], "c", name))
    if not cxx:
        print("no C++ compiler: headers were checked as C11 only")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, language, code, output in pool.map(compile_alone, jobs):
            if code:
                failed += 1
                print(f"{name} does not compile alone as {language}:\n{output}")
    print(f"{len(jobs)} compilations, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
