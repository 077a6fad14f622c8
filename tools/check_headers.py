#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header alone: public ones as C11 and as C++, inner ones as C11. Compiles each macro that initialises
options as C11 and as C++11 to C++20.

Headers of one instruction set (*_avx2.h, *_avx512.h, *_neon.h) and templates (*.inc.h) are included only by their own sources and
are left out. C++ is skipped with a note where there is no C++ compiler."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", str(ROOT / "include")]


def compile_alone(job):
    command, language, include, body = job
    source = f'#include "{include}"\n#include "{include}"\n{body}extern int header_compiles_alone;\n'
    done = subprocess.run(command + ["-x", language, "-"], input=source, text=True, capture_output=True)
    return include, language, done.returncode, done.stderr


def initialisers(header):
    """A function that uses each macro of the header that initialises a struct."""
    body = ""
    for macro, struct in re.findall(r"#define (SINTER_\w+)\s*\\?\s*\{ sizeof\((\w+)\)", header.read_text()):
        body += f"size_t use_{struct}(void);\nsize_t use_{struct}(void) {{ {struct} made = {macro}; return made.struct_size; }}\n"
    return body


def main():
    cc = os.environ.get("CC") or shutil.which("gcc") or "cc"
    cxx = shutil.which("g++") or shutil.which("clang++")
    c11 = [cc, "-std=c11", "-D_GNU_SOURCE"] + STRICT
    jobs = []
    made = 0
    for header in sorted((ROOT / "include/sinter").glob("*.h")):
        name = "sinter/" + header.name
        body = initialisers(header)
        made += body.count("made =")
        jobs.append((c11, "c", name, body))
        for compiler in ("g++", "clang++") if cxx else ():
            if shutil.which(compiler):
                for standard in ("11", "17", "20"):
                    jobs.append(([compiler, "-std=c++" + standard] + STRICT, "c++", name, body))
    options = sum(len(re.findall(r"#define SINTER_\w+_(?:OPTIONS|REPORT|INFO)\b", h.read_text())) for h in (ROOT / "include/sinter").glob("*.h"))
    if made != options:
        print(f"{options} macros initialise options, {made} of them begin with the struct's size: {{ sizeof(struct), ... }}")
        return 1
    for header in sorted((ROOT / "src").rglob("*.h")):
        if header.name.endswith((".inc.h", "_avx2.h", "_avx512.h", "_neon.h")):
            continue
        name = str(header.relative_to(ROOT / "src"))
        jobs.append((c11 + ["-Wno-unused-function", "-I", str(ROOT / "src")], "c", name, ""))
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
