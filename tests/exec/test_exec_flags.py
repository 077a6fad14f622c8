#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every flag of `sinter exec`: what the table says of it is what happens. A flag that works shows an effect, named here; one
that changes nothing warns; one that is refused fails; and a malformed value of any is an error that names the flag."""
import json
import os
import re
import struct
import sys
import tempfile

from exec_rig import BUILD, MODEL, QUICK, SINTER, flags, run

failures = []
work = tempfile.mkdtemp()
ENGINE = work + "/d.engine"
RANGE = ["--minShapes=image:1x1x28x28", "--optShapes=image:2x1x28x28", "--maxShapes=image:4x1x28x28"]


def path(name):
    return os.path.join(work, name)


def check(holds, *what):
    if not holds:
        failures.append(what)
        print("FAIL", *(text if len(str(text)) < 2000 else str(text)[-2000:] for text in what))


def good(*words):
    done = run(*words, cwd=work)
    problem = done.problem() or (None if done.status == 0 else "it failed")
    check(not problem, problem, words, done.err)
    return done


def bad(text, *words):
    done = run(*words, cwd=work)
    problem = done.problem() or (None if done.status == 1 else "it did not fail")
    check(not problem and text in done.err, problem, "wants", repr(text), words, done.err)


# ---- effects ----

def says(text, *words):
    """The flag's effect is a line of the log."""
    def test(flag):
        out = good(*(word if word != "FLAG" else flag for word in words))
        check(text in out.out or text in out.err, flag, "does not say", repr(text))
    return test


def option(text):
    return says(text, *BUILD, "--skipInference", "FLAG")


def runs(text):
    return says(text, *BUILD, *QUICK, "FLAG")


def loaded(text):
    return says(text, "--loadEngine=" + ENGINE, *QUICK, "FLAG")


def exports(test_file):
    def test(flag):
        good(*BUILD, *QUICK, flag)
        check(test_file(json.load(open(flag.split("=", 1)[1]))), flag)
    return test


def has_profile(text):
    return says(text, *BUILD, *RANGE, "--skipInference", "--dumpOptimizationProfile")


def profile_block(flag):
    out = good(*BUILD, *RANGE, flag, *(word.replace("4x1", "8x1") for word in RANGE), "--skipInference", "--dumpOptimizationProfile").out
    check("Optimization Profile 1:" in out and "max = 8x1x28x28" in out, flag)


def raw(flag):
    good(*BUILD, *QUICK, flag)
    check(os.path.getsize(path("image.input.1.1.28.28.Float.raw")) == 4 * 784, flag)
    check(os.path.getsize(path("scores.output.1.10.Float.raw")) == 40, flag)


