# SPDX-License-Identifier: Apache-2.0
"""What the Python blocks of the seeds stand among: code before them, and code behind them that checks what they did."""

# Every block sees these names.
COMMON = """
import collections, concurrent.futures, os, sys
from collections import defaultdict
import numpy as np
import sinter, sinter.shim
sinter.shim.install()
import pycuda.driver as cuda
import sinter.tensorrt as trt
logger = TRT_LOGGER = trt.Logger(trt.Logger.ERROR)
EXPLICIT_BATCH = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
rng = np.random.default_rng(1)
def judge(x):
    "The fixture's model, by sinter alone."
    profile = {"input": ((1, 3, 224, 224), (len(x), 3, 224, 224), (64, 3, 224, 224))}
    engine = sinter.build(MODEL, tune="off", **({"profiles": [profile]} if DYNAMIC else {})).load()
    return np.array(engine.context().run({"input": x})["output"])
def parsed(builder, path="model.onnx"):
    network = builder.create_network(EXPLICIT_BATCH)
    parser = trt.OnnxParser(network, logger)
    with open(path, "rb") as f:
        assert parser.parse(f.read())
    network._parser = parser
    return network
builder = trt.Builder(logger)
network = parsed(builder)
config = builder.create_builder_config()
config.builder_optimization_level = 0
def plan_of(network, config):
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return plan
def engine_of(plan):
    return trt.Runtime(logger).deserialize_cuda_engine(plan)
class HostDeviceMem:
    def __init__(self, host, device):
        self.host, self.device = host, device
def allocate_buffers(engine):
    inputs, outputs, bindings = [], [], []
    for name in engine:
        host = cuda.pagelocked_empty(trt.volume(engine.get_binding_shape(name)), trt.nptype(engine.get_binding_dtype(name)))
        device = cuda.mem_alloc(host.nbytes)
        bindings.append(int(device))
        (inputs if engine.binding_is_input(name) else outputs).append(HostDeviceMem(host, device))
    return inputs, outputs, bindings
def bound(engine, batch):
    "A context, its device buffers and their addresses, with an image of random numbers in the input."
    context = engine.create_execution_context()
    image = rng.random((batch, 3, 224, 224), np.float32)
    buffers = [cuda.mem_alloc(image.nbytes), cuda.mem_alloc(batch * 16)]
    cuda.memcpy_htod(buffers[0], image)
    return context, image, [int(b) for b in buffers], buffers
"""

IMAGE = "image = rng.random((1, 3, 224, 224), np.float32)\n"
SAME = "assert np.abs({0} - judge({1})).max() < {2}, np.abs({0} - judge({1})).max()\n"

