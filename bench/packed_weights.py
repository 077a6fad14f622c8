#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times products with packed weights against the same products in f32, and against ONNX Runtime.

A model is a chain of square products (or K to N and back) with weights of their own, so that no cache holds them from run
to run. Each side is a process of its own; they take turns in bursts, pinned to the same cores. Times are medians of one
run over the number of products. Sides: sinter with packed weights, sinter with the weights in f32, ONNX Runtime's
MatMulNBits with accuracy_level 0 and 4, and its MatMul in f32. Floor: the bytes of the packed weights over the bandwidth
that a reading loop reaches here.

    bench/packed_weights.py --libsinter build/libsinter.so [--size 4096x4096] [--block 32] [--rows 1] [--threads 1]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

SIDES = {"sinter": "packed", "sinter f32": "plain", "ort level 0": "level0", "ort level 4": "level4", "ort f32": "plain"}


def make_models(folder, k, n, block, layers, with_zero, dtype=np.float32):
    """Models "packed", "plain", "level0" and "level4" in `folder`; returns the bytes of the packed weights."""
    import onnx
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
    r = np.random.default_rng(1)
    nodes = {"packed": [], "plain": [], "level0": [], "level4": []}
    inits = {name: [] for name in nodes}
    for i in range(layers):
        rows, cols = (k, n) if i % 2 == 0 else (n, k)
        blocks = rows // block
        q = r.integers(0, 256, (cols, blocks, block // 2), dtype=np.uint8)
        # Of both signs, and so large that a product leaves its input's size as it was: chains stay finite in f16.
        scale = (r.random(cols * blocks, dtype=np.float32) + 0.5) * (0.2 / rows**0.5)
        scale = (scale * r.choice(np.float32([-1, 1]), cols * blocks)).astype(dtype)
        codes = np.stack([q & 15, q >> 4], -1).reshape(cols, blocks, block).astype(np.float32)
        at = [f"x{i}", f"q{i}", f"s{i}"]
        packed = [nh.from_array(q, f"q{i}"), nh.from_array(scale, f"s{i}")]
        zeros = np.full((cols, blocks, 1), 8, np.float32)
        if with_zero:
            z = r.integers(0, 256, (cols, (blocks + 1) // 2), dtype=np.uint8)
            zeros = np.stack([z & 15, z >> 4], -1).reshape(cols, -1)[:, :blocks, None].astype(np.float32)
            packed.append(nh.from_array(z.reshape(-1), f"z{i}"))
            at.append(f"z{i}")
        w = ((codes - zeros) * scale.reshape(cols, blocks, 1)).reshape(cols, rows).T
        inits["plain"].append(nh.from_array(np.ascontiguousarray(w, dtype), f"w{i}"))
        nodes["plain"].append(h.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
        for name in ("packed", "level0", "level4"):
            inits[name] += packed
            nodes[name].append(h.make_node("MatMulNBits", at, [f"x{i + 1}"], domain="com.microsoft", K=rows, N=cols, bits=4,
                                           block_size=block, accuracy_level=4 if name == "level4" else 0))
    last, kind = k if layers % 2 == 0 else n, T.FLOAT16 if dtype == np.float16 else T.FLOAT
    for name in nodes:
        g = h.make_graph(nodes[name], name, [h.make_tensor_value_info("x0", kind, ["M", k])],
                         [h.make_tensor_value_info(f"x{layers}", kind, ["M", last])], inits[name])
        m = h.make_model(g, opset_imports=[h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)])
        m.ir_version = 10
        onnx.save(m, str(folder / f"{name}.onnx"), save_as_external_data=name == "plain", location=f"{name}.bin")
    return sum(t.ByteSize() for t in inits["packed"])


def side(name, path, rows, threads, library):
    """A process: says how large its weights are, then a line of times for each line that it reads."""
    r = np.random.default_rng(2)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    k = int(os.environ["PACKED_K"])
    x = r.standard_normal((rows, k), dtype=np.float32)
    if name.startswith("sinter"):
        from sinter_c import Library
        lib = Library(library)
        data = lib.build(path, {"x0": [rows, k]}, threads=threads)
        engine = lib.load(data, threads)
        context = engine.context(False)
        context.set_input("x0", x)
        run, output, size = context.run, lambda: next(iter(context.outputs())), len(data)
    else:
        import onnxruntime
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
        session = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        kept = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        binding.bind_ortvalue_input("x0", kept)
        binding.bind_output(session.get_outputs()[0].name, "cpu")
        run, output = lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]
        size = 0
    run()
    y = np.array(output(), copy=True).reshape(rows, -1)
    np.save(os.environ["PACKED_OUT"], y)
    print(json.dumps({"size": size}), flush=True)
    for line in sys.stdin:
        clock = time.process_time if os.environ["PACKED_CLOCK"] == "cpu" else time.perf_counter
        times, end = [], time.perf_counter() + float(line)
        run()
        while not times or time.perf_counter() < end:
            start = clock()
            run()
            times.append(clock() - start)
        print(json.dumps(times), flush=True)


def bandwidth(threads, cores, clock):
    """Bytes a second that `threads` processes read from memory together."""
    code = (f"import numpy as np,time,sys\na=np.ones(48<<20,np.float32)\nb=[]\nt=time.{clock}\n"
            "for i in range(7):\n s=t();a.max();b.append(a.nbytes/(t()-s))\n"
            "print(sorted(b)[3])")
    all_ = [subprocess.Popen(["taskset", "-c", str(cores[i]), sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
            for i in range(threads)]
    return sum(float(p.communicate()[0]) for p in all_)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--libsinter", required=True, help="libsinter.so")
    p.add_argument("--size", default="4096x4096", help="KxN")
    p.add_argument("--block", type=int, default=32)
    p.add_argument("--rows", default="1", help="rows of the activation, a list with commas")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--zero-points", action="store_true")
    p.add_argument("--turns", type=int, default=7)
    p.add_argument("--burst", type=float, default=0.4, help="seconds")
    p.add_argument("--clock", default="wall", choices=["wall", "cpu"],
                   help="cpu: processor time, for one thread on a machine that others use too")
    p.add_argument("--sides", default=",".join(SIDES))
    p.add_argument("--side", help=argparse.SUPPRESS)
    p.add_argument("--model", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.side:
        return side(a.side, a.model, int(a.rows), a.threads, a.libsinter)
    k, n = (int(v) for v in a.size.split("x"))
    cores = sorted(os.sched_getaffinity(0))[:a.threads]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        packed = make_models(folder, k, n, a.block, a.layers, a.zero_points) / a.layers
        speed = bandwidth(a.threads, cores, "process_time" if a.clock == "cpu" else "perf_counter")
        print(f"{k}x{n} blocks of {a.block}{' with zero points' if a.zero_points else ''}, {a.threads} threads, {a.layers} "
              f"products: {packed / 1e6:.2f} MB packed each, {speed / 1e9:.1f} GB/s read: floor {packed / speed * 1e6:.0f} us")
        for rows in (int(v) for v in a.rows.split(",")):
            measure(a, folder, rows, k, cores)


def measure(a, folder, rows, k, cores):
    names = a.sides.split(",")
    running, times, size = {}, {name: [] for name in names}, {}
    for name in names:
        env = dict(os.environ, PACKED_K=str(k), PACKED_OUT=str(folder / f"{name}.npy"), PACKED_CLOCK=a.clock)
        running[name] = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, cores)), sys.executable, __file__, "--libsinter", a.libsinter, "--side", name,
             "--model", str(folder / f"{SIDES[name]}.onnx"), "--rows", str(rows), "--threads", str(a.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        size[name] = json.loads(running[name].stdout.readline())["size"]
    for _ in range(a.turns):
        for name in names:
            running[name].stdin.write(f"{a.burst}\n")
            running[name].stdin.flush()
            times[name].append(statistics.median(json.loads(running[name].stdout.readline())))
    for proc in running.values():
        proc.stdin.close()
        proc.wait()
    first = statistics.median(times[names[0]])
    want = np.load(folder / f"{names[-1]}.npy")
    for name in names:
        got = statistics.median(times[name])
        off = np.abs(np.load(folder / f"{name}.npy") - want).max() / np.abs(want).max()
        print(f"  M={rows:<4d} {name:12s} {got / a.layers * 1e6:9.1f} us  {got / first:6.2f} times {names[0]}   "
              f"off by {off:.1e}" + (f"   engine {size[name] / 1e6:.1f} MB" if size[name] else ""), flush=True)


if __name__ == "__main__":
    main()
