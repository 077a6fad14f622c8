#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole text of runs of `sinter exec`, with times and figures replaced, is that of tests/exec/*.txt. --bless writes them."""
import difflib
import os
import re
import sys
import tempfile

from exec_rig import MODEL, SOURCE, run

CASES = {
    "build": ["--onnx=digits.onnx", "--saveEngine=d.engine", "--builderOptimizationLevel=0", "--minShapes=image:1x1x28x28", "--optShapes=image:2x1x28x28",
              "--maxShapes=image:4x1x28x28", "--profilingVerbosity=detailed", "--dumpLayerInfo", "--skipInference", "--fp16", "--avgTiming=4"],
    "run": ["--loadEngine=d.engine", "--shapes=image:1x1x28x28", "--iterations=20", "--duration=0", "--warmUp=0", "--dumpProfile", "--dumpOutput", "--useCudaGraph"],
    "refused": ["--onnx=digits.onnx", "--useDLACore=0", "--safe", "--batch=2"],
}


def plain(text):
    """Numbers of measurements, of the machine and of the version become #."""
    text = re.sub(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]", "[TIME]", text)
    text = re.sub(r"\[sinter [0-9.]+\]", "[sinter #]", text)
    text = re.sub(r"(Selected Device|CPUs|Device Global Memory|sinter version): .*", r"\1: #", text)
    text = re.sub(r"(Tactic(?:Name|Value)?: )[^,\n]*,", r"\1#,", text)
    text = re.sub(r"# \S*sinter exec", "# sinter exec", text)
    text = re.sub(r"(Name: [^,]*, .*Problem: )(\w+):.*", r"\1\2", text)
    kept = []
    for line in text.splitlines():
        if not re.search(r"Options|Duration|Shapes|: (Enabled|Disabled)|Level|Profile Index|shapes|&&&&|binding for|percentiles|Percentiles", line):
            line = re.sub(r"(?<![\w#])[+-]?\d+(\.\d+)?(e[+-]?\d+)?(?![\w%])", "#", line)
        kept.append(re.sub(r" +", " ", re.sub(r"= [0-9.e+-]+ ms", "= # ms", line)))
    return [line for line in kept if "* GPU compute time is unstable" not in line and "If not already in use, locking" not in line]


def main():
    failures = 0
    os.environ["SINTER_ISA"] = "plain"      # steps and kernels of one level
    with tempfile.TemporaryDirectory() as work:
        os.symlink(MODEL, os.path.join(work, "digits.onnx"))
        for name, words in CASES.items():
            done = run(*words, cwd=work)
            got = ["stdout:"] + plain(done.out) + ["stderr:"] + plain(done.err)
            path = os.path.join(SOURCE, "tests/exec", name + ".txt")
            if "--bless" in sys.argv:
                with open(path, "w") as file:
                    file.write("\n".join(got) + "\n")
                continue
            with open(path) as file:
                want = file.read().splitlines()
            if got != want:
                failures += 1
                print("FAIL", name, "(python3 tests/exec/test_exec_golden.py --bless writes what is right now)")
                print("\n".join(difflib.unified_diff(want, got, path, "now", lineterm="")))
    return 1 if failures else 0


sys.exit(main())
