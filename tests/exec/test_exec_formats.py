#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs and JSON files of `sinter exec`, read as tools for trtexec read them: keys and values of the log's blocks, the figures of
the summary, times, layers and outputs. Figures are computed again from the files, by trtexec's rules."""
import json
import math
import os
import re
import sys
import tempfile

from exec_rig import BUILD, SINTER, run

ENTRY = re.compile(r"\[\d+/\d+/\d+-\d+:\d+:\d+\] \[I\] ([^:]+?)(?: \(--\w+\))?: (.*)")
FIGURES = ["Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"]
TYPES = {"Float", "Half", "BFloat16", "Int8", "Int32", "Int64", "Bool", "FP8", "FP4"}
failures = []


def check(holds, *what):
    if not holds:
        failures.append(what)
        print("FAIL", *what)


def blocks(log):
    """title -> {key: value} of the blocks === title ===."""
    found, now = {}, None
    for line in log.splitlines():
        title = re.fullmatch(r"\[[^]]+\] \[I\] === (.*) ===", line)
        entry = ENTRY.fullmatch(line)
        if title:
            now = found.setdefault(title.group(1), {})
        elif entry and now is not None:
            now[entry.group(1)] = entry.group(2)
    return found


def figures(text):
    """key = value ms, ...: in their order."""
    return {key: float(value) for key, value in re.findall(r"([\w()%.]+) = ([0-9.e+-]+) ms", text)}


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-9)


def percentile(values, percent):
    return sorted(values)[max(len(values) - 1 - math.floor((1 - percent / 100) * len(values)), 0)]


def summary(log, times):
    found = blocks(log)
    for title in ("Model Options", "Build Options", "System Options", "Inference Options", "Reporting Options", "Device Information",
                  "Trace details", "Performance summary", "Profile (%d iterations )" % profile_count(log)):
        check(title in found, title, list(found))
    for title, keys in (("Model Options", "Format,Model,Output"), ("Device Information", "Selected Device,Device Global Memory"),
                        ("Build Options", "Precision,Refit,Sparsity,Save engine,Load engine,Memory Pools"),
                        ("Inference Options", "Batch,Iterations,Duration,Inference Streams,Spin-wait,Multithreading,CUDA Graph,Data transfers"),
                        ("Performance summary", "Throughput,Total Host Walltime,Total GPU Compute Time," + ",".join(FIGURES))):
        for key in keys.split(","):
            check(key in found.get(title, {}), title, key)
    shown = found["Performance summary"]
    check(re.fullmatch(r"[0-9.e+]+ qps", shown["Throughput"]) and float(shown["Throughput"].split()[0]) > 0, shown)
    check(close(float(shown["Total GPU Compute Time"].split()[0]), sum(t["computeMs"] for t in times) / 1e3), "total of the computation")
    lists = [[t["latencyMs"] for t in times], [t["endEnqMs"] - t["startEnqMs"] for t in times], [t["h2dMs"] for t in times],
             [t["computeMs"] for t in times], [t["d2hMs"] for t in times]]
    for label, values in zip(FIGURES, lists):
        got, ordered, half = figures(shown[label]), sorted(values), len(values) // 2
        want = {"min": ordered[0], "max": ordered[-1], "mean": sum(values) / len(values),
                "median": ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2}
        want.update({"percentile(%g%%)" % p: percentile(values, p) for p in (0, 50, 90, 99.5, 100)})
        check(list(got) == list(want), label, list(got))
        check(all(close(got[k], want[k]) for k in want if k in got), label, got, want)
    for line in ("Start parsing network model.", "Finished parsing network model. Parse time: ", "Engine built in ",
                 "Created engine with size: ", "Engine deserialized in "):
        check("[I] " + line in log, line)
    check(not re.search(r"\[F\]", log), "severities")


def profile_count(log):
    return int(re.search(r"=== Profile \((\d+) iterations \) ===", log).group(1))


def time_files(times, profile):
    for t in times:
        check(set(t) == {a + b + "Ms" for a in ("start", "end") for b in ("Enq", "H2d", "Compute", "D2h")} |
              {"h2dMs", "computeMs", "d2hMs", "latencyMs"}, sorted(t))
        check(t["startH2dMs"] <= t["endH2dMs"] <= t["startComputeMs"] <= t["endComputeMs"] <= t["startD2hMs"] <= t["endD2hMs"], t)
        check(close(t["latencyMs"], t["h2dMs"] + t["computeMs"] + t["d2hMs"]), t)
    check(list(profile[0]) == ["count"] and profile[0]["count"] > 0, profile[0])
    for step in profile[1:]:
        check(list(step) == ["name", "timeMs", "averageMs", "medianMs", "percentage"], step)
        check(close(step["averageMs"] * profile[0]["count"], step["timeMs"]), step)


