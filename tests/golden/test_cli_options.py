#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option of every verb with every kind of malformed value: exit status 2 and the option's name, before any file is opened.

The options are those of docs/options.md, as the command prints it. The model does not exist, so a value that is taken ends
with status 1."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

SINTER = os.environ["SINTER_BIN"]
HUGE = "99999999999999999999999"
SHAPE = ["x", "=1", "x=x1", "x=1x", "x=1xx2", "x=-1", "x=+1", "x=1.5", "x= 1", "x=1 ", "x=a", "x=" + "x".join(["1"] * 99), "x=" + HUGE]
# The form of a value as the table has it: values that are malformed, one that is fine.
FORMS = {
    "N": (["", "-1", "+1", "1.5", "1e3", "0x10", " 1", "1 ", "1x", "two", "1,2", HUGE], "7"),
    "R": (["", "-1", "+1", "nan", "inf", "-0.1", "1e999", "1x", " 1", "1 ", "0x1", "1,5", ".", "e5", "two"], "0.5"),
    "FILE": ([""], "f"),
    "FILE.npz": ([""], "f.npz"),
    "DIR": ([""], "d"),
    "CACHE": ([""], "f"),
    "MODEL": ([""], "f"),
    "OUT": ([""], "f"),
    "OP,OP": ([""], "Conv,Gemm"),
    "REGEX": ([""], "x.*"),
    "fp32": (["", "fp16", "bf16"], "fp32"),
    "P": (["", "-1", "101", "nan", "x"], "99.9"),
    "Q": (["", "-1", "1.5", "nan", "x"], "0.5"),
    "C": (["", "-1", "1.5", "nan", "x"], "0.5"),
    "LIB": ([""], "no_such_library.so"),
    "NAME": ([""], "import"),
    "NAME=FILE": (["", "x", "=f", "x=", "="], "x=f"),
    "INPUT=OUTPUT": (["", "x", "=f", "x=", "="], "x=f"),
    "NAME=EXPRESSION": (["", "x", "=f", "x=", "="], "x=f"),
    "NAME=1x3x224x224": (["", *SHAPE, "x=1,2,3", "x=1,"], "x=1x2"),
    "NAME:1,3,224,224": (["", "x", ":1", "x:-1", "x:1,", "x:,1", "x:1.5", "x:a", "x: 1", "x:1,,2", "x:" + ",".join(["1"] * 99), "x:" + HUGE], "x:1,2"),
    "NAME=MIN,OPT,MAX": (["", *SHAPE, "x=", "x=1", "x=1,2", "x=1,2,", "x=1,2,3,4", "x=2,1,3", "x=1,3,2", "x=1x2,1,1", "x=,1,2", "x=1,,2"], "x=1,2,3"),
    "NAME=N": (["", "memory_max", "=1", "memory_max=", "x=1", "memory_max=-1", "memory_max=+1", "memory_max=1x", "memory_max= 1", "memory_max=1",
                "nodes_max=0", "nodes_max=" + HUGE, "depth_max=65", "memory_max=two"], "memory_max=1000000"),
    "fp16,bf16,tf32,int8": (["", "fp17", "fp16,", ",fp16", "fp16,,int8", "fp16 int8", "FP16"], "fp16,int8"),
    "error|warning|info|verbose": (["", "debug", "Error", "error|info", "error,info"], "info"),
    "P,P": (["", "101", "50,", ",50", "50,,90", "-1", "nan", "x", "1e1"], "50,99.9"),
    "-NAME,-NAME": (["", "-", ",", "-a,", ",-a", "-a,,-b", "-a,-"], "-add-zero"),
    "cpu|reference|cuda[:N|:sm_XX]": (["", "cpus", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999", "cuda:sm_", "cuda:sm_9",
                                       "cuda:sm_9x", "cuda:sm_90ab", "cuda0", "reference:1"], "cpu"),
}
FORMS["S"] = FORMS["R"]
for name in "RAQC":
    FORMS[f"[NAME:]{name}"] = (FORMS["R"][0] + [":1", "x:", "x:y", "x:-1", "x:1:", "x: 1"], "x:y:0.5")
