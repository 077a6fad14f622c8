# SPDX-License-Identifier: Apache-2.0
"""Engines that run on torch tensors, as detectors' repositories have them: an engine file that begins with metadata, named
bindings with torch memory, dynamic shapes with reallocated outputs, a module in the style of torch2trt."""
import json
import sys
from collections import OrderedDict, namedtuple

import numpy as np
import tensorrt as trt
import torch

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def check_version(current, minimum, hard=False):
    key = [int(p) for p in current.split(".")[:2]] >= [int(p) for p in minimum.split(".")[:2]]
    assert key or not hard
    return key


def export_engine(onnx, file, metadata, half=False, dynamic=True, workspace=4, prefix="TensorRT:"):
    check_version(trt.__version__, "7.0.0", hard=True)
    logger = trt.Logger(trt.Logger.INFO)
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    workspace_bytes = int(workspace * (1 << 30))
    is_trt10 = int(trt.__version__.split(".", 1)[0]) >= 10
    if is_trt10 and workspace_bytes > 0:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, workspace_bytes)
    elif workspace_bytes > 0:
        config.max_workspace_size = workspace_bytes
    flag = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
    network = builder.create_network(flag)
    half = builder.platform_has_fast_fp16 and half
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(onnx)):
        raise RuntimeError(f"failed to load ONNX file: {onnx}")
    inputs = [network.get_input(i) for i in range(network.num_inputs)]
    outputs = [network.get_output(i) for i in range(network.num_outputs)]
    for inp in inputs:
        print(f'{prefix} input "{inp.name}" with shape{inp.shape} {inp.dtype}')
    for out in outputs:
        print(f'{prefix} output "{out.name}" with shape{out.shape} {out.dtype}')
    if dynamic:
        profile = builder.create_optimization_profile()
        shape = (8, 1, 28, 28)
        min_shape = (1, shape[1], 28, 28)
        max_shape = (*shape[:2], *(int(max(1, workspace) * d / max(1, workspace)) for d in shape[2:]))
        for inp in inputs:
            profile.set_shape(inp.name, min=min_shape, opt=shape, max=max_shape)
        config.add_optimization_profile(profile)
    print(f"{prefix} building FP{16 if builder.platform_has_fast_fp16 and half else 32} engine as {file}")
    if half:
        config.set_flag(trt.BuilderFlag.FP16)
    torch.cuda.empty_cache()
    build = builder.build_serialized_network if is_trt10 else builder.build_engine
    with build(network, config) as engine, open(file, "wb") as t:
        meta = json.dumps(metadata)
        t.write(len(meta).to_bytes(4, byteorder="little", signed=True))
        t.write(meta.encode())
        t.write(engine if is_trt10 else engine.serialize())


class AutoBackend:
    def __init__(self, w):
        Binding = namedtuple("Binding", ("name", "dtype", "shape", "data", "ptr"))
        logger = trt.Logger(trt.Logger.INFO)
        with open(w, "rb") as f, trt.Runtime(logger) as runtime:
            meta_len = int.from_bytes(f.read(4), byteorder="little")
            self.metadata = json.loads(f.read(meta_len).decode("utf-8"))
            self.model = runtime.deserialize_cuda_engine(f.read())
        self.context = self.model.create_execution_context()
        self.bindings, self.output_names, self.fp16, self.dynamic = OrderedDict(), [], False, False
        self.is_trt10 = not hasattr(self.model, "num_bindings") or "--names" in sys.argv
        num = range(self.model.num_io_tensors) if self.is_trt10 else range(self.model.num_bindings)
        for i in num:
            if self.is_trt10:
                name = self.model.get_tensor_name(i)
                dtype = trt.nptype(self.model.get_tensor_dtype(name))
                is_input = self.model.get_tensor_mode(name) == trt.TensorIOMode.INPUT
                if is_input:
                    if -1 in tuple(self.model.get_tensor_shape(name)):
                        self.dynamic = True
                        self.context.set_input_shape(name, tuple(self.model.get_tensor_profile_shape(name, 0)[1]))
                else:
                    self.output_names.append(name)
                shape = tuple(self.context.get_tensor_shape(name))
            else:
                name = self.model.get_binding_name(i)
                dtype = trt.nptype(self.model.get_binding_dtype(i))
                is_input = self.model.binding_is_input(i)
                if is_input:
                    if -1 in tuple(self.model.get_binding_shape(i)):
                        self.dynamic = True
                        self.context.set_binding_shape(i, tuple(self.model.get_profile_shape(0, i)[1]))
                else:
                    self.output_names.append(name)
                shape = tuple(self.context.get_binding_shape(i))
            if is_input and dtype == np.float16:
                self.fp16 = True
            im = torch.from_numpy(np.empty(shape, dtype=dtype)).to(DEVICE)
            self.bindings[name] = Binding(name, dtype, shape, im, int(im.data_ptr()))
        self.binding_addrs = OrderedDict((n, d.ptr) for n, d in self.bindings.items())
        self.batch_size = self.bindings["image"].shape[0]

    def forward(self, im):
        if self.dynamic and im.shape != self.bindings["image"].shape:
            if self.is_trt10:
                self.context.set_input_shape("image", im.shape)
                self.bindings["image"] = self.bindings["image"]._replace(shape=im.shape)
                for name in self.output_names:
                    self.bindings[name].data.resize_(tuple(self.context.get_tensor_shape(name)))
            else:
                i = self.model.get_binding_index("image")
                self.context.set_binding_shape(i, im.shape)
                self.bindings["image"] = self.bindings["image"]._replace(shape=im.shape)
                for name in self.output_names:
                    i = self.model.get_binding_index(name)
                    self.bindings[name].data.resize_(tuple(self.context.get_binding_shape(i)))
        s = self.bindings["image"].shape
        assert im.shape == s, f"input size {im.shape} {'>' if self.dynamic else 'not equal to'} max model size {s}"
        self.binding_addrs["image"] = int(im.data_ptr())
        self.context.execute_v2(list(self.binding_addrs.values()))
        return [self.bindings[x].data for x in sorted(self.output_names)]