def table(log, profile):
    """The table of the log: times, then the name; it has the file's rows, and their sum."""
    rows = re.findall(r"\[I\] +([0-9.e+-]+) +([0-9.e+-]+) +([0-9.e+-]+) +([0-9.e+-]+) +(\S.*)", log[log.index("=== Profile ("):])
    check([r[4] for r in rows] == [s["name"] for s in profile[1:]] + ["Total"], rows)
    check(re.search(r"\[I\] +Time\(ms\) +Avg\.\(ms\) +Median\(ms\) +Time\(%\) +Layer\n", log), "the table's head")
    check(abs(sum(float(r[3]) for r in rows[:-1]) - 100) < 0.5 * len(rows), rows)


def graph(layers, bindings, profile=None):
    """The layers' file: a graph in the order of its steps, and the names of the profile."""
    made, names = set(bindings), [layer["Name"] for layer in layers]
    check(len(set(names)) == len(names), "a name is given twice", names)
    check(profile is None or names == [s["name"] for s in profile[1:]], "names of layers and of the profile")
    for layer in layers:
        check({"Name", "LayerType", "Inputs", "Outputs", "TacticValue", "TacticName", "ParameterType", "StreamId", "Metadata"} <= set(layer), layer)
        check(re.fullmatch(r"0x[0-9a-f]{16}", layer["TacticValue"]), layer["TacticValue"])
        check(all(re.fullmatch(r"\[ONNX Layer: [^]\x1e]+\]", part) for part in re.split("[\x1e\x1f]", layer["Metadata"])), layer["Metadata"])
        for tensor in layer["Inputs"] + layer["Outputs"] + layer["Constants"]:
            check({"Name", "Location", "Dimensions", "Format/Datatype"} <= set(tensor), tensor)
            check(tensor["Location"] in ("Device", "Host") and tensor["Format/Datatype"].split()[-1] in TYPES, tensor)
            check(all(isinstance(d, int) for d in tensor["Dimensions"]), tensor)
        check(all(tensor["Name"] in made for tensor in layer["Inputs"]), "a tensor is read before it is made", layer)
        made.update(tensor["Name"] for tensor in layer["Outputs"])


def main():
    work = tempfile.mkdtemp()
    files = {flag: os.path.join(work, flag) for flag in ("exportTimes", "exportProfile", "exportLayerInfo", "exportOutput")}
    words = ["--%s=%s" % pair for pair in files.items()]
    done = run(*BUILD, "--iterations=25", "--duration=0", "--warmUp=1", "--percentile=0,50,90,99.5,100", "--profilingVerbosity=detailed",
               "--dumpProfile", *words, cwd=work)
    check(done.status == 0 and not done.problem(), done.problem(), done.err)
    times, profile, layers, outputs = (json.load(open(files[flag])) for flag in files)
    check(len(times) >= 25, len(times))
    summary(done.out, times)
    time_files(times, profile)
    table(done.out, profile)
    graph(layers["Layers"], layers["Bindings"], profile)
    check(layers["Bindings"] == ["image", "scores"] and list(layers) == ["Layers", "Bindings"], list(layers))
    check([list(o) for o in outputs] == [["name", "dimensions", "values"]] and len(outputs[0]["values"]) ==
          math.prod(map(int, outputs[0]["dimensions"].split("x"))), outputs)
    # Names without details are texts; those of further profiles say so.
    exponents = [line for line in done.out.splitlines() if re.search(r"\de[-+]\d+ (ms|s|qps)", line)]
    check(not exponents, exponents)
    done = run(*BUILD, "--skipInference", "--profile=0", "--optShapes=image:1x1x28x28", "--profile=1", "--optShapes=image:2x1x28x28",
               "--exportLayerInfo=" + files["exportLayerInfo"], cwd=work)
    check(done.status == 0, done.err)
    layers = json.load(open(files["exportLayerInfo"]))
    names = layers["Layers"]
    check(all(isinstance(n, str) for n in names) and len(names) % 2 == 0, names)
    half = len(names) // 2
    check([n + " [profile 1]" for n in names[:half]] == names[half:], names)
    check(layers["Bindings"] == ["image", "scores", "image [profile 1]", "scores [profile 1]"], layers["Bindings"])
    done = run(*BUILD, "--skipInference", "--profile=0", "--optShapes=image:1x1x28x28", "--profile=1", "--optShapes=image:2x1x28x28",
               "--profilingVerbosity=detailed", "--exportLayerInfo=" + files["exportLayerInfo"], cwd=work)
    made = [t["Name"] for layer in json.load(open(files["exportLayerInfo"]))["Layers"] for t in layer["Outputs"]]
    check([n + " [profile 1]" for n in made[:len(made) // 2]] == made[len(made) // 2:], made)
    # The command as a tool calls it, by its other name: first and last line.
    os.symlink(SINTER, os.path.join(work, "trtexec"))
    done = run(*BUILD, "--skipInference", name=os.path.join(work, "trtexec"), cwd=work)
    lines = done.out.splitlines()
    for line, state in ((lines[0], "RUNNING"), (lines[-1], "PASSED")):
        check(re.fullmatch(r"&&&& %s TensorRT\.trtexec \[TensorRT v\d{6}\] \[\S.*\] # \S*trtexec --onnx=.*" % state, line), line)
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
