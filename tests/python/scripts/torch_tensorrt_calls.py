# SPDX-License-Identifier: Apache-2.0
"""torch_tensorrt: modules compiled as a whole and by torch.compile, engines in bytes, refit, files, switches around a call."""
import os
import sys
import tempfile
import warnings

import tensorrt as trt
import torch
import torch_tensorrt
from torch_tensorrt import Input
from torch_tensorrt.dynamo import refit_module_weights
from torch_tensorrt.dynamo.conversion import ConversionContext, ConverterPriority, dynamo_tensorrt_converter, impl
from torch_tensorrt.dynamo.conversion.converter_utils import get_trt_tensor
from torch_tensorrt.dynamo.utils import COSINE_THRESHOLD, cosine_similarity

warnings.filterwarnings("ignore")


def net(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(8, 4)).eval()


def same(compiled, model, *inputs):
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-3, atol=1e-4)


def whole(first, second, x):
    batches = Input(min_shape=(1, 3, 16, 16), opt_shape=(2, 3, 16, 16), max_shape=(4, 3, 16, 16), dtype=torch_tensorrt.dtype.float32,
                    format=torch.channels_last)
    compiled = torch_tensorrt.compile(first, ir="dynamo", inputs=[batches], enabled_precisions={torch_tensorrt.dtype.f32}, min_block_size=1,
                                      device=torch_tensorrt.Device("cuda:0"), truncate_double=True, workspace_size=1 << 20)
    same(compiled, first, x)
    same(compiled, first, x[:1])
    rows = torch.export.Dim("rows", min=1, max=4)
    other = torch.export.export(second, (x,), dynamic_shapes=({0: rows},))
    refitted = refit_module_weights(compiled, other, arg_inputs=[x], verify_output=True)
    same(refitted, second, x[:1])
    same(compiled, first, x)
    assert refit_module_weights(compiled, other, in_place=True) is compiled
    same(compiled, second, x)
    torch_tensorrt.save(compiled, sys.argv[1], arg_inputs=[x])
    for load in (torch_tensorrt.load, torch.export.load):
        same(load(sys.argv[1]).module(), second, x)
    refused(TypeError, lambda: torch.jit.save(compiled, sys.argv[1]), "is no TorchScript")
    with torch_tensorrt.runtime.enable_cudagraphs(compiled) as graphs, torch_tensorrt.logging.errors():
        same(graphs, second, x)
    program = torch_tensorrt.dynamo.trace(first, [x])
    same(torch_tensorrt.dynamo.compile(program, [x], min_block_size=1), first, x)
    assert torch_tensorrt.dynamo.CompilationSettings(min_block_size=2, cache_built_engines=True).min_block_size == 2
    plan = torch_tensorrt.dynamo.convert_exported_program_to_serialized_trt_engine(program, inputs=[Input.from_tensor(x)])
    assert trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan).num_io_tensors == 2
    same(torch_tensorrt.ts.compile(torch.jit.trace(first, x), inputs=[Input(x.shape)]), first, x)


def mutable(first, second, x):
    module = torch_tensorrt.MutableTorchTensorRTModule(first, immutable_weights=False, min_block_size=1)
    same(module, first, x)
    same(module, first, x[:1])
    module.load_state_dict(second.state_dict())
    same(module, second, x)
    module.load_state_dict(net(3).state_dict())
    same(module, net(3), x)
    sizes = torch_tensorrt.MutableTorchTensorRTModule(first, min_block_size=1)
    sizes.set_expected_dynamic_shape_range(({0: torch.export.Dim("rows", min=1, max=4)},))
    for rows in (2, 4, 1):
        same(sizes, first, torch.randn(rows, 3, 16, 16))
    assert len(sizes.engines) == 1
    torch_tensorrt.MutableTorchTensorRTModule.save(sizes, sys.argv[1])
    same(torch_tensorrt.MutableTorchTensorRTModule.load(sys.argv[1]), first, x)


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 8, 4))

    def forward(self, x):
        self.rows[:, 3:5] = x
        return self.rows.sum()


