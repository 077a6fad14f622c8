#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times of PyTorch models: eager, inductor and sinter, each in a process of its own, in turns.

    PYTHONPATH=python python3 bench/torch_compile.py [MODEL...] [--device cuda] [--threads 1,2] [--dtype float16]
                                                     [--budget SECONDS] [--ways eager,inductor,sinter] [--markdown FILE]

Each process compiles the model, compares its outputs with eager's (rms of the difference over rms of the output), and runs when it
is told to; the runs of the ways take turns, so that a slow moment of the machine meets all of them. Printed are medians."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python" / "torch")]


def rms_difference(a, b):
    import torch
    a, b = (v if isinstance(v, torch.Tensor) else list(v.values())[0] for v in (a, b))
    return float((a.double() - b.double()).norm() / a.double().norm().clamp_min(1e-30))


def worker(options):
    """Compiles, then answers each line of stdin with the seconds of one round of runs."""
    import torch
    from models import MODELS
    torch.set_num_threads(options.threads_now)
    torch.manual_seed(0)
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    model, inputs = MODELS[options.models[0]](options.batch)
    model, inputs = model.to(device), tuple(x.to(device) for x in inputs)
    if dtype != torch.float32:
        model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    way, about = options.ways, {}
    with torch.inference_mode(False), torch.no_grad():
        begin = time.perf_counter()
        if way == "eager":
            function = model
        elif way == "inductor":
            function = torch.compile(model)
        elif way == "sinter":
            import sinter.torch                                     # noqa: F401
            function = torch.compile(model, backend="sinter", options=json.loads(options.options))
        else:
            raise SystemExit(f"there is no way '{way}'")
        found = function(*inputs)
        about["compile"] = time.perf_counter() - begin
        about["difference"] = rms_difference(model(*inputs), found)
        if way == "sinter":
            from sinter.torch._backend import compiled
            about["engines"] = sum(len(c.partitions) for c in compiled)
            about["fallback"] = sorted({f"{n}: {r}" for c in compiled for n, r in c.report.fallback.values()})
        wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        for _ in range(3):
            function(*inputs)
        wait()
        print(json.dumps(about), flush=True)
        for line in sys.stdin:
            count = int(line)
            begin = time.perf_counter()
            for _ in range(count):
                function(*inputs)
            wait()
            print((time.perf_counter() - begin) / count, flush=True)


class Way:
    def __init__(self, name, model, threads, options):
        self.name, self.times = name, []
        self.process = subprocess.Popen(
            [sys.executable, __file__, model, "--ways", name, "--device", options.device, "--dtype", options.dtype, "--batch",
             str(options.batch), "--options", options.options, "--threads-now", str(threads)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if not options.verbose else None, text=True)
        self.about = {}

    def read(self):
        line = ""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"{self.name} ended with {self.process.wait()}; --verbose shows why")
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                pass                                                # what a library prints

    def run(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.read())

    def end(self):
        self.process.kill()
        self.process.wait()


def measure(model, threads, options):
    """way -> (median seconds of a run, what it said of itself), None where a way failed."""
    ways, found = [], {}
    for name in options.ways.split(","):
        way = Way(name, model, threads, options)
        try:
            way.about = way.read()                                  # one compiles at a time
            ways.append(way)
        except RuntimeError as e:
            print(f"  {model}: {e}", flush=True)
            way.end()
            found[name] = None
    try:
        counts = {w.name: max(1, int(options.round / max(w.run(1), 1e-6))) for w in ways}
        for _ in range(options.rounds):
            for way in ways:
                way.times.append(way.run(counts[way.name]))
    finally:
        for way in ways:
            way.end()
    for way in ways:
        found[way.name] = (statistics.median(way.times), way.about)
    return {name: found[name] for name in options.ways.split(",")}


def row_of(model, threads, found):
    cells, eager = [model, str(threads)], found.get("eager")
    for name, value in found.items():
        if value is None:
            cells.append("failed")
            continue
        text = f"{value[0] * 1e3:.3f}"
        if eager and name != "eager":
            text += f" ({eager[0] / value[0]:.2f}x)"
        cells.append(text)
    about = (found.get("sinter") or (0, {}))[1]
    cells += [f"{about['difference']:.1e}", f"{about['compile']:.1f}", str(about["engines"])] if about else ["", "", ""]
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--ways", default="eager,inductor,sinter")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--round", type=float, default=0.25, help="seconds of a round")
    parser.add_argument("--budget", type=float, default=3600, help="seconds after which no further model begins")
    parser.add_argument("--options", default="{}", help="options of the backend, as JSON")
    parser.add_argument("--markdown", help="a file for the table")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--threads-now", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads_now:
        worker(options)
        return
    from models import MODELS
    begin, lines = time.time(), []
    head = ["model", "threads"] + [f"{w}, ms" for w in options.ways.split(",")] + ["difference", "compile, s", "engines"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    print(lines[0], flush=True)
    for model in options.models or MODELS:
        for threads in options.threads.split(","):
            if time.time() - begin > options.budget:
                print(f"  {model} {threads}: no time left", flush=True)
                continue
            found = measure(model, int(threads), options)
            lines.append("| " + " | ".join(row_of(model, threads, found)) + " |")
            print(lines[-1], flush=True)
            if options.verbose and found.get("sinter"):
                print("  " + "\n  ".join(found["sinter"][1]["fallback"]), flush=True)
    if options.markdown:
        pathlib.Path(options.markdown).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
