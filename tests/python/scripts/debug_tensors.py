# SPDX-License-Identifier: Apache-2.0
"""Debug tensors: marked in a parsed network, handed to a listener after runs; states by tensor; a tensor that is an output, too; a
network that is as before after the build."""
import ctypes
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.INTERNAL_ERROR)


class DebugListener(trt.IDebugListener):
    def __init__(self):
        trt.IDebugListener.__init__(self)
        self.seen, self.answer = {}, True

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        assert location == trt.TensorLocation.DEVICE and isinstance(addr, int)
        array = np.empty(tuple(shape), trt.nptype(type))
        ctypes.memmove(array.ctypes.data, addr, array.nbytes)
        self.seen.setdefault(name, []).append(array)
        return self.answer


def main():
    image = np.load(sys.argv[2])
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse_from_file(sys.argv[1])
    layers, outputs = network.num_layers, network.num_outputs
    tensors = {network.get_layer(i).get_output(0).name: network.get_layer(i).get_output(0) for i in range(layers)}
    for name in ("relu1", "logits", "scores", "pool1"):
        assert network.mark_debug(tensors[name]) and network.is_debug_tensor(tensors[name])
    assert network.mark_debug(tensors["relu1"])                         # marked twice, handed over once
    assert network.unmark_debug(tensors["pool1"]) and not network.unmark_debug(tensors["pool1"])
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 28, 28), (2, 1, 28, 28), (4, 1, 28, 28))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None and (network.num_layers, network.num_outputs) == (layers, outputs)
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(plan)
    assert engine.num_io_tensors == 2 and list(engine) == ["image", "scores"]
    assert [n for n in tensors if engine.is_debug_tensor(n)] == ["relu1", "logits", "scores"]

    context, listener = engine.create_execution_context(), DebugListener()
    assert context.get_debug_listener() is None and context.set_debug_listener(listener) and context.get_debug_listener() is listener
    batch = np.repeat(image, 3, 0)
    scores = np.zeros((3, 10), np.float32)
    device = cuda.to_device(batch), cuda.mem_alloc(scores.nbytes)
    assert context.set_input_shape("image", batch.shape)
    for name, memory in zip(("image", "scores"), device):
        assert context.set_tensor_address(name, int(memory))

    def run():
        listener.seen.clear()
        done = context.execute_async_v3(0)
        cuda.memcpy_dtoh(scores, device[1])
        return done

    assert run() and not listener.seen                                  # states are off at first
    assert not context.get_debug_state("relu1") and context.set_tensor_debug_state("relu1", True) and context.get_debug_state("relu1")
    assert not context.set_tensor_debug_state("pool1", True) and not context.set_tensor_debug_state("image", True)
    assert run() and list(listener.seen) == ["relu1"] and listener.seen["relu1"][0].shape == (3, 8, 28, 28)
    assert (listener.seen["relu1"][0] >= 0).all() and listener.seen["relu1"][0].any()
    assert context.set_all_tensors_debug_state(True) and run() and list(listener.seen) == ["relu1", "logits", "scores"]
    logits, = listener.seen["logits"]
    soft = np.exp(logits - logits.max(1, keepdims=True))
    assert np.allclose(soft / soft.sum(1, keepdims=True), scores, atol=1e-5) and np.array_equal(listener.seen["scores"][0], scores)
    assert (scores.argmax(1) == 7).all()
    listener.answer = False
    assert not run() and list(listener.seen) == ["relu1"]               # a listener that refuses ends the run
    assert context.set_all_tensors_debug_state(False) and run() and not listener.seen
    assert context.set_all_tensors_debug_state(True) and context.set_debug_listener(None) and run()
    # Without marks, the engine has no debug tensors.
    for name in ("relu1", "logits", "scores"):
        assert network.unmark_debug(tensors[name])
    engine = builder.build_engine_with_config(network, config)
    assert not engine.is_debug_tensor("relu1") and engine.num_io_tensors == 2
    # What no step fuses is handed over, too, while its own state is on; conv1 is fused with what follows.
    assert network.mark_debug(tensors["logits"]) and network.mark_unfused_tensors_as_debug_tensors()
    engine = builder.build_engine_with_config(network, config)
    assert (network.num_layers, network.num_outputs, engine.num_io_tensors) == (layers, outputs, 2)
    context = engine.create_execution_context()
    assert context.set_debug_listener(listener) and context.set_input_shape("image", batch.shape)
    for name, memory in zip(("image", "scores"), device):
        assert context.set_tensor_address(name, int(memory))
    listener.answer = True
    assert run() and not listener.seen and not context.unfused_tensors_debug_state and not engine.is_debug_tensor("pool1")
    context.unfused_tensors_debug_state = True
    assert run() and "pool1" in listener.seen and not {"conv1", "logits", "scores"} & set(listener.seen)
    assert np.allclose(listener.seen["pool1"][0][0], listener.seen["relu1"][0][0].reshape(8, 14, 2, 14, 2).max((2, 4)))
    assert context.set_tensor_debug_state("logits", True) and run() and {"pool1", "logits"} <= set(listener.seen)
    assert network.unmark_unfused_tensors_as_debug_tensors()
    assert not builder.build_engine_with_config(network, config)._unfused
    print("done")


if __name__ == "__main__":
    main()
