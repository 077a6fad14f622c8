#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of decoders with their past kept as state, by the type of the weights, against the bandwidth of memory.

Each model is a folder with model.onnx that takes past_key_values.* and gives present.*, with dims N, S, P and T = P + S.
Its constant products are written anew with weights of 8 bits (a scale a column) or 4 bits (blocks of 32), or built with
--allow bf16. A run decodes one token with a full past of --past rows. Floor: the bytes of the products' weights and of
the past, over the bandwidth that a reading loop reaches here; share: the floor over the least time of a run.

    bench/decode.py --sinter build/sinter [--threads 1] [--past 128] ../shared/zoo/gpt2 ../shared/zoo/llama"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile

import numpy as np

KINDS = ("f32", "bf16", "int8", "int4")
BLOCK = 32


def constant_products(model):
    """(node, is a Gemm, W as [K, N]) of each product by a constant matrix."""
    from onnx import helper as h, numpy_helper as nh
    inits = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in inits or len(inits[node.input[1]].dims) != 2:
            continue
        attrs = {a.name: h.get_attribute_value(a) for a in node.attribute}
        if attrs.get("transA") or attrs.get("alpha", 1.0) != 1.0 or attrs.get("beta", 1.0) != 1.0:
            continue
        w = nh.to_array(inits[node.input[1]])
        yield node, node.op_type == "Gemm", w.T if attrs.get("transB") else w


def quantize(model, bits):
    """Writes the products with weights of so many bits. Returns the bytes of these weights and their scales."""
    from onnx import helper as h, numpy_helper as nh
    size, new, fresh = 0, {}, []
    for i, (node, is_gemm, w) in enumerate(constant_products(model)):
        k, n = w.shape
        out = f"{node.output[0]}_product" if is_gemm and len(node.input) > 2 else node.output[0]
        if bits == 8 or k % BLOCK:
            scale = np.maximum(np.abs(w).max(0), 1e-30).astype(np.float32) / 127
            q = np.rint(w / scale).astype(np.int8)
            size += q.nbytes + scale.nbytes
            fresh += [nh.from_array(q, f"q{i}"), nh.from_array(scale, f"s{i}")]
            made = [h.make_node("DequantizeLinear", [f"q{i}", f"s{i}"], [f"w{i}"], axis=1),
                    h.make_node("MatMul", [node.input[0], f"w{i}"], [out])]
        else:
            blocks = w.T.reshape(n, k // BLOCK, BLOCK)
            scale = np.maximum(np.abs(blocks).max(2), 1e-30).astype(np.float32) / 7
            q = (np.rint(blocks / scale[:, :, None]) + 8).astype(np.uint8)
            packed = q[:, :, 0::2] | q[:, :, 1::2] << 4
            size += packed.nbytes + scale.nbytes
            fresh += [nh.from_array(packed, f"q{i}"), nh.from_array(scale.reshape(-1), f"s{i}")]
            made = [h.make_node("MatMulNBits", [node.input[0], f"q{i}", f"s{i}"], [out], domain="com.microsoft", K=k, N=n,
                                bits=4, block_size=BLOCK)]
        if out != node.output[0]:
            made.append(h.make_node("Add", [out, node.input[2]], [node.output[0]]))
        new[node.output[0]] = made
    nodes = [m for node in model.graph.node for m in new.get(node.output[0], [node])]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [t for t in model.graph.initializer if t.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept + fresh)
    if bits == 4:
        model.opset_import.append(h.make_opsetid("com.microsoft", 1))
    return size


def past_bytes(model, past):
    """f32 keys and values of so many rows."""
    size = 0
    for value in model.graph.input:
        if value.name.startswith("past_key_values"):
            dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            size += 4 * past * int(np.prod(dims))
    return size


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    return done.stdout


def busy(bench, runs):
    """Seconds of processor time of a run: what so many more of them take."""
    spent = []
    for count in (2, 2 + runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(bench + ["--warmup", "0", "--duration", "0.001", "--iterations", str(count)])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (spent[1] - spent[0]) / runs


def measure(a, folder, kind, work, cores):
    """Seconds of a run at least and in the middle, and the bytes it reads."""
    import onnx
    model = onnx.load(str(folder / "model.onnx"))
    path, width = folder / "model.onnx", {"f32": 4, "bf16": 2}.get(kind)
    if width:
        size = sum(w.size for _, _, w in constant_products(model)) * width
    else:
        size = quantize(model, int(kind[3:]))
        path = work / "model.onnx"
        onnx.save(model, str(path), save_as_external_data=True, location="weights.bin")
    engine = work / "engine"
    run([a.sinter, "build", str(path), "-o", str(engine), "--state", "past_key_values.*=present.*", "--equal", "T=P+S",
         "--capacity", str(a.past), "--profile", "N=1,1,1", "--profile", "S=1,1,1", "--threads", str(a.threads)] +
        (["--allow", "bf16"] if kind == "bf16" else []))
    bench = ["taskset", "-c", ",".join(map(str, cores)), a.sinter, "bench", str(engine), "--threads", str(a.threads)]
    if a.clock == "cpu":
        least = median = min(busy(bench, a.runs) for _ in range(3))
    else:
        told = json.loads(run(bench + ["--duration", str(a.duration), "--json"]))
        least, median = told["min_ms"] * 1e-3, told["median_ms"] * 1e-3
    for file in work.iterdir():
        file.unlink()
    return least, median, size + past_bytes(model, a.past)


def main():
    from packed_weights import bandwidth
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", type=pathlib.Path)
    p.add_argument("--sinter", default=str(pathlib.Path(__file__).resolve().parent.parent / "build" / "sinter"))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--past", type=int, default=128, help="rows of the past")
    p.add_argument("--duration", type=float, default=2.0, help="seconds of runs")
    p.add_argument("--clock", default="wall", choices=["wall", "cpu"],
                   help="cpu: processor time, for one thread on a machine that others use too")
    p.add_argument("--runs", type=int, default=200, help="with --clock cpu: runs that are timed together")
    p.add_argument("--only", default=",".join(KINDS), help="of f32, bf16, int8 and int4")
    a = p.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:a.threads]
    print("| model | weights | MB a token | GB/s read | floor ms | least ms | median ms | tokens/s | share |")
    print("|---|---|---|---|---|---|---|---|---|")
    for folder in a.models:
        for kind in a.only.split(","):
            with tempfile.TemporaryDirectory() as work:
                least, median, size = measure(a, folder, kind, pathlib.Path(work), cores)
            speed = bandwidth(a.threads, cores, "process_time")
            print(f"| {folder.name} | {kind} | {size / 1e6:.0f} | {speed / 1e9:.1f} | {size / speed * 1e3:.2f} | "
                  f"{least * 1e3:.2f} | {median * 1e3:.2f} | {1 / median:.1f} | {size / speed / least:.2f} |", flush=True)


if __name__ == "__main__":
    main()