# block: (code before, code behind)
PYTHON = {
    "0_02": ("input_tensor = rng.random((3, 4), np.float32)\n", """
assert np.allclose(z, input_tensor * 2 + 3)
net = sinter.Network()
made = net.add_input("x", "f32", (3, 4))
two, three = (net.add_constant(np.full((1, 1), v, np.float32)) for v in (2, 3))
made = net.add("elementwise", net.add("elementwise", made, two, op="prod").outputs[0], three, op="sum").outputs[0]
net.mark_output(made)
engine = sinter.build(net, tune="off").load()
assert sum(len(p["steps"]) for p in engine.info["profiles"]) == 1, "a multiplication and an addition are one step"
assert np.allclose(list(engine.context().run({"x": input_tensor}).values())[0], z)
"""),
    "0_03": ("""
data = [rng.random((1, 3, 224, 224), np.float32) for _ in range(4)]
run = sinter.build(MODEL, tune="off").load().context()
class network:
    forward = staticmethod(lambda batch: {"input": batch, "output": np.array(run.run({"input": batch})["output"])})
def update_histogram(histogram, activation):
    histogram.append(activation)
def minimize_kl_divergence(histogram):
    "sinter's entropy calibration of what the histogram has seen."
    name = "input" if histogram[0].ndim == 4 else "output"
    return 127 * sinter.calibrate(MODEL, [{"input": b} for b in data], method="entropy").scales[name]
""", """
scale_factors = calibrate_int8(network, data)
assert set(scale_factors) == {"input", "output"} and 120 < scale_factors["input"] < 260, scale_factors
"""),
    "0_08": ("", """
engine = engine_of(plan_of(network, config))
for batch in (1, 8, 32):
    context, image, addresses, buffers = bound(engine, batch)
    assert context.set_input_shape("input", image.shape) and context.execute_v2(addresses)
    out = np.empty((batch, 4), np.float32)
    cuda.memcpy_dtoh(out, buffers[1])
""" + SAME.format("out", "image", "1e-4") + """
assert not context.set_input_shape("input", (33, 3, 224, 224))
"""),
    "0_09": (IMAGE + """
def create_calibrator(data):
    class Data(trt.IInt8EntropyCalibrator2):
        def __init__(self):
            super().__init__()
            self.left, self.memory = list(data), cuda.mem_alloc(data[0].nbytes)
        get_batch_size = lambda self: 1
        read_calibration_cache = lambda self: None
        write_calibration_cache = lambda self, cache: None
        def get_batch(self, names):
            if not self.left:
                return None
            cuda.memcpy_htod(self.memory, self.left.pop())
            return [int(self.memory)]
    return Data()
calibration_data = [rng.random((1, 3, 224, 224), np.float32) for _ in range(2)]
""", """
for precision, most in ("fp32", 1e-4), ("fp16", 1e-2), ("int8", 1e-1):
    inputs, outputs, bindings = allocate_buffers(engine := engine_of(build_engine("model.onnx", precision)))
    cuda.memcpy_htod(inputs[0].device, image)
    assert engine.create_execution_context().execute_v2(bindings)
    cuda.memcpy_dtoh(outputs[0].host, outputs[0].device)
    assert np.abs(outputs[0].host - judge(image).ravel()).max() < most
assert build_engine("broken.onnx") is None
"""),
    "0_10": (IMAGE, """
engine = engine_of(plan_of(network, config))
out = inference(engine, image.ravel())
""" + SAME.format("out", "image", "1e-4").replace("judge(image)", "judge(image).ravel()")),
    "0_14": ("engine = engine_of(plan_of(network, config))\nbindings = bound(engine, 1)[2]\nkept = bound(engine, 1)\nbindings = kept[2]\n", """
assert config.get_flag(trt.BuilderFlag.GPU_FALLBACK) and config.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
assert PRINTED().count(" ms") >= 1
"""),
    "0_15": ("""
def inference(engine, batch):
    return np.concatenate([engine_run(engine, x[None]) for x in batch])
def engine_run(engine, x):
    context = engine.create_execution_context()
    out, made = cuda.mem_alloc(16), np.empty((1, 4), np.float32)
    into = cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod(into, x)
    assert context.execute_v2([int(into), int(out)])
    cuda.memcpy_dtoh(made, out)
    return made
plan = plan_of(network, config)
engines = [engine_of(plan), engine_of(plan)]
images = rng.random((4, 3, 224, 224), np.float32)
""", """
out = multi_gpu_inference(engines, images)
assert out.shape == (4, 4)
assert max(np.abs(out[i] - judge(images[i:i + 1])[0]).max() for i in range(4)) < 1e-4
"""),
    "0_17": ("""
def layer_is_supported(layer):
    return layer.type != trt.LayerType.POOLING and layer.type != trt.LayerType.REDUCE
""", """
check_network_support(network)
assert "Unsupported layer" in PRINTED() and TRT_LOGGER.min_severity == trt.Logger.VERBOSE
"""),
    "0_18": ("""
engine = engine_of(plan_of(network, config))
TOLERANCE = 1e-3
def trt_inference(engine, x):
    inputs, outputs, bindings = allocate_buffers(engine)
    cuda.memcpy_htod(inputs[0].device, x)
    assert engine.create_execution_context().execute_v2(bindings)
    cuda.memcpy_dtoh(outputs[0].host, outputs[0].device)
    return outputs[0].host.reshape(1, 4)
data = [rng.random((1, 3, 224, 224), np.float32) for _ in range(2)]
""", """
validate_accuracy(judge, engine, data)
assert "Accuracy issue" not in PRINTED()
validate_accuracy(lambda x: judge(x) + 1, engine, data)
assert PRINTED().count("Accuracy issue") == 2
"""),
    "1_05": ("", "assert config.max_aux_streams == 7\nplan_of(network, config)\n"),
    "2_04": (IMAGE, """
run = sinter.load("model.trt").context()
""" + SAME.format("np.array(run.run({'input': image})['output'])", "image", "1e-2")),
    "4_00": (IMAGE, """
run = sinter.load("model.engine").context()
""" + SAME.format("np.array(run.run({'input': image})['output'])", "image", "1e-4")),
    "4_01": ("", """
on = [trt.BuilderFlag.FP16, trt.BuilderFlag.INT8, trt.BuilderFlag.SPARSE_WEIGHTS, trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS,
      trt.BuilderFlag.STRICT_TYPES]
assert all(config.get_flag(f) for f in on) and not config.get_flag(trt.BuilderFlag.TF32)
plan_of(network, config)
"""),
    "4_02": ("""
os.remove("calibration.cache")
class Batch:
    def __init__(self):
        self.data = rng.random((2, 3, 224, 224), np.float32)
    numpy = lambda self: self.data
class Loader:
    batch_size = 2
    __iter__ = lambda self: iter([Batch() for _ in range(3)])
calibration_loader = Loader()
profile = builder.create_optimization_profile()
profile.set_shape("input", (1, 3, 224, 224), (2, 3, 224, 224), (4, 3, 224, 224))
config.add_optimization_profile(profile)
""", """
first = plan_of(network, config)
with open("calibration.cache") as f:
    text = f.read()
assert text.startswith("TRT-") and "EntropyCalibration2" in text and "\\ninput: " in text, text
calibrator.data_loader = iter([])           # the cache serves
assert bytes(plan_of(network, config)) == bytes(first)
"""),
    "4_03": ("", """
assert config.num_optimization_profiles == 3
engine = engine_of(plan_of(network, config))
assert [engine.get_tensor_profile_shape("input", p)[2][0] for p in range(3)] == [32, 8, 64]
"""),
    "4_04": ("""
profile = builder.create_optimization_profile()
profile.set_shape("input", (1, 3, 224, 224), (2, 3, 224, 224), (4, 3, 224, 224))
config.add_optimization_profile(profile)
with open("model.engine", "wb") as f:
    f.write(plan_of(network, config))
batch_size = 3
input_data, output_data = rng.random((3, 3, 224, 224), np.float32), np.empty((3, 4), np.float32)
""", SAME.format("output_data", "input_data", "1e-4")),
    "4_06": ("""
engine = engine_of(plan_of(network, config))
context, image, bindings, buffers = bound(engine, 1)
batch_size = 1
""", """
assert "Latency" in PRINTED() and latency > 0 and throughput > 0
assert config.get_timing_cache() is cache and isinstance(bytes(cache.serialize()), bytes)
plan_of(network, config)
"""),
}