FORMS["SIDE"] = FORMS["CMD"] = FORMS["REGEX"] = ([""], "false")
FORMS["[NAME:]DB"] = FORMS["[NAME:]R"]
MAY_BE_EMPTY = {"kernel-cache"}
VERBS = {"debug": ["reduce", "no/such.onnx", "-o", "no/such/out"], "compare": ["no/such.onnx", "no/such.onnx"], "report": ["no/such.onnx", "-o", "no/such/out"], "build": ["no/such.onnx", "-o", "no/such/out"], "run": ["no/such.onnx"], "bench": ["no/such.onnx", "--roofline"], "inspect": ["no/such.onnx"],
         "test": ["no/such/folder"], "refit": ["no/such.sinter", "--strip", "-o", "no/such/out"],
         "calibrate": ["no/such.onnx", "--data", "x=no/such.npy", "-o", "no/such/out"],
         "quantize": ["no/such.onnx", "--data", "x=no/such.npy", "-o", "no/such/out"],
         "simplify": ["no/such.onnx", "-o", "no/such/out"], "ops": [], "doctor": [], "plugin": ["list", "no/such.so"]}

NEEDS_NO_FILE = {"ops", "doctor"}
WORK = tempfile.mkdtemp()
wanted = []                 # command lines, with the status and what stderr must hold


def wants(status, named, verb, *words):
    wanted.append((status, named, [SINTER, verb, *VERBS[verb], *words]))


def is_met(want):
    status, named, command = want
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=WORK)
    if done.returncode == status and named in done.stderr:
        return True
    print("FAIL", command, "status", done.returncode, "wanted", status, "and", named, done.stderr)
    return False


def rows():
    page = subprocess.run([SINTER, "doctor", "--markdown"], capture_output=True, text=True, check=True).stdout
    for name, value, verbs in re.findall(r"^\| `--([a-z-]+)((?: (?:[^`])+)?)` \| ([a-z, ]+) \|", page, re.M):
        yield name, value.strip().replace("\\|", "|"), verbs.split(", ")


def one(name, form, verb):
    option = "--" + name
    wants(2, option, verb, option + "x")
    wants(2, option[:-1], verb, option[:-1] + "_")
    if not form:
        for value in ("=", "=1", "=yes"):
            wants(2, option, verb, option + value)
        return
    if form in FORMS:
        bad, good = FORMS[form]
    elif re.fullmatch(r"[a-z0-9_]+(\|[a-z0-9_]+)+", form):
        bad, good = ["", "zzz", form, form.split("|")[0].upper(), form.split("|")[0] + " "], form.split("|")[-1]
    else:
        print("FAIL", option, "has a value of a form unknown to this test:", form)
        sys.exit(1)
    wants(2, option, verb, option)
    wants(2, option, verb, option, "--json")
    for value in bad:
        if value == "" and name in MAY_BE_EMPTY:
            continue
        wants(2, option, verb, option, value)
        wants(2, option, verb, option + "=" + value)
    wants(0 if verb in NEEDS_NO_FILE else 1, "", verb, option, good)
    wants(0 if verb in NEEDS_NO_FILE else 1, "", verb, option + "=" + good)


# The short form, for sanitizers, with which a start takes forty times as long: one verb for each option.
is_short = os.environ.get("SINTER_TEST_SCALE") == "third"
found = 0
for name, form, verbs in rows():
    found += 1
    for place, verb in enumerate(verbs):
        if not is_short or place == found % len(verbs):
            one(name, form, verb)
for verb in VERBS:
    wants(2, "--", verb, "-z")
    wants(2, "many files" if verb != "test" else "--zzz", verb, *(["a", "b"] if verb != "test" else ["--zzz"]))
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    failures = sum(not met for met in pool.map(is_met, wanted))
if found < 30:
    print("FAIL only", found, "options were found")
    failures += 1
print(f"{found} options, {len(wanted)} command lines, {failures} failed")
sys.exit(1 if failures else 0)