def buffers(x):
    """Buffers that a model writes are there by name."""
    compiled = torch_tensorrt.compile(Cache(), inputs=x, min_block_size=1, enable_autocast=True, autocast_low_precision_type=torch.bfloat16)
    assert compiled.settings.enabled_precisions == {torch.bfloat16}
    assert abs(float(compiled(x)) - float(x.sum())) < 1e-4 and torch.equal(compiled.rows[:, 3:5], x)
    compiled.rows.zero_()
    assert float(compiled(0 * x)) == 0


class Engines(torch_tensorrt.dynamo._engine_cache.BaseEngineCache):
    """A script's own cache of engines."""

    def __init__(self):
        self.kept, self.reused = {}, 0

    def save(self, hash, blob):
        self.kept[hash] = blob

    def load(self, hash):
        self.reused += hash in self.kept
        return self.kept.get(hash)


def private_modules(model, x):
    """Names of modules that begin with _, and of those that make graphs: what has a meaning does it, the others say what to use instead."""
    from torch_tensorrt._enums import Platform, dtype
    from torch_tensorrt._features import ENABLED_FEATURES
    from torch_tensorrt.dynamo._compiler import compile as compile_program
    from torch_tensorrt.dynamo._defaults import MIN_BLOCK_SIZE
    from torch_tensorrt.dynamo._engine_cache import BaseEngineCache
    from torch_tensorrt.dynamo._settings import CompilationSettings
    from torch_tensorrt.dynamo.backend import torch_tensorrt_backend
    from torch_tensorrt.dynamo.conversion import DYNAMO_CONVERTERS, TRTInterpreter
    from torch_tensorrt.dynamo.conversion.impl.activation import relu
    from torch_tensorrt.dynamo.lowering import get_decompositions, post_lowering, pre_export_lowering
    from torch_tensorrt.dynamo.lowering.passes._aten_lowering_pass import _aten_lowering_pass
    from torch_tensorrt.dynamo.partitioning import fast_partition
    from torch_tensorrt.dynamo.runtime import TorchTensorRTModule
    from torch_tensorrt.dynamo.utils import Frameworks, get_torch_inputs, prepare_inputs, to_torch_device, unified_dtype_converter
    from torch_tensorrt.fx.utils import LowerPrecision

    assert MIN_BLOCK_SIZE == 5 and LowerPrecision.FP16 and ENABLED_FEATURES.dynamo_frontend and str(Platform.current_platform())
    assert dtype._from("half") == dtype._from(trt.float16) == torch.float16 and dtype.try_from("nothing") is None
    assert torch.ops.aten.relu.default in DYNAMO_CONVERTERS and torch.ops.aten.nonzero.default not in DYNAMO_CONVERTERS
    settings = CompilationSettings(min_block_size=1)
    program = pre_export_lowering(torch.export.export(model, (x,)), settings).run_decompositions(get_decompositions())
    assert post_lowering(program.graph_module, settings) is program.graph_module
    compiled = compile_program(program, prepare_inputs([x]), min_block_size=1)
    same(compiled, model, x)
    cache = Engines()
    for reused in (0, 1):
        options = dict(min_block_size=1, cache_built_engines=True, reuse_cached_engines=True)
        same(compile_program(program, [x], **options, custom_engine_cache=cache), model, x)
        assert len(cache.kept) == 1 and cache.reused == reused
    with tempfile.TemporaryDirectory() as folder:
        same(compile_program(program, [x], **options, engine_cache_dir=folder), model, x)
        kept, = os.listdir(folder)
        with open(os.path.join(folder, kept), "r+b") as file:           # damaged: it is built again
            file.truncate(1000)
        same(compile_program(program, [x], **options, engine_cache_dir=folder, engine_cache_size=1 << 30), model, x)
        assert os.listdir(folder) == [kept] and os.path.getsize(os.path.join(folder, kept)) > 1000
    assert unified_dtype_converter(trt.float16, Frameworks.TORCH) == torch.float16
    assert unified_dtype_converter(torch.int64, Frameworks.TRT) == trt.int64 and unified_dtype_converter(trt.float32, Frameworks.NUMPY).__name__ == "float32"
    refused(NotImplementedError, lambda: BaseEngineCache().load("hash"), "load(hash)")
    with torch_tensorrt.runtime.weight_streaming(compiled) as weights:
        weights.device_budget = weights.total_device_budget
        same(compiled, model, x)
        refused(ValueError, lambda: setattr(weights, "device_budget", weights.total_device_budget + 1), "are wanted")
    same(torch.compile(model, backend=torch_tensorrt_backend), model, x)
    assert torch_tensorrt.ENABLED_FEATURES.refit and Input(x.shape).shape_mode == Input._ShapeMode.STATIC
    ranged = Input(min_shape=(1, 2), opt_shape=(2, 2), max_shape=(3, 2))
    assert get_torch_inputs({"a": [ranged]}, "cpu", "max_shape")["a"][0].shape == ranged.example_tensor("max_shape").shape == (3, 2) and to_torch_device("cpu").type == "cpu"

    @_aten_lowering_pass
    def a_pass(graph, *_):
        return graph
    for function in (TRTInterpreter, fast_partition, relu, torch_tensorrt.ptq.DataLoaderCalibrator, torch_tensorrt.dynamo.cross_compile_for_windows):
        refused(NotImplementedError, function, function.__name__ if function is not relu else "relu")

    plan = torch_tensorrt.convert_method_to_trt_engine(model, inputs=[x])
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    names = [engine.get_tensor_name(i) for i in range(2)]
    assert names[1] == "output0"
    same(TorchTensorRTModule(plan, names[:1], names[1:]), model, x)
    same(torch_tensorrt.ts.embed_engine_in_new_module(plan), model, x)
    refused(ValueError, lambda: TorchTensorRTModule(plan, ["other"], names[1:]), "'other'")
    refused(TypeError, lambda: TorchTensorRTModule(plan)(x.double()), "torch.float64")
    torch_tensorrt.save(torch.export.export(model, (x,)), sys.argv[1])
    same(torch_tensorrt.load(sys.argv[1]).module(), model, x)
    both = torch_tensorrt.MutableTorchTensorRTModule(Sum().eval(), min_block_size=1)
    rows = torch.export.Dim("rows", min=1, max=8)
    both.set_expected_dynamic_shape_range(({0: rows},), {"other": {0: rows}})
    for count in (2, 5):
        given = torch.randn(count, 3)
        torch.testing.assert_close(both(given, other=given), torch.relu(given) + given)
    assert len(both.engines) == 1


class Sum(torch.nn.Module):
    def forward(self, x, other=None):
        return torch.relu(x) + other


def refused(kind, function, says):
    try:
        function()
    except kind as error:
        assert says in str(error), error
    else:
        raise SystemExit(f"{says} was not refused")


def main():
    first, second, x = net(1), net(2), torch.randn(2, 3, 16, 16)
    whole(first, second, x)
    for backend in ("tensorrt", "torch_tensorrt"):
        same(torch.compile(first, backend=backend, options={"min_block_size": 1, "use_python_runtime": True}), first, x)
    mutable(first, second, x)
    buffers(torch.randn(2, 2, 4))

    @dynamo_tensorrt_converter(torch.ops.aten.relu.default, priority=ConverterPriority.HIGH)
    def converter(ctx: ConversionContext, target, args, kwargs, name):
        return impl.activation.relu(ctx, target, None, name, get_trt_tensor(ctx, args[0], name))
    assert cosine_similarity(x, x) > COSINE_THRESHOLD > cosine_similarity(x, -x)
    try:
        torch_tensorrt.runtime.nothing
        raise SystemExit("nothing is there")
    except AttributeError as error:
        assert "nothing" in str(error)
    private_modules(first, x)
    print("done")


main()
