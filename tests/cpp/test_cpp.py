#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles sinter.hpp, the headers of sinter/compat and their tests as C++14, C++17 and C++20 with every compiler there is, without
a warning, and runs the tests and the code of docs/cpp.md.

With a library that has sanitizers, g++ compiles the test once, with the same sanitizers."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["SINTER_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["SINTER_BIN"]).parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-I", str(ROOT / "include")]
TESTS = {"use_sinter": ("17", "20"), "use_tensorrt": ("17", "20"), "use_tensorrt8": ("14", "17", "20"), "use_implicit_batch": ("14", "17"), "use_samples": ("17", "20"), "use_plugins": ("14", "17", "20"),
         "use_formats": ("14", "17", "20"), "use_shipped": ("14", "17", "20")}
# The standard that g++ makes each program with.
RUNS = {"use_sinter": "17", "use_tensorrt": "17", "use_tensorrt8": "14", "use_implicit_batch": "14", "use_samples": "17", "use_plugins": "14",
        "use_formats": "14", "use_shipped": "14"}
COMPAT = ["-I", str(ROOT / "include/sinter/compat"), "-I", str(ROOT / "include/sinter/compat/host")]
sys.path.insert(0, str(ROOT / "tests/golden"))
import onnx_bytes as ob  # noqa: E402


def sanitizers():
    needed = subprocess.run(["ldd", str(BUILD / "libsinter.so")], capture_output=True, text=True).stdout
    return [flag for library, flag in (("libasan", "-fsanitize=address"), ("libubsan", "-fsanitize=undefined"), ("libtsan", "-fsanitize=thread"))
            if library in needed]


# What the code blocks of docs/cpp.md rely on.
RIG = """#include <cstdio>
static void block{0}()
{{
    std::vector<float> kernel(72, 0.5f);
    sinter::tensor image = sinter::tensor::read("seven.npy");
    sinter::network net;
    sinter::context context(sinter::engine::build("digits.onnx", sinter::build_options().set("tune", "off")));
    (void)kernel; (void)image;
    {{
{1}
    }}
}}
"""


def documented(folder):
    """The blocks of docs/cpp.md as one program, which runs all of them."""
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/cpp.md").read_text(), re.S)
    whole, parts = blocks[0].replace("int main()", "static void whole()"), [b.replace("\n...\n", "\n") for b in blocks[1:]]
    text = "#include <cstdio>\n" + whole + "".join(RIG.format(i, b) for i, b in enumerate(parts))
    text += "int main()\n{\n    whole();\n" + "".join(f"    block{i}();\n" for i in range(len(parts))) + "}\n"
    (folder / "documented.cpp").write_text(text)
    for name in ("digits.onnx", "seven.npy"):
        shutil.copy(ROOT / "examples/digits" / name, folder)
    done = subprocess.run(["g++", "-std=c++20", "-I", ROOT / "include", folder / "documented.cpp", "-o", folder / "documented", "-L", BUILD,
                           "-lsinter", "-lpthread"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    done = subprocess.run([folder / "documented"], capture_output=True, text=True, cwd=folder, env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)))
    return done.stdout + done.stderr if done.returncode or len(done.stdout.split()) < 10 else ""


def compile_and_run(job):
    """The output of what failed; empty: nothing did."""
    compiler, standard, test, runs, flags, folder = job
    folder.mkdir()
    command = [compiler, f"-std=c++{standard}", *STRICT, *COMPAT, *flags, str(ROOT / f"tests/cpp/{test}.cpp")]
    command += ["-fPIC", "-c", "-o", str(folder / "use.o")] if runs else ["-fsyntax-only"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not runs:
        return done.stderr
    link = [compiler, *flags, folder / "use.o", "-L", BUILD, "-lsinter", "-lpthread", "-o"]
    subprocess.run([*link, folder / "use"], check=True)
    digits = ROOT / "examples/digits"
    last = folder
    if test in ("use_tensorrt", "use_samples"):
        last = folder / "plugin.onnx"
        factor = ob.data(5, ob.data(1, "factor") + ob.varint(2 << 3 | 5) + struct.pack("<f", 2.5) + ob.num(20, 1))
        ob.write_model(last, ob.node("Scaled", ["x"], "y", factor) + ob.data(11, ob.value("x", ["N", 2])) +
                       ob.data(12, ob.value("y", ["N", 2])))
    done = subprocess.run([folder / "use", digits / "digits.onnx", digits / "seven.npy", last], capture_output=True, text=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)))
    if done.returncode or test != "use_tensorrt" or flags:
        return done.stdout + done.stderr if done.returncode else ""
    return load_plugins(link, folder)


def load_plugins(link, folder):
    """As a shared library the test is a library of plugins: the command runs the model with it, and a Python script opens it."""
    subprocess.run([*link, folder / "libuse.so", "-shared"], check=True)
    ob.write_npy(folder / "x.npy", [2, 2], [1, 2, 3, 4])
    done = subprocess.run([os.environ["SINTER_BIN"], "run", folder / "plugin.onnx", "--plugin", folder / "libuse.so", "--input",
                           f"x={folder / 'x.npy'}", "--output-dir", folder], capture_output=True, text=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)))
    if done.returncode:
        return done.stdout + done.stderr
    values = struct.unpack("<4f", (folder / "output_0.npy").read_bytes()[-16:])
    if values != (3.5, 6, 8.5, 11):
        return f"the plugin gives {values}"
    done = subprocess.run([sys.executable, "-m", "sinter.shim", ROOT / "tests/python/scripts/plugin_library.py", folder / "libuse.so",
                           folder / "plugin.onnx"], capture_output=True, text=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD), PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1",
                                   SINTER_LIBRARY=str(BUILD / "libsinter.so"), SINTER_TENSORRT_DEVICE="cpu"))
    return "" if done.stdout == "done\n" else done.stdout + done.stderr


def main():
    flags = sanitizers()
    compilers = [c for c in ("g++", "clang++") if shutil.which(c)]
    # The other pairs of compiler and standard take a minute: with SINTER_TEST_SCALE=full.
    is_full = os.environ.get("SINTER_TEST_SCALE") == "full"
    quick = {t: {("g++", RUNS[t]), ("clang++", "14" if "14" in standards else "20")} for t, standards in TESTS.items()}
    jobs = [(c, s, t, (c, s) == ("g++", RUNS[t])) for t, standards in TESTS.items() for c in compilers for s in standards
            if is_full or (c, s) in quick[t]]
    if flags:
        jobs = [("g++", standard, t, True) for t, standard in RUNS.items()]
    if not compilers or flags and "g++" not in compilers:
        print("no C++ compiler")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        todo = [job + (flags, pathlib.Path(scratch, f"{job[0]}{job[1]}{job[2]}")) for job in jobs]
        for job, output in zip(jobs, pool.map(compile_and_run, todo)):
            failed += bool(output)
            print(f"{'FAIL' if output else 'ok  '} {job[0]} -std=c++{job[1]} {job[2]}\n{output}", end="")
        if not flags and "g++" in compilers:
            output = documented(pathlib.Path(scratch))
            failed += bool(output)
            print(f"{'FAIL' if output else 'ok  '} docs/cpp.md\n{output}", end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