DYNAMIC = {"0_08", "4_02", "4_03", "4_04"}

# Blocks for PyTorch: before, behind.
TORCH_MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = torch.nn.Conv2d(3, 4, 7, 16), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 5)
    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))
torch.manual_seed(1)
sinter_torch = __import__("sinter.torch").torch
sinter_torch.install_as_tensorrt()
# On the CPU: a model that goes to the GPU stays where it is.
torch.nn.Module.cuda = torch.Tensor.cuda = lambda self, *_: self
x = torch.randn(1, 3, 224, 224)
"""
TORCH = {
    "0_12": (TORCH_MODEL + "torch.hub.load = lambda *_, **__: Net()\n", """
assert (output - model(input_data)).abs().max() < 1e-2
"""),
    "0_13": (TORCH_MODEL + "model, input_data = Net().eval().half(), x.half()\n"
             "torch.jit.save, torch.jit.load = sinter_torch.save, sinter_torch.load\n", """
assert (output.float() - model(input_data).float()).abs().max() < 1e-2
"""),
    "0_19": (TORCH_MODEL + """
import contextlib
import sinter.torch as torch_tensorrt
class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(13, 1, 3)
    def forward(self, textures, query=None):
        return self.conv(textures).mean((1, 2, 3))
class Textures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 13, 28, 28)
    def forward(self, x):
        return self.conv(x)
K, query, image_patches = 1, None, x.half()
texture_model, scorer_ensemble = Textures().eval().half(), Scorer().eval().half()
stream1 = stream2 = None
torch.cuda.stream = lambda s: contextlib.nullcontext()
torch.cuda.synchronize = lambda: None
""", """
want = scorer_ensemble.float()(texture_model.float()(x))
assert (relevance.float() - want).abs().max() < 2e-2
"""),
    "2_01": (TORCH_MODEL + "model = Net().eval()\n", "assert (optimized_model(x) - model(x)).abs().max() < 1e-3\n"),
    "2_05": (TORCH_MODEL + "YourModel, input_tensor = Net, x\n", "assert (output - model(x)).abs().max() < 1e-3\n"),
}
