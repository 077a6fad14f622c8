# SPDX-License-Identifier: Apache-2.0
"""What the engine explorer reads: the inspector's JSON with inputs and outputs of each layer, a profiler whose times are
written as trexec's, the names of layers joined with their times."""
import json
import sys
from collections import defaultdict

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)


class Profiler(trt.IProfiler):
    def __init__(self):
        trt.IProfiler.__init__(self)
        self.times, self.order = defaultdict(list), []

    def report_layer_time(self, layer_name, ms):
        if layer_name not in self.times:
            self.order.append(layer_name)
        self.times[layer_name].append(ms)

    def to_json(self):
        total = sum(sum(v) for v in self.times.values())
        made = [{"count": max(len(v) for v in self.times.values())}]
        for name in self.order:
            times = self.times[name]
            made.append({"name": name, "timeMs": sum(times), "averageMs": sum(times) / len(times),
                         "medianMs": float(np.median(times)), "percentage": 100 * sum(times) / total})
        return made


class Activation:
    """A region of memory as the explorer reads it."""

    def __init__(self, raw):
        self.name, self.shape = raw["Name"], raw["Dimensions"]
        self.format = raw["Format/Datatype"]
        bits = {"Float": 32, "Int32": 32, "Half": 16, "Int64": 64}.get(self.format, 8)
        self.size_bytes = int(np.prod(self.shape)) * bits // 8


class Layer:
    def __init__(self, raw):
        self.raw, self.name, self.type, self.tactic = raw, raw["Name"], raw["ParameterType"], raw["TacticName"]
        self.inputs = [Activation(t) for t in raw["Inputs"]]
        self.outputs = [Activation(t) for t in raw["Outputs"]]


class EnginePlan:
    def __init__(self, graph, profile):
        raw = graph["Layers"]
        self.bindings = graph["Bindings"]
        self.layers = [Layer(r) for r in raw]
        times = {p["name"]: p for p in profile[1:]}
        self.rows = [dict(times[layer.name], layer=layer) for layer in self.layers]

    def sources(self):
        """Every input of a layer is an output of an earlier one, or a binding."""
        known = set(self.bindings)
        for layer in self.layers:
            for region in layer.inputs:
                assert region.name in known, (region.name, known)
            known |= {region.name for region in layer.outputs}
        return known


def main():
    image = np.load(sys.argv[2])
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse_from_file(sys.argv[1])
    network.get_input(0).shape = (1, 1, 28, 28)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = builder.build_engine_with_config(network, config)
    assert engine.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    context = engine.create_execution_context()
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    assert inspector.execution_context is context
    graph = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    for i in range(engine.num_layers):
        assert json.loads(inspector.get_layer_information(i, trt.LayerInformationFormat.JSON)) == graph["Layers"][i]
        print(inspector.get_layer_information(i, trt.LayerInformationFormat.ONELINE))

    context.profiler = Profiler()
    out = np.zeros(10, np.float32)
    memory = cuda.to_device(image), cuda.mem_alloc(out.nbytes)
    for _ in range(3):
        assert context.execute_v2([int(m) for m in memory])
    cuda.memcpy_dtoh(out, memory[1])
    assert out.argmax() == 7
    profile = context.profiler.to_json()
    assert profile[0]["count"] == 3 and abs(sum(p["percentage"] for p in profile[1:]) - 100) < 1e-6

    plan = EnginePlan(graph, profile)
    assert plan.bindings == ["image", "scores"] and len(plan.rows) == engine.num_layers
    assert {"image", "scores"} <= plan.sources()
    assert plan.layers[0].inputs[0].name == "image" and plan.layers[0].inputs[0].shape == [1, 1, 28, 28]
    assert plan.layers[0].inputs[0].size_bytes == 4 * 784 and plan.layers[-1].outputs[0].name == "scores", graph["Layers"][-1]

    # The inspector of an engine with free sizes says -1 where the size is not known.
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse_from_file(sys.argv[1])
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 28, 28), (2, 1, 28, 28), (4, 1, 28, 28))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    inspector = engine.create_engine_inspector()
    layers = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    assert layers[0]["Inputs"][0]["Dimensions"] == [-1, 1, 28, 28], layers[0]
    print("done")


if __name__ == "__main__":
    main()
