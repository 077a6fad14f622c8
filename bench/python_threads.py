#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether threads of Python run contexts side by side as threads of C do.

Each thread has a context of one engine, with one thread of computing. A C program and Python run the same contexts, first one, then
--threads of them (default: as many as there are CPUs). Models of growing size are a chain of products, so that a run takes from some
microseconds to milliseconds. Prints runs a second, and how many times one thread's they are. Python's lock is held between runs only, for a
few microseconds each: the smaller the model, the sooner threads wait for it. Processor time says how long that is, on a busy machine, too. The best of several repeats counts."""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "golden"), str(ROOT / "tests" / "python")]
LOOP = """
#include <pthread.h>
#include <sinter/sinter.h>
typedef struct work { sinter_context *context; int count, bad; } work;
static void *one(void *p)
{
    work *w = p;
    sinter_error error = { 0 };
    for (int i = 0; i < w->count; i++) w->bad |= sinter_context_run(w->context, &error);
    return 0;
}
int loop(sinter_context **context, int threads, int count)
{
    pthread_t at[256];
    work w[256];
    int bad = 0;
    for (int i = 0; i < threads; i++) {
        w[i] = (work){ context[i], count, 0 };
        bad |= pthread_create(&at[i], 0, one, &w[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(at[i], 0);
        bad |= w[i].bad;
    }
    return bad;
}
"""


def compiled(folder, library):
    (folder / "loop.c").write_text(LOOP)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", folder / "loop.c", "-I", ROOT / "include", "-o", folder / "loop.so",
                    library, f"-Wl,-rpath,{os.path.dirname(library)}", "-lpthread"], check=True)
    loop = ctypes.CDLL(str(folder / "loop.so")).loop
    loop.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return loop


def rates(rows, repeats):
    """(runs a second, microseconds of processor time a run), the best of each (function, threads, count). They take turns, so that what
    else the machine does meets all of them."""
    best = [(float("inf"), float("inf"))] * len(rows)
    for _ in range(repeats):
        for i, (function, threads, count) in enumerate(rows):
            start = time.perf_counter(), time.process_time()
            function(threads, count)
            found = time.perf_counter() - start[0], time.process_time() - start[1]
            best[i] = tuple(map(min, best[i], found))
    return [(threads * count / seconds, cpu / threads / count * 1e6) for (_, threads, count), (seconds, cpu) in zip(rows, best)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=0.1, help="of one measurement (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    if not 1 <= options.threads <= 256:
        parser.error("--threads: 1 to 256")

    import sinter
    from random_models import data, initializer, model, node, value
    with tempfile.TemporaryDirectory() as folder:
        loop = compiled(pathlib.Path(folder), sinter.library_path)
        for size, layers in ((8, 1), (64, 4), (256, 4), (512, 8)):
            graph = data(2, "g") + data(11, value("x0", "f32", [16, size])) + data(12, value(f"x{layers}", "f32", [16, size]))
            for i in range(layers):
                graph += initializer(f"w{i}", np.full((size, size), 1 / size, "f4")) + node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"])
            engine = sinter.build(model(graph), tune="off", threads=1).load()
            x = np.ones((16, size), "f4")
            contexts = [engine.context() for _ in range(options.threads)]
            for context in contexts:
                context.run(x0=x)
            handles = (ctypes.c_void_p * len(contexts))(*(c._handle.value for c in contexts))

            def in_c(threads, count):
                assert loop(handles, threads, count) == 0

            def runs(context, count):
                for _ in range(count):
                    context.run({"x0": x})

            def in_python(threads, count):
                pool = [threading.Thread(target=runs, args=(c, count)) for c in contexts[:threads]]
                for t in pool:
                    t.start()
                for t in pool:
                    t.join()

            rows = []
            for function in (in_c, in_python):
                count = max(int(rates([(function, 1, 100)], 3)[0][0] * options.seconds), 1)
                rows += [(function, 1, count), (function, options.threads, count)]
            (c1, c1_us), (c, c_us), (p1, p1_us), (p, p_us) = rates(rows, options.repeats)
            held = max(p1_us - c1_us, 1e-3)
            print(f"{size:4}: C {c1:.0f}/s, {options.threads} threads {c:.0f}/s ({c / c1:.2f}x); "
                  f"Python {p1:.0f}/s, {options.threads} threads {p:.0f}/s ({p / p1:.2f}x)\n"
                  f"      processor time a run: C {c1_us:.1f} us, {options.threads} threads {c_us:.1f}; Python {p1_us:.1f}, {options.threads} "
                  f"threads {p_us:.1f}: the lock is held for at most {held:.1f} us, enough for {p1_us / held:.0f} threads", flush=True)


if __name__ == "__main__":
    main()
