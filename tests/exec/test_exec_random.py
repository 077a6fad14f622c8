#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random command lines of `sinter exec`, made from its own table of flags, with valid and damaged values, in random order.
Whatever is asked: no crash, each line has its form, the exit status agrees with the last line, each flag that does not just
work says why, a failure has an error, and files that were written parse."""
import json
import os
import random
import sys
import tempfile

from exec_rig import BUILD, MODEL, QUICK, flags, run

COUNT = int(os.environ.get("SINTER_TEST_COUNT", 400 if os.environ.get("SINTER_TEST_SCALE") == "full" else 60))
SEED = int(os.environ.get("SINTER_TEST_SEED", 1))
SHAPES = ["image:1x1x28x28", "image:2x1x28x28", "'image':4x1x28x28", "im*e:3x1x28x28", "image:8x1x28x28"]
BROKEN = ["", "-1", "x", "1,2", ":", "'", "a:b", "image:", "image:1x1x28x28,", "1e9", "%s%n", "\u00e9", "\x7f", "=", "--onnx", "0" * 300, "9" * 40, "*:*", "''", "1x1"]
# Nothing that takes long or leaves the test's folder.
NEVER = {"help", "flags", "version"}
FIXED = {"onnx": [MODEL], "warmUp": ["0", "5"], "duration": ["0", "0.01"], "iterations": ["0", "1", "3"], "idleTime": ["0", "1"], "sleepTime": ["0", "1"],
         "infStreams": ["1", "2", "3"], "streams": ["1", "2"], "builderOptimizationLevel": ["0", "1", "2"], "profile": ["0", "1"], "useProfile": ["0", "1"],
         "device": ["cpu", "0", "reference"], "inputIOFormats": ["fp32:chw", "fp16:hwc8", "fp32:chw4"], "outputIOFormats": ["fp32:chw", "fp16:chw"], "layerDeviceTypes": ["*:GPU"],
         "memPoolSize": ["workspace:1G", "workspace:64", "workspace:1B", "dlaSRAM:1M"], "workspace": ["64", "1"], "weightStreamingBudget": ["-2", "0"],
         "percentile": ["50", "90,99", "0,100"], "loadInputs": ["image:data", "image:none"], "loadRefOutputs": ["scores:data"], "avgRuns": ["1", "2"],
         "loadEngine": ["d.engine", "data"], "calib": ["data", "good.cache"], "refitFromOnnx": [MODEL], "saveEngine": ["saved.engine"],
         "timingCacheFile": ["cache"], "exportTimes": ["t.json"], "exportOutput": ["o.json"], "exportProfile": ["p.json"], "exportLayerInfo": ["l.json"]}
random.seed(SEED)
work = tempfile.mkdtemp()


def value_of(name, form):
    if name in FIXED:
        return random.choice(FIXED[name])
    if "NAME:1x3" in form:
        return random.choice(SHAPES)
    if "|" in form:
        return random.choice(form.split("|"))
    return random.choice(["1", "0", "2"])


def word_of(name, form, is_broken):
    if is_broken:
        return "--%s%s" % (name, random.choice(["", "=" + random.choice(BROKEN)]))
    return "--" + name + ("=" + value_of(name, form) if form else "")


def line_of(table):
    names = [name for name in table if name not in NEVER]
    words = [word for word in BUILD + QUICK if random.random() < 0.97]
    works = [name for name in names if table[name][2] == "works" and "--" + name not in [word.split("=")[0] for word in words]]
    for _ in range(random.randrange(6)):
        name = random.choice(works if random.random() < 0.8 else names)
        words.append(word_of(name, table[name][0], random.random() < 0.12))
    if random.random() < 0.05:
        words.append(random.choice(["stray", "--", "-", "-x", "--fp16x", "--=1", ""]))
    random.shuffle(words)
    return [word.replace("\0", "") for word in words]


def check(table, words, done):
    problem = done.problem()
    if problem:
        return problem
    if done.status == 0:
        for word in words:
            name = word.lstrip("-").split("=")[0]
            if table[name][2] != "works" and "--" + name not in done.out + done.err:
                return "nothing is said of " + word
    for name in os.listdir(work):
        if name.endswith(".json"):
            try:
                with open(os.path.join(work, name)) as file:
                    json.load(file)
            except ValueError as error:
                return "%s: %s" % (name, error)
            os.remove(os.path.join(work, name))
    return None


def main():
    table, _ = flags()
    failures = passed = 0
    with open(os.path.join(work, "data"), "wb") as file:
        file.write(bytes(784 * 4))
    with open(os.path.join(work, "good.cache"), "w") as file:
        file.write("TRT-8601-MinMaxCalibration\nimage: 3c010a14\n")
    run(*BUILD, "--saveEngine=d.engine", "--skipInference", cwd=work)
    for index in range(COUNT):
        words = line_of(table)
        done = run(*words, cwd=work)
        passed += done.status == 0
        problem = check(table, words, done)
        if problem:
            failures += 1
            print("FAIL %d of seed %d: %s\n  %s\n%s" % (index, SEED, problem[-1500:], words, done.err[-1500:]))
    print("%d command lines, %d of them passed, %d failures" % (COUNT, passed, failures))
    return 1 if failures or passed < COUNT // 5 else 0


sys.exit(main())