def torch_dtype_from_trt(dtype):
    if dtype == trt.int8:
        return torch.int8
    elif dtype == trt.bool:
        return torch.bool
    elif dtype == trt.int32:
        return torch.int32
    elif dtype == trt.float16:
        return torch.float16
    elif dtype == trt.float32:
        return torch.float32
    raise TypeError("%s is not supported by torch" % dtype)


class TRTModule(torch.nn.Module):
    def __init__(self, engine=None, input_names=None, output_names=None):
        super().__init__()
        self._register_state_dict_hook(TRTModule._on_state_dict)
        self.engine = engine
        if self.engine is not None:
            self.context = self.engine.create_execution_context()
        self.input_names, self.output_names = input_names, output_names

    def _on_state_dict(self, state_dict, prefix, local_metadata):
        state_dict[prefix + "engine"] = bytearray(self.engine.serialize())
        state_dict[prefix + "input_names"] = self.input_names
        state_dict[prefix + "output_names"] = self.output_names

    def _load_from_state_dict(self, state_dict, prefix, *_):
        with trt.Logger() as logger, trt.Runtime(logger) as runtime:
            self.engine = runtime.deserialize_cuda_engine(state_dict[prefix + "engine"])
            self.context = self.engine.create_execution_context()
        self.input_names = state_dict[prefix + "input_names"]
        self.output_names = state_dict[prefix + "output_names"]

    def forward(self, *inputs):
        for i, input_name in enumerate(self.input_names):
            shape = tuple(inputs[i].shape)
            data_ptr = inputs[i].contiguous().data_ptr()
            self.context.set_tensor_address(input_name, data_ptr)
            self.context.set_input_shape(input_name, shape)
        outputs = [None] * len(self.output_names)
        for i, output_name in enumerate(self.output_names):
            dtype = torch_dtype_from_trt(self.engine.get_tensor_dtype(output_name))
            shape = tuple(self.context.get_tensor_shape(output_name))
            output = torch.empty(size=shape, dtype=dtype, device=inputs[0].device)
            outputs[i] = output
            self.context.set_tensor_address(output_name, output.data_ptr())
        self.context.execute_async_v3(torch.cuda.current_stream().cuda_stream if DEVICE.type == "cuda" else 0)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def main():
    onnx, file = sys.argv[1], sys.argv[3]
    seven = torch.from_numpy(np.load(sys.argv[2]))
    export_engine(onnx, file, {"stride": 4, "names": {str(i): str(i) for i in range(10)}})
    backend = AutoBackend(file)
    assert backend.metadata["stride"] == 4 and backend.dynamic and backend.batch_size == 8
    for batch in (1, 8, 3):
        scores = backend.forward(seven.repeat(batch, 1, 1, 1).to(DEVICE))[0]
        assert scores.shape == (batch, 10) and (scores.argmax(1) == 7).all()
    module = TRTModule(backend.model, ["image"], ["scores"])
    want = module(seven.to(DEVICE))
    torch.save(module.state_dict(), file + ".pth")
    again = TRTModule()
    again.load_state_dict(torch.load(file + ".pth", weights_only=False))
    assert torch.equal(again(seven.to(DEVICE)), want) and torch.allclose(want, scores[:1], atol=1e-4)
    print("done")


if __name__ == "__main__":
    main()
