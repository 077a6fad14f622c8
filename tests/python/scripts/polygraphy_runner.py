# SPDX-License-Identifier: Apache-2.0
"""Polygraphy's Python interface: loaders that are called lazily, profiles, a calibrator, a runner, comparisons, an engine class as
the diffusion demo has it (polygraphy's loaders, torch-free buffers, a graph of the run)."""
import os
import sys
from collections import OrderedDict

import numpy as np
import tensorrt as trt
from cuda import cudart
from polygraphy import cuda
from polygraphy.backend.common import BytesFromPath, bytes_from_path
from polygraphy.backend.trt import (Calibrator, CreateConfig, EngineBytesFromNetwork, EngineFromBytes, EngineFromNetwork,
                                    ModifyNetworkOutputs, NetworkFromOnnxPath, Profile, SaveEngine, TrtRunner, create_config,
                                    create_network, engine_from_bytes, engine_from_network, get_trt_logger,
                                    network_from_onnx_path, save_engine)
from polygraphy.backend.trt import util as trt_util
from polygraphy.comparator import Comparator, CompareFunc, DataLoader
from polygraphy.logger import G_LOGGER

G_LOGGER.module_severity = G_LOGGER.ERROR
TRT_LOGGER = trt.Logger(trt.Logger.ERROR)


def CUASSERT(cuda_ret):
    err = cuda_ret[0]
    if err != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"CUDA ERROR: {err}")
    if len(cuda_ret) > 1:
        return cuda_ret[1]
    return None


class Engine:
    """The engine class of the diffusion demo."""

    def __init__(self, engine_path):
        self.engine_path, self.engine, self.context = engine_path, None, None
        self.buffers, self.tensors = OrderedDict(), OrderedDict()
        self.cuda_graph_instance = None

    def build(self, onnx_path, fp16, input_profile, timing_cache, enable_refit=False, update_output_names=None):
        p = Profile()
        for name, dims in input_profile.items():
            assert len(dims) == 3
            p.add(name, min=dims[0], opt=dims[1], max=dims[2])
        config_kwargs = {"refittable": enable_refit, "tactic_sources": [], "builder_optimization_level": 3}
        network = network_from_onnx_path(onnx_path, flags=[trt.OnnxParserFlag.NATIVE_INSTANCENORM])
        if update_output_names:
            network = ModifyNetworkOutputs(network, update_output_names)
        engine = engine_from_network(network, config=CreateConfig(
            fp16=fp16, profiles=[p], load_timing_cache=timing_cache, **config_kwargs), save_timing_cache=timing_cache)
        save_engine(engine, path=self.engine_path)

    def load(self):
        self.engine = engine_from_bytes(bytes_from_path(self.engine_path))

    def activate(self):
        self.context = self.engine.create_execution_context()

    def allocate_buffers(self, shape_dict):
        for binding in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(binding)
            shape = shape_dict[name] if name in shape_dict else self.engine.get_tensor_shape(name)
            dtype = trt.nptype(self.engine.get_tensor_dtype(name))
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                self.context.set_input_shape(name, shape)
            self.tensors[name] = cuda.DeviceArray(tuple(shape), dtype)

    def infer(self, feed_dict, stream, use_cuda_graph=False):
        for name, buf in feed_dict.items():
            self.tensors[name].copy_from(buf)
        for name, tensor in self.tensors.items():
            self.context.set_tensor_address(name, tensor.ptr)
        if use_cuda_graph:
            if self.cuda_graph_instance is not None:
                CUASSERT(cudart.cudaGraphLaunch(self.cuda_graph_instance, stream))
                CUASSERT(cudart.cudaStreamSynchronize(stream))
            else:
                noerror = self.context.execute_async_v3(stream)
                if not noerror:
                    raise ValueError("ERROR: inference failed.")
                CUASSERT(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
                self.context.execute_async_v3(stream)
                self.graph = CUASSERT(cudart.cudaStreamEndCapture(stream))
                self.cuda_graph_instance = CUASSERT(cudart.cudaGraphInstantiate(self.graph, 0))
        else:
            noerror = self.context.execute_async_v3(stream)
            if not noerror:
                raise ValueError("ERROR: inference failed.")
        return self.tensors


def runner_and_comparator(onnx, image, folder):
    profiles = [Profile().add("image", min=(1, 1, 28, 28), opt=(2, 1, 28, 28), max=(4, 1, 28, 28))]
    build_engine = EngineFromNetwork(NetworkFromOnnxPath(onnx), config=CreateConfig(profiles=profiles, tf32=True))
    path = os.path.join(folder, "poly.engine")
    with TrtRunner(SaveEngine(build_engine, path=path)) as runner:
        for batch in (1, 3, 4):
            outputs = runner.infer(feed_dict={"image": np.repeat(image, batch, 0)})
            assert outputs["scores"].shape == (batch, 10) and (outputs["scores"].argmax(1) == 7).all()
        assert runner.last_inference_time() > 0
        assert list(runner.get_input_metadata()) == ["image"]
    load = EngineFromBytes(BytesFromPath(path))

    def data():
        for scale in (0.5, 1, 1.5):
            yield {"image": image * np.float32(scale)}
    cache = os.path.join(folder, "poly.cache")
    calibrator = Calibrator(data_loader=data(), cache=cache)
    int8 = EngineFromNetwork(NetworkFromOnnxPath(onnx), config=CreateConfig(int8=True, calibrator=calibrator, profiles=[
        Profile().add("image", (1, 1, 28, 28), (1, 1, 28, 28), (1, 1, 28, 28))]))
    results = Comparator.run([TrtRunner(load, name="fp32"), TrtRunner(int8, name="int8")], data_loader=DataLoader(
        iterations=2, val_range=(0, 1), input_metadata=None))
    assert bool(Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1.0, rtol=0.1)))
    assert os.path.getsize(cache) > 20


def network_by_hand():
    builder, network = create_network()
    x = network.add_input("x", trt.float32, (2, 3))
    out = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    out.name = "twice"
    network.mark_output(out)
    with TrtRunner(engine_from_bytes(EngineBytesFromNetwork((builder, network), create_config)())) as runner:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        assert np.array_equal(runner.infer({"x": x})["twice"], 2 * x)
    assert get_trt_logger() is not None


def main():
    onnx, image, folder = sys.argv[1], np.load(sys.argv[2]), sys.argv[3]
    runner_and_comparator(onnx, image, folder)
    network_by_hand()
    engine = Engine(os.path.join(folder, "demo.plan"))
    engine.build(onnx, False, {"image": [(1, 1, 28, 28), (2, 1, 28, 28), (4, 1, 28, 28)]}, os.path.join(folder, "poly.timing"))
    engine.load()
    engine.activate()
    engine.allocate_buffers({"image": (2, 1, 28, 28), "scores": (2, 10)})
    stream = CUASSERT(cudart.cudaStreamCreate())
    seen = []
    for k, graph in enumerate((False, True, True, True)):
        out = engine.infer({"image": np.repeat(image, 2, 0) * np.float32(1 + k)}, stream, graph)
        seen.append(out["scores"].numpy())
    assert (seen[0].argmax(1) == 7).all() and not np.array_equal(seen[2], seen[3])
    assert trt_util.get_bounds_type is not None if hasattr(trt_util, "get_bounds_type") else True
    print("done")


if __name__ == "__main__":
    main()
