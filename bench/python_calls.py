#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs from Python above the same run from C, and what the import costs.

The engine adds two small vectors. C's time is that of a loop compiled here against the library of build/; Python's is
that of context.run with a NumPy array, new or the same each time. Prints microseconds of processor time, the least of
several repeats. Exit status 1 if Python costs more than --limit microseconds above C."""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "golden"), str(ROOT / "tests" / "python")]
LOOP = """
#include <sinter/sinter.h>
int loop(sinter_context *context, const sinter_tensor *in, int count, int set)
{
    sinter_error error = { 0 };
    sinter_tensor out;
    int bad = 0;
    for (int i = 0; i < count; i++) {
        if (set) bad |= sinter_context_set_input(context, "x", in, &error);
        bad |= sinter_context_run(context, &error);
        bad |= sinter_context_output(context, "y", &out, &error);
    }
    return bad;
}
"""


def least(function, count, repeats):
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        function(count)
        best = min(best, time.thread_time() - start)
    return best / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="runs a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit", type=float, default=10, help="microseconds above C (default: %(default)s)")
    options = parser.parse_args()
    imports = []
    for _ in range(options.repeats):
        code = "import time; s = time.process_time(); import sinter; print(time.process_time() - s)"
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        imports.append(float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                                            check=True).stdout))
    print(f"import: {min(imports) * 1e3:.1f} ms")

    import sinter
    from random_models import data, initializer, model, node, value
    graph = (data(2, "g") + data(11, value("x", "f32", [4])) + data(12, value("y", "f32", [4])) +
             initializer("w", np.ones(4, "f4")) + node("Add", ["x", "w"], ["y"]))
    context = sinter.build(model(graph), tune="off", threads=1).load().context()
    arrays = [np.zeros(4, "f4") for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "loop.c").write_text(LOOP)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"{folder}/loop.c", "-I", str(ROOT / "include"),
                        "-o", f"{folder}/loop.so", sinter.library_path, f"-Wl,-rpath,{os.path.dirname(sinter.library_path)}"],
                       check=True)
        loop = ctypes.CDLL(f"{folder}/loop.so").loop
    loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    context.run(x=arrays[0])
    tensor = ctypes.addressof(context._inputs["x"].tensor)

    def python(count, new, outputs=None):
        for i in range(count):
            context.run({"x": arrays[i & new]}, outputs)

    worst = 0
    out = {"y": np.zeros(4, "f4")}
    for name, c_set, new, outputs in (("new input each time", 1, 1, None), ("same input", 0, 0, None),
                                      ("new input, own output", 1, 1, out)):
        c = least(lambda count: loop(context._handle, tensor, count, c_set), options.count, options.repeats)
        p = least(lambda count: python(count, new, outputs), options.count, options.repeats)
        worst = max(worst, p - c)
        print(f"{name}: C {c:.2f} us, Python {p:.2f} us, above C {p - c:.2f} us")
    return worst > options.limit


if __name__ == "__main__":
    sys.exit(main())
