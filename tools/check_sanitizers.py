#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whole networks under compute-sanitizer's tools and prints a table: network, type, and the findings of each tool.

Each network is a folder for `sinter test` (model.onnx and its data). A first run without a tool fills the kernel cache
and the timing cache. Its verdict: ok; ran (outputs differ by more than the network's own tolerance, as they may in a
narrow type, whose budget of errors is lifted here); fails. Logs go to --logs. Exit status 0: no finding, and no run
without an end; 1: findings; 77: no compute-sanitizer. Runs that --seconds left no time for are shown as '-' and counted,
and so are those in which the tool had no memory for some launches ('untracked'): a run may need 10 GB of the GPU, so
fewer --jobs help."""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import time

SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warning")
# By default synccheck follows 8192 barriers of shared memory, fewer than a product over all multiprocessors has.
OPTIONS = {"synccheck": ["--num-cuda-barriers", "16384"]}
ALLOW = {"f32": [], **{kind: ["--allow", kind, "--budget", "1000"] for kind in ("fp16", "bf16", "int8")}}


def run(command, log, seconds):
    """Runs the command into a log file; gives its exit status, or None if it did not end in time."""
    with open(log, "w") as out:
        try:
            return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            return None


def tool_verdict(log):
    """What a tool's last summary line says."""
    text = log.read_text(errors="replace")
    found = SUMMARY.findall(text)
    if not found:
        return "no summary"
    if "didn't track the launch" in text:
        return "untracked"
    count = max(int(f[0] or 0) + int(f[1] or 0) + int(f[2] or 0) for f in found)
    return f"{count} findings" if count else "ok"


def plain_verdict(status, log):
    fails = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAIL", "error"))]
    if status == 0:
        return "ok"
    return "ran" if fails and all("values differ" in line for line in fails) else "fails"


def check(number, network, kind, args, end):
    """One row of the table: {"plain" or tool: text}. Row `number` says which of the GPUs it uses."""
    row = {}
    device = f"cuda:{number % args.gpus}"
    command = [args.sinter, "test", str(network), "--device", device, "--tune", "off", *ALLOW[kind],
               "--timing-cache", str(args.logs / f"{network.name}.{kind}.timings")]
    for tool in ["plain", *args.tools]:
        left = min(args.limit, end - time.monotonic())
        if left < 10:
            row[tool] = "-"
            continue
        log = args.logs / f"{network.name}.{kind}.{tool}.log"
        under = [] if tool == "plain" else ["compute-sanitizer", "--tool", tool, "--print-limit", "20", *OPTIONS.get(tool, [])]
        status = run(under + command, log, left)
        if status is None:
            row[tool] = "no end" if left == args.limit else "-"
        elif tool == "plain":
            row[tool] = plain_verdict(status, log)
        else:
            row[tool] = tool_verdict(log)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, nargs="+", help="networks, or folders of networks")
    parser.add_argument("--sinter", default="build/sinter")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--tools", type=lambda s: s.split(","), default=["memcheck", "racecheck", "initcheck", "synccheck"])
    parser.add_argument("--types", type=lambda s: s.split(","), default=["f32", "fp16", "int8"])
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    parser.add_argument("--seconds", type=float, default=1e9, help="seconds for all runs")
    parser.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("build/gpu/sanitizers"))
    args = parser.parse_args()
    if not shutil.which("compute-sanitizer"):
        print("no compute-sanitizer")
        return 77
    args.logs.mkdir(parents=True, exist_ok=True)
    networks = sorted({m.parent for f in args.folder for m in [f / "model.onnx", *f.glob("*/model.onnx")] if m.is_file()})
    if not networks:
        print("no network: a network is a folder with model.onnx")
        return 1

    end = time.monotonic() + args.seconds
    jobs = [(n, k) for k in args.types for n in networks]
    print(f"{'network':28} {'type':5} " + " ".join(f"{t:>12}" for t in ["plain", *args.tools]), flush=True)
    clean = findings = missing = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (network, kind), row in zip(jobs, pool.map(lambda at: check(at, *jobs[at], args, end), range(len(jobs)))):
            print(f"{network.name:28} {kind:5} " + " ".join(f"{row[t]:>12}" for t in ["plain", *args.tools]), flush=True)
            for tool in args.tools:
                clean += row[tool] == "ok"
                missing += row[tool] in ("-", "untracked")
                findings += row[tool] not in ("ok", "-", "untracked")
    print(f"summary: {clean} runs without a finding, {findings} with one, {missing} not made for want of time or memory")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
