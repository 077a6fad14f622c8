#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Command lines of trtexec as READMEs, posts and forums have them: they run, in order, in one folder, where the command is called
trtexec; and those that upstream refuses, too, are refused with a reason."""
import json
import os
import shlex
import shutil
import sys
import tempfile

from exec_rig import MODEL, SINTER, run

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from onnx_bytes import data, node, num, value, write_model  # noqa: E402

# (line, text that the output must have; one that begins with "E " is the text of an error of a line that fails)
LINES = r"""
trtexec --onnx=model.onnx | &&&& PASSED TensorRT.trtexec
trtexec --onnx=model.onnx --saveEngine=model.engine | Engine built in
trtexec --onnx=model.onnx --saveEngine=model_fp16.engine --fp16 --workspace=4096 --verbose | Precision: FP32+FP16
trtexec --loadEngine=model.engine --iterations=10 --avgRuns=10 --duration=0 --warmUp=10 | Throughput:
trtexec --loadEngine=model.engine --shapes=image:1x1x28x28 --useCudaGraph --noDataTransfers --useSpinWait --streams=2 --duration=0 | GPU Compute Time: min =
trtexec --onnx=model.onnx --minShapes='image':1x1x28x28 --optShapes='image':4x1x28x28 --maxShapes='image':8x1x28x28 --saveEngine=dyn.plan --memPoolSize=workspace:2048 --skipInference | &&&& PASSED
trtexec --onnx=model.onnx --memPoolSize=workspace:1024MiB --skipInference | &&&& PASSED
trtexec --loadEngine=dyn.plan --shapes=image:8x1x28x28 --useProfile=0 --infStreams=2 --duration=0 --iterations=2 | Throughput:
trtexec --loadEngine=dyn.plan --shapes=image:9x1x28x28 | E axis 0 of input 'image' is 9, profile 0 permits 1 to 8
trtexec --onnx=model.onnx --explicitBatch --best --buildOnly --timingCacheFile=t.cache | &&&& PASSED
trtexec --onnx=model.onnx --shapes=image:2x1x28x28 --dumpProfile --separateProfileRun --exportProfile=p.json --exportTimes=t.json --exportOutput=o.json --exportLayerInfo=l.json --profilingVerbosity=detailed --duration=0 | === Profile
trtexec --onnx=model.onnx --saveEngine=x.trt --inputIOFormats=fp16:chw --outputIOFormats=fp16:chw --fp16 --duration=0 --iterations=1 | &&&& PASSED
trtexec --onnx=model.onnx --inputIOFormats=fp16:chw16+chw --outputIOFormats=fp32:chw --skipInference | &&&& PASSED
trtexec --onnx=model.onnx --inputIOFormats=fp32:hwc --skipInference | &&&& PASSED
trtexec --onnx=model.onnx --inputIOFormats=fp16:hwc8 --fp16 | &&&& PASSED
trtexec --onnx=model.onnx --inputIOFormats=fp16:dla_hwc4 --fp16 | E 'dla_hwc4' of 'image' is refused: wanted is chw
trtexec --onnx=model.onnx --outputIOFormats=fp32:chw32 | E 'chw32' of 'scores' is refused: wanted is chw
trtexec --onnx=reshape.onnx --minShapes=x:1x6,sizes:1x1 --optShapes=x:2x6,sizes:3x4 --maxShapes=x:4x6,sizes:24x24 --saveEngine=r.plan --iterations=1 --duration=0 | Using values 3x4 for input sizes
trtexec --loadEngine=r.plan --shapes=x:4x6,sizes:8x3 --iterations=1 --duration=0 --exportOutput=r.json | Using values 8x3 for input sizes
trtexec --onnx=reshape.onnx --shapes=x:4x6,sizes:8 | E rank
trtexec --onnx=model.onnx --int8 --layerPrecisions=conv1_conv:int8,relu1_relu:int8 --precisionConstraints=prefer --buildOnly | 'int8' changes nothing in layer 'relu1_relu'
trtexec --onnx=model.onnx --plugins=libnvinfer_plugin.so --staticPlugins=/usr/lib/x86_64-linux-gnu/libnvinfer_plugin.so.10 --buildOnly | operators of sinter stand for its plugins
trtexec --onnx=model.onnx --hardwareCompatibilityLevel=ampere+ --buildOnly | kernels are chosen for one chip
trtexec --onnx=model.onnx --dumpOutput --duration=0 --iterations=1 | Output Tensors:
trtexec --onnx=model.onnx --stronglyTyped --skipInference --saveEngine=s.engine --stripWeights | &&&& PASSED
trtexec --loadEngine=s.engine | E was stripped of its weights
trtexec --onnx=model.onnx --loadInputs='image':in.bin --warmUp=0 --iterations=1 --duration=0 | &&&& PASSED
trtexec --onnx=model.onnx --fp16 --precisionConstraints=obey --layerPrecisions=*:fp16,conv1_conv:fp32 --layerOutputTypes=*:fp16,conv1_conv:fp32 --buildOnly | &&&& PASSED
trtexec --onnx=model.onnx --sparsity=enable --noTF32 --maxAuxStreams=0 --buildOnly --tacticSources=-CUDNN,+CUBLAS | &&&& PASSED
trtexec --onnx=model.onnx --percentile=90,95,99 --idleTime=1 --sleepTime=1 --threads --duration=0 | percentile(99%)
trtexec --onnx=model.onnx --refit --saveEngine=refit.engine --buildOnly --preview=+profileSharing0806 --tempdir=/tmp | &&&& PASSED
trtexec --onnx=model.onnx --builderOptimizationLevel=5 --profilingVerbosity=layer_names_only --dumpLayerInfo --buildOnly | Layers
trtexec --onnx=model.onnx --int8 --calib=missing.cache --buildOnly | E cannot open 'missing.cache'
trtexec --onnx=model.onnx --useDLACore=0 --allowGPUFallback --fp16 | E --useDLACore is refused
trtexec --onnx=model.onnx --maxBatch=8 | E --maxBatch is refused
trtexec --onnx model.onnx | E --onnx: wants a value
trtexec --deploy=a.prototxt --output=prob | E --deploy is refused
trtexec --uff=a.uff --uffInput=in,3,224,224 --output=out | E convert the model to ONNX
trtexec --onnx=model.onnx --shapes=input:1x3x224x224 | E Cannot find input tensor with name "input"
trtexec --onnx=missing.onnx | E Failed to parse onnx file
"""

failures = 0
with tempfile.TemporaryDirectory() as work:
    command = os.path.join(work, "trtexec")
    shutil.copy(SINTER, command)
    shutil.copy(MODEL, os.path.join(work, "model.onnx"))
    sizes = data(11, data(1, "sizes") + data(2, data(1, num(1, 7) + data(2, data(1, num(1, 2))))))       # i64[2]
    write_model(os.path.join(work, "reshape.onnx"), data(2, "g") + data(11, value("x", ["N", 6])) + sizes + data(12, value("y", ["A", "B"])) +
                node("Reshape", ["x", "sizes"], "y"))
    with open(os.path.join(work, "in.bin"), "wb") as f:
        f.write(bytes(4 * 784))
    for row in LINES.strip().splitlines():
        line, text = row.split(" | ")
        fails = text.startswith("E ")
        done = run(*shlex.split(line)[1:], cwd=work, name=command)
        wanted, where = (text[2:], done.err) if fails else (text, done.out + done.err)
        problem = done.problem() or (done.status != fails and f"exit status {done.status}") or (wanted not in where and f"no {wanted!r}")
        if problem:
            failures += 1
            print("FAIL", line, problem, (done.out + done.err)[-1500:])
    layers = json.load(open(os.path.join(work, "l.json")))
    assert all(layer["Inputs"] and layer["Outputs"] for layer in layers["Layers"]) and len(json.load(open(os.path.join(work, "p.json")))) > 3
    assert len(json.load(open(os.path.join(work, "o.json")))[0]["values"]) == 20
    assert json.load(open(os.path.join(work, "r.json")))[0]["dimensions"] == "8x3"
print("done" if not failures else f"{failures} lines failed")
sys.exit(bool(failures))