def strips(flag):
    good(*BUILD, "--saveEngine=" + path("stripped"), "--skipInference", flag)
    check(os.path.getsize(path("stripped")) < os.path.getsize(ENGINE) // 2, flag)
    bad("weights", "--loadEngine=" + path("stripped"), *QUICK)
    good("--loadEngine=" + path("stripped"), "--refitFromOnnx=" + MODEL, *QUICK)


def saves(flag):
    good(*BUILD, "--skipInference", flag)
    good("--loadEngine=" + flag.split("=", 1)[1], *QUICK)


def times(count, done, key="exportTimes"):
    return len(json.load(open(done))) >= count


def queries(count, *words):
    def test(flag):
        out = good(*BUILD, "--warmUp=0", *words, flag, "--exportTimes=" + path("t")).out
        check(len(json.load(open(path("t")))) >= count, flag, out)
    return test


def refused_value(text, *words):
    def test(flag):
        good(*BUILD, "--skipInference", flag)
        bad(text, *BUILD, "--skipInference", *words)
    return test


def workspace(flag):
    name = flag.split("=")[0]
    tactics = []
    for value in (flag, name + ("=workspace:1B" if name == "--memPoolSize" else "=0.00001")):
        good(*BUILD, "--skipInference", value, "--profilingVerbosity=detailed", "--exportLayerInfo=" + path("l"))
        tactics.append([layer["TacticValue"] for layer in json.load(open(path("l")))["Layers"]])
    check(tactics[0] != tactics[1], flag, "kernels with scratch memory serve without it")


def timing_cache(flag):
    good("--onnx=" + MODEL, "--builderOptimizationLevel=2", "--skipInference", flag)
    check(os.path.getsize(flag.split("=", 1)[1]) > 100, flag)
    good("--onnx=" + MODEL, "--builderOptimizationLevel=2", "--skipInference", flag, "--errorOnTimingCacheMiss")


def cache_miss(flag):
    bad("", "--onnx=" + MODEL, "--builderOptimizationLevel=2", "--skipInference", flag, "--timingCacheFile=" + path("no_cache"))


def calib(flag):
    with open(path("good.cache"), "w") as file:
        file.write("TRT-101600-EntropyCalibration2\npool1: 3d0efe3c\nscores: 3c010a14\n")
    out = good(*BUILD, "--skipInference", "--int8", "--calib=" + path("good.cache"))
    # On kernels for a GPU 8 bits are faster, and the convolution's range is in the cache.
    emulated = os.path.join(os.path.dirname(os.environ["SINTER_BIN"]), "tests", "libsinter_emulated_cuda.so")
    gpu = {"SINTER_LIBCUDA": emulated, "SINTER_LIBNVRTC": emulated, "SINTER_KERNEL_CACHE": "", "SINTER_FAKE_SM": "90",
           "SINTER_FAKE_DEVICES": "1"}
    os.environ.update(gpu)
    words = ["--onnx=" + MODEL, "--device=cuda", "--heuristic", "--skipInference", "--int8", "--calib=" + path("good.cache")]
    out = good(*words)
    check("int8: 1 of 2 products" in out.out, flag, out.out)
    with open(path("good.cache"), "w") as file:
        file.write("TRT-101600-EntropyCalibration2\nother: 3c010a14\n")
    check("1 without a range" in good(*words).out, flag)
    for name in gpu:
        del os.environ[name]
    check("changes nothing without --int8" in good(*BUILD, "--skipInference", "--calib=" + path("good.cache")).err, flag)
    for text in ("", "TRT", "image: 3c010a14\n", "TRT-8-X\nimage: 3c010a1\n", "TRT-8-X\nimage 3c010a14\n", "TRT-8-X\nimage: 3c010a1g\n"):
        with open(path("bad.cache"), "w") as file:
            file.write(text)
        bad("while reading a calibration cache", *BUILD, "--int8", "--skipInference", "--calib=" + path("bad.cache"))


def load_inputs(flag):
    with open(path("seven"), "wb") as file:
        file.write(struct.pack("<784f", *[0.0] * 784))
    good(*BUILD, *QUICK, "--loadInputs='image':" + path("seven"), "--exportOutput=" + path("o"))
    zeros = json.load(open(path("o")))
    good(*BUILD, *QUICK, "--exportOutput=" + path("o"))
    check(zeros != json.load(open(path("o"))), flag, "the data is not used")
    bad("fewer bytes", *BUILD, *QUICK, "--shapes=image:2x1x28x28", "--loadInputs=image:" + path("seven"))
    bad("no input", *BUILD, *QUICK, "--loadInputs=image:" + path("seven") + ",x:" + path("seven"))
    bad("Cannot open", *BUILD, *QUICK, "--loadInputs=image:" + path("none"))


def accuracy(flag):
    good(*BUILD, *QUICK, "--dumpRawBindingsToFile")
    wanted = path("scores.output.1.10.Float.raw")
    values = list(struct.unpack("<10f", open(wanted, "rb").read()))
    values[0] += 0.5
    with open(path("off"), "wb") as file:
        file.write(struct.pack("<10f", *values))
    for word, most in (("l0", 0.1), ("l1", 0.05), ("l2", 0.1582), ("lInf", 0.5)):
        ask = [*BUILD, *QUICK, "--loadRefOutputs=scores:" + path("off"), "--accuracyAlgorithm=" + word]
        good(*ask, "--accuracyThreshold=%g" % (most * 1.001))
        bad(word + " = ", *ask, "--accuracyThreshold=%g" % (most * 0.999))
    good(*BUILD, *QUICK, "--loadRefOutputs=scores:" + wanted, "--accuracyThreshold=1e-6", "--accuracyAlgorithm=cos")
    good(*BUILD, *QUICK, "--loadRefOutputs=scores:" + path("off"), "--accuracyThreshold=0", "--atol=0.6")
    good(*BUILD, *QUICK, "--loadRefOutputs=scores:" + path("off"), "--accuracyThreshold=0", "--rtol=1e14", "--atol=1e-3")
    bad("needs --accuracyThreshold", *BUILD, *QUICK, "--loadRefOutputs=scores:" + wanted)


def outputs(*words, failing=None):
    """name -> values of a run."""
    ask = [*BUILD, *QUICK, "--exportOutput=" + path("o"), *words]
    if failing:
        bad(failing, *ask)
        return None
    good(*ask)
    return {row["name"]: row["values"] for row in json.load(open(path("o")))}


def differs(a, b):
    return max(abs(x - y) for x, y in zip(a["scores"], b["scores"]))


def precisions(flag):
    """Of a layer that is computed in f16 the results move, and by little; nothing moves where types are not asked for."""
    plain, ask = outputs(), "--precisionConstraints=obey"
    half = outputs("--layerPrecisions=*:fp16", ask)
    check(0 < differs(plain, half) < 0.1, flag, differs(plain, half))
    check(differs(plain, outputs("--layerPrecisions=*conv:fp16,conv*:bf16,*:fp32", ask)) == 0, flag)
    check(differs(half, outputs("--layerPrecisions=conv2_conv:bf16", ask)) > 0, flag)
    check(differs(plain, outputs("--layerPrecisions=*:fp16", "--precisionConstraints=prefer")) == 0, flag, "fp16 is not permitted")
    out = good(*BUILD, *QUICK, "--layerPrecisions=*:fp16", "--layerOutputTypes=*:fp16", "--exportOutput=" + path("o"))
    check("change nothing without --precisionConstraints" in out.err, flag)
    check(differs(plain, {r["name"]: r["values"] for r in json.load(open(path("o")))}) == 0, flag)
    check(differs(plain, outputs("--layerOutputTypes=*_conv:fp16,norm*:fp32", ask)) > 0, flag)
    check(differs(plain, outputs("--layerOutputTypes=pool2_maxpool:fp32", ask)) == 0, flag)
    for text, word in (("there is no layer", "--layerPrecisions=none:fp16"), ("expected fp32, fp16, bf16 or int8", "--layerPrecisions=*:int9"),
                       ("expected a type for each", "--layerOutputTypes=conv1_conv:fp16+fp16"), ("expected a type", "--layerOutputTypes=conv1_conv:x"),
                       ("NAME:VALUE", "--layerPrecisions=fp16")):
        outputs(word, ask, failing=text)
    outputs("--layerPrecisions=*:fp16", ask, "--stronglyTyped", failing="strongly typed")


def io_formats(flag):
    plain = outputs()
    good(*BUILD, *QUICK, "--inputIOFormats=fp16:chw", "--outputIOFormats=bf16:chw", "--exportOutput=" + path("o"), "--dumpRawBindingsToFile")
    check(os.path.getsize(path("image.input.1.1.28.28.Half.raw")) == 2 * 784, flag)
    check(os.path.getsize(path("scores.output.1.10.BFloat16.raw")) == 20, flag, os.listdir(work))
    good(*BUILD, *QUICK, "--inputIOFormats=fp16:chw", "--outputIOFormats=fp32:chw", "--exportOutput=" + path("o"))
    check(differs(plain, {r["name"]: r["values"] for r in json.load(open(path("o")))}) < 0.1, flag)
    for text, word in (("keeps it", "--inputIOFormats=int32:chw"), ("known number of channels", "--outputIOFormats=fp32:hwc8"), ("entries", "--inputIOFormats=fp32:chw,fp32:chw")):
        bad(text, *BUILD, "--skipInference", word)


def debug(flag):
    plain = outputs()
    marked = outputs("--markDebug=relu1,pool2", "--saveDebugTensors=relu1:%s,pool2:%s" % (path("r"), path("p2")))
    check(list(marked) == ["scores", "relu1", "pool2"] and differs(plain, marked) < 1e-5 and min(marked["relu1"]) == 0, flag, list(marked))
    check(os.path.getsize(path("r")) == 4 * len(marked["relu1"]), flag)
    outputs("--markDebug=nothing", failing="there is no tensor 'nothing'")
    for name in ("relu1.raw", "pool2.npy", "pool2.txt"):
        if os.path.exists(path(name)):
            os.remove(path(name))
    marked = outputs("--markDebug=relu1,pool2", "--saveAllDebugTensors=raw,numpy,string")
    check(os.path.getsize(path("relu1.raw")) == 4 * len(marked["relu1"]), flag)
    check(open(path("pool2.npy"), "rb").read(6) == b"\x93NUMPY", flag)
    check([float(line) for line in open(path("pool2.txt"))] == marked["pool2"], flag)
    outputs("--markDebug=relu1", "--saveAllDebugTensors=raw,x", failing="wanted is summary, numpy, string or raw")
    marked = outputs("--markDebug=relu1,pool2", "--saveAllDebugTensors=summary,numpy")
    found = json.load(open(path("tensor_summary.json")))["tensors"]
    check([t["name"] for t in found] == ["relu1", "pool2"] and [t["type"] for t in found] == ["FLOAT"] * 2, flag)
    for t in found:
        values, says = marked[t["name"]], t["statistics"]
        check(abs(says["min"] - min(values)) < 1e-5 and abs(says["max"] - max(values)) < 1e-5 and abs(says["avg"] - sum(values) / len(values)) < 1e-5, flag, says)
        first, last = says["elements"].split(", ..., ")
        check([float(v) for v in first.split(", ")] == values[:5] and [float(v) for v in last.split(", ")] == values[-5:], flag, says["elements"])
        check(t["files"] == {"numpy": t["name"] + ".npy"} and os.path.exists(path(t["name"] + ".npy")), flag, t["files"])
        size = 1
        for d in t["shape"]:
            size *= d
        check(size == len(values), flag, t["shape"])
    outputs("--saveAllDebugTensors=raw", failing="needs --markDebug")
    kept = outputs("--markUnfusedTensorsAsDebugTensors")                # conv1 is fused with what follows
    check(list(kept)[0] == "scores" and "pool1" in kept and "conv1" not in kept and differs(plain, kept) < 1e-5, flag, list(kept))
    both = outputs("--markUnfusedTensorsAsDebugTensors", "--markDebug=pool1,relu1", "--saveAllDebugTensors=numpy", "--saveDebugTensors=pool1:" + path("p1"))
    check(list(both)[:3] == ["scores", "pool1", "relu1"] and list(both).count("pool1") == 1 and differs(kept, both) < 1e-5, flag, list(both))
    check(all(os.path.exists(path(name + ".npy")) for name in list(both)[1:]) and os.path.getsize(path("p1")) == 4 * len(both["pool1"]), flag)
    outputs("--saveDebugTensors=relu1:" + path("r"), failing="no debug tensor 'relu1'")


def plugin_library(flag):
    library = os.path.join(os.path.dirname(SINTER), "tests", "libsinter_plugin_library.so")
    good(*BUILD, "--skipInference", flag.split("=")[0] + "=" + library)
    bad("cannot be opened", *BUILD, "--skipInference", flag.split("=")[0] + "=" + path("none.so"))
    with open(path("text.so"), "w") as file:
        file.write("text")
    bad("text.so", *BUILD, "--skipInference", flag.split("=")[0] + "=" + path("text.so"))


def allocation(flag):
    ranges = ["--profile=0", "--minShapes=image:1x1x28x28", "--maxShapes=image:4x1x28x28", "--optShapes=image:4x1x28x28",
              "--profile=1", "--minShapes=image:1x1x28x28", "--maxShapes=image:64x1x28x28", "--optShapes=image:64x1x28x28"]
    sizes = {}
    for word in ("static", "profile", "runtime"):
        out = good(*BUILD, *QUICK, *ranges, "--shapes=image:1x1x28x28", "--infStreams=2", "--allocationStrategy=" + word).out
        sizes[word] = float(re.search(r"device memory size: ([0-9.e+-]+) MiB", out).group(1))
    check(sizes["static"] > sizes["profile"] > sizes["runtime"] > 0, flag, sizes)


def page(flag):
    done = run(flag)
    check(done.status == 0 and done.out and "RUNNING" not in done.out, flag)


EFFECTS = {
    "onnx": ("=" + MODEL, says("Model: " + MODEL, "FLAG", "--builderOptimizationLevel=0", "--skipInference")),
    "minShapes": ("=image:1x1x28x28", has_profile("min = 1x1x28x28")),
    "optShapes": ("=image:1x1x28x28", has_profile("opt = 2x1x28x28")),
    "maxShapes": ("=image:1x1x28x28", has_profile("max = 4x1x28x28")),
    "profile": ("=1", profile_block),
    "inputIOFormats": ("=fp32:chw", io_formats),
    "outputIOFormats": ("=fp32:chw", option("Output(s)s format: fp32:chw")),
    "fp16": ("", option("Precision: FP32+FP16")),
    "bf16": ("", option("Precision: FP32+BF16")),
    "int8": ("", option("Precision: FP32+INT8")),
    "best": ("", option("Precision: FP32+FP16+BF16+INT8")),
    "noTF32": ("", option("Precision: FP32")),
    "stronglyTyped": ("", says("--fp16 is disabled", *BUILD, "--fp16", "--skipInference", "FLAG")),
    "precisionConstraints": ("=obey", option("Precision: FP32 (obey precision constraints)")),
    "layerPrecisions": ("=*:fp16", precisions),
    "layerOutputTypes": ("=*:fp16", option("LayerOutputTypes: *:fp16")),
    "markDebug": ("=relu1", debug),
    "markUnfusedTensorsAsDebugTensors": ("", debug),
    "saveDebugTensors": ("=relu1:f", says("Dumped tensor relu1 to f", *BUILD, *QUICK, "--markDebug=relu1", "FLAG")),
    "saveAllDebugTensors": ("=numpy", debug),
    "plugins": ("=x.so", plugin_library),
    "staticPlugins": ("=x.so", plugin_library),
    "dynamicPlugins": ("=x.so", plugin_library),
    "layerDeviceTypes": ("=conv1:GPU", refused_value("no backend for it", "--layerDeviceTypes=conv1:DLA")),
    "calib": ("=" + path("good.cache"), calib),
    "memPoolSize": ("=workspace:1G", workspace),
    "workspace": ("=64", workspace),
    "builderOptimizationLevel": ("=1", says("BuilderOptimizationLevel: 1", "--onnx=" + MODEL, "--skipInference", "FLAG")),
    "heuristic": ("", option("Engine built")),
    "timingCacheFile": ("=" + path("cache"), timing_cache),
    "errorOnTimingCacheMiss": ("", cache_miss),
    "noCompilationCache": ("", option("Enable Compilation Cache: Disabled")),
    "maxAuxStreams": ("=0", option("MaxAuxStreams: 0")),
    "sparsity": ("=disable", option("Sparsity: Disabled")),
    "refit": ("", says("bytes", *BUILD, "--skipInference", "--dumpRefit", "FLAG")),
    "stripWeights": ("", strips),
    "stripAllWeights": ("", strips),
    "weightless": ("", strips),
    "hardwareCompatibilityLevel": ("=none", option("Engine built")),
    "runtimePlatform": ("=SameAsBuild", option("Engine built")),
    "monitorMemory": ("", option("Peak memory of the process")),
    "saveEngine": ("=" + path("saved"), saves),
    "loadEngine": ("=" + ENGINE, says("Engine deserialized", "FLAG", *QUICK)),
    "getPlanVersionOnly": ("", says("was written by sinter", "--loadEngine=" + ENGINE, "FLAG")),
    "profilingVerbosity": ("=detailed", says("TacticName: cpu_", *BUILD, "--skipInference", "--dumpLayerInfo", "FLAG")),
    "nvtxMode": ("=verbose", says("TacticName: cpu_", *BUILD, "--skipInference", "--dumpLayerInfo", "FLAG")),
    "buildOnly": ("", says("Skipped inference phase since --buildOnly", *BUILD, "FLAG")),
    "skipInference": ("", says("Skipped inference phase since --skipInference", *BUILD, "FLAG")),
    "device": ("=cpu", option("Selected Device: cpu")),
    "useRuntime": ("=full", loaded("Throughput: ")),
    "help": ("", page),
    "version": ("", page),
    "flags": ("", page),
    "trustCode": ("", loaded("Throughput: ")),
    "shapes": ("=im*:3x1x28x28", runs("Input binding for image with dimensions 3x1x28x28")),
    "loadInputs": ("=image:" + path("seven"), load_inputs),
    "iterations": ("=7", queries(7, "--duration=0")),
    "warmUp": ("=30", says("Warmup completed", *BUILD, "--iterations=1", "--duration=0", "FLAG")),
    "duration": ("=0.05", says("+ 0ms warm up", *BUILD, "--warmUp=0", "FLAG")),
    "sleepTime": ("=2", runs("Sleep time: 2ms")),
    "idleTime": ("=2", runs("Idle time: 2ms")),
    "infStreams": ("=3", queries(6, "--duration=0", "--iterations=2")),
    "streams": ("=3", queries(6, "--duration=0", "--iterations=2", "--threads")),
    "threads": ("", queries(4, "--duration=0", "--iterations=2", "--infStreams=2")),
    "noDataTransfers": ("", runs("Data transfers: Disabled")),
    "includeDataTransfers": ("", runs("Data transfers: Enabled")),
    "useSpinWait": ("", runs("Spin-wait: Enabled")),
    "noSpinWait": ("", runs("Spin-wait: Disabled")),
    "timeDeserialize": ("", loaded("Skipped inference phase since --timeDeserialize")),
    "timeRefit": ("", says("Engine refitted in", "--loadEngine=" + ENGINE, "--onnx=" + MODEL, "FLAG")),
    "refitFromOnnx": ("=" + MODEL, loaded("Engine refitted in")),
    "useProfile": ("=0", runs("Optimization Profile Index: 0")),
    "allocationStrategy": ("=profile", allocation),
    "weightStreamingBudget": ("=50%", runs("no weights in a GPU's memory")),
    "loadRefOutputs": ("", accuracy),
    "verbose": ("", runs("=== Explanations of the performance metrics ===")),
    "avgRuns": ("=2", says("Average on 2 runs - GPU latency: ", *BUILD, "--warmUp=0", "--duration=0", "--iterations=4", "FLAG")),
    "percentile": ("=50,99.9", runs("percentile(99.9%) = ")),
    "dumpRefit": ("", option("Refittable weights:")),
    "dumpOutput": ("", runs("scores: (1x10)")),
    "dumpRawBindingsToFile": ("", raw),
    "dumpProfile": ("", runs("=== Profile (")),
    "dumpLayerInfo": ("", runs("Layer Information:")),
    "dumpOptimizationProfile": ("", option("Optimization Profile 0:")),
    "exportTimes": ("=" + path("t"), exports(lambda t: t[0]["endEnqMs"] >= t[0]["startEnqMs"] and abs(t[0]["latencyMs"] - t[0]["h2dMs"] - t[0]["computeMs"] - t[0]["d2hMs"]) < 1e-6)),
    "exportOutput": ("=" + path("o"), exports(lambda o: o[0]["name"] == "scores" and o[0]["dimensions"] == "1x10" and abs(sum(o[0]["values"]) - 1) < 1e-4)),
    "exportProfile": ("=" + path("p"), exports(lambda p: p[0]["count"] > 0 and abs(sum(s["percentage"] for s in p[1:]) - 100) < 1e-3)),
    "exportLayerInfo": ("=" + path("l"), exports(lambda l: "image" in l["Bindings"] and all(isinstance(name, str) for name in l["Layers"]))),
}
# Tested with loadRefOutputs.
for name in ("accuracyAlgorithm", "accuracyThreshold", "atol", "rtol"):
    EFFECTS[name] = ("", None)

MALFORMED = {"N": ["", "-3", "1.5", "x", "1x", "99999999999"], "MS": ["", "-1", "nan", "inf", "x", "1x", "0x1"], "R": ["", "-1", "nan", "1x"],
             "S": ["", "-2", "x"], "MIB": ["", "-1", "x"], "0..5": ["", "-1", "x", "6"], "P,...": ["", "101", "90,", ",90", "x", "-1", "nan"],
             "FILE": [""], "NAME:1x3x224x224,...": ["", "image", "image:", ":1", "image:1xx2", "image:-1x1x28x28", "image:1x1x28x28,", "'image:1",
                                                      "image:1x1x28x28,image:1x1x28x28", "image:axb", "other:1x1x28x28"],
             "NAME:FILE,...": ["", "image", ":f", "image:f,"], "POOL:SIZE[B|K|M|G],...": ["", "workspace", "workspace:", "workspace:x", "workspace:1T", "x:1"],
             "TYPE:FORMAT,...": ["", "fp32", "fp32:chw,", "chw", "fp32:chw,fp32:chw"], "LAYER:GPU|DLA,...": ["", "conv", "conv:CPU"],
             "-2|-1|N[%|B|K|M|G]": ["", "x", "-3", "101%", "1T", "1MB", "%"], "N|cpu|cuda[:N|:sm_XX]": ["", "gpu", "-1", "999"]}


def malformed(name, form):
    """Values that are refused, and the flag is named."""
    values = MALFORMED.get(form, [])
    if not form:
        values = ["1"]
    elif "|" in form and form not in MALFORMED:
        values = ["", "x", form]
    base = [word for word in BUILD if not word.startswith("--%s=" % name)]
    if name == "loadEngine":
        base = []
    for value in values:
        if name in ("minShapes", "optShapes", "maxShapes", "shapes") and value == "image:":
            continue                        # a scalar: the build refuses it
        bad("--" + name, *base, *(QUICK if name in ("loadInputs", "saveDebugTensors") else ["--skipInference"] if name not in ("shapes", "useProfile") else QUICK),
            "--%s=%s" % (name, value))


def main():
    table, words = flags()
    upstream = [name for name, row in table.items() if row[1] != "own"]
    check(len(upstream) == 164, "flags of trtexec", len(upstream))
    good(*BUILD, "--refit", "--saveEngine=" + ENGINE, "--skipInference")
    for name, (form, _, effect) in table.items():
        value = "=" + {"N": "1", "FILE": "f", "R": "0.5", "BYTES": "1", "S": "1", "0..3": "1"}.get(form, form.split("|")[0] or "x") if form else ""
        if effect == "works":
            if name not in EFFECTS:
                check(False, name, "works, and no test shows it")
                continue
            value, test = EFFECTS[name]
            if test:
                test("--" + name + value)
            if name not in ("refPair", "loadRefOutputs", "atol", "rtol", "accuracyThreshold", "accuracyAlgorithm"):
                malformed(name, form)
        elif effect == "refused":
            bad("--%s is refused. " % name, *BUILD, "--skipInference", "--" + name + value)
        else:
            out = good(*BUILD, "--skipInference", "--" + name + value)
            check("--%s %s" % (name, effect if effect == "changes nothing" else "is always so") in out.out + out.err, name, out.out, out.err)
    for (name, word), effect in words.items():
        done = run(*BUILD, "--skipInference", "--%s=%s" % (name, word))
        check(("%s=%s %s" % (name, word, effect if effect != "refused" else "is refused")) in done.err, name, word, done.err)
        check(done.status == (1 if effect == "refused" else 0), name, word, done.status)

    # The files of layers and of times name the same steps; each tensor that a layer reads is made before it.
    good(*BUILD, *QUICK, "--profilingVerbosity=detailed", "--exportLayerInfo=" + path("l"), "--exportProfile=" + path("p"))
    layers, bindings = (json.load(open(path("l")))[key] for key in ("Layers", "Bindings"))
    check([layer["Name"] for layer in layers] == [step["name"] for step in json.load(open(path("p")))[1:]], "names of layers and of times")
    made = set(bindings)
    for layer in layers:
        check(all(tensor["Name"] in made for tensor in layer["Inputs"]) and layer["Outputs"], "tensors", layer)
        check(len(layer["TacticValue"]) == 18 and layer["Metadata"].startswith("[ONNX Layer: "), layer)
        made.update(tensor["Name"] for tensor in layer["Outputs"])

    # Words that no flag has, even where the flag changes nothing.
    for flag, text in (("--layerPrecisions=*:fp99", "'fp99' of layer '*'"), ("--layerOutputTypes=conv1:fp16+fp98", "'fp98' of layer 'conv1'"),
                       ("--tilingOptimizationLevel=7", "expected 0 to 3"), ("--persistentCacheRatio=2", "expected 0 to 1"),
                       ("--tempfileControls=foo:allow", "'foo:allow'"), ("--tempfileControls=in_memory:maybe", "'in_memory:maybe'"),
                       ("--inputIOFormats=fp17:chw", "'fp17' of 'image'")):
        bad(text, *BUILD, "--skipInference", flag)

    # The command line as such.
    done = run()
    check(done.status == 0 and "&&&& PASSED" in done.out and "usage:" in done.out, "no arguments")
    done = run("-h")
    check(done.status == 0 and "--saveEngine=FILE" in done.out, "-h")
    bad("Unknown option: --nonsense 3", *BUILD, "--nonsense=3")
    bad("Unknown option: model.onnx ", "model.onnx")
    bad("given twice", *BUILD, "--warmUp=1", "--warmUp=2")
    bad("Model missing", "--fp16")
    bad("exclude each other", *BUILD, "--loadEngine=" + ENGINE)
    os.symlink(SINTER, path("trtexec"))
    done = run(*BUILD, *QUICK, name=path("trtexec"))
    check(done.status == 0 and not done.problem() and "# " + path("trtexec") in done.out, "called trtexec")
    print("%d flags, %d failures" % (len(table), len(failures)))
    return 1 if failures else 0


sys.exit(main())
