# SPDX-License-Identifier: Apache-2.0
"""torch_tensorrt: modules compiled as a whole and by torch.compile, engines in bytes, refit, files, switches around a call."""
import sys
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
    same(torch_tensorrt.load(sys.argv[1]).module(), second, x)
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
    for name, missing in (("weight_streaming", torch_tensorrt.runtime), ("cross_compile_for_windows", torch_tensorrt.dynamo)):
        try:
            getattr(missing, name)
            raise SystemExit(f"{name} is there")
        except AttributeError as error:
            assert name in str(error)
    print("done")


main()
