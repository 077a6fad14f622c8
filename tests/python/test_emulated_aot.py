# SPDX-License-Identifier: Apache-2.0
"""tensorrt.plugin.aot_impl on the emulated driver: kernels that were compiled before the build, launched with sizes that each run
tells; beside trtp.impl; on the CPU, where they cannot run; what is refused."""
import ctypes
import os
from typing import Tuple, Union

import rig

EMULATED = rig.LIBRARY.parent / "tests" / "libsinter_emulated_cuda.so"
os.environ.update(SINTER_LIBCUDA=str(EMULATED), SINTER_LIBNVRTC=str(EMULATED), SINTER_KERNEL_CACHE="", SINTER_FAKE_SM="90",
                  SINTER_FAKE_DEVICES="1")

import numpy as np  # noqa: E402
import sinter.tensorrt as trt  # noqa: E402
import sinter.tensorrt.plugin as trtp  # noqa: E402

rng = np.random.default_rng(8)
SOURCE = """#include "prelude.cuh"

KERNEL void row_sum(const float *x, const float *w, int rows, int columns, float *y, int *count)
{
    grid_wait();                /* the emulator wants it of every kernel */
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows) return;
    float sum = 0;
    for (int i = 0; i < columns; i++) sum += x[row * columns + i] * w[i];
    y[row] = sum;
    if (row == 0) count[0] = rows;
}
"""


def compiled():
    """What a compiler of the caller's made: here the emulator's."""
    nvrtc, program, size = ctypes.CDLL(str(EMULATED)), ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"row_sum.cu", 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=sm_90")) == 0
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetCUBIN(program, code) == 0
    return code.raw


CODE, calls = compiled(), []


def described(name):
    @trtp.register(f"aot::{name}")
    def desc(x: trtp.TensorDesc, w: trtp.TensorDesc, block: int) -> Tuple[trtp.TensorDesc, trtp.TensorDesc]:
        return trtp.from_shape_expr((x.shape_expr[0],), x.dtype), trtp.from_shape_expr((1,), trt.int32)
    return f"aot::{name}"


@trtp.aot_impl(described("row_sum"))
def row_sum(x: trtp.TensorDesc, w: trtp.TensorDesc, block: int, outputs: Tuple[trtp.TensorDesc, trtp.TensorDesc],
            tactic: int) -> Tuple[Union[str, bytes], Union[str, bytes], trtp.KernelLaunchParams, trtp.SymExprs]:
    calls.append(x.shape)
    launch = trtp.KernelLaunchParams()
    launch.grid_x, launch.block_x, launch.shared_mem = trtp.cdiv(x.shape_expr[0], block), block, 0
    extra = trtp.SymIntExprs(2)
    extra[0], extra[1] = trtp.SymInt32(x.shape_expr[0]), x.shape_expr.numel() // x.shape_expr[0]
    assert outputs[0].shape_expr[0].constant_value() == x.shape[0]
    return "row_sum", CODE, launch, extra


def built(name, device, aot=None, flags=0, columns=5):
    os.environ["SINTER_TENSORRT_DEVICE"] = device
    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    network = builder.create_network(flags)
    x, w = network.add_input("x", trt.float32, (-1, columns)), network.add_input("w", trt.float32, (columns,))
    layer = network.add_plugin(getattr(trtp.op.aot, name)(x, w, block=4), aot=aot)
    for i, out in enumerate(("y", "count")):
        layer.get_output(i).name = out
        network.mark_output(layer.get_output(i))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, columns), (4, columns), (40, columns))
    config.add_optimization_profile(profile)
    config.builder_optimization_level = 0
    return builder.build_serialized_network(network, config)


def check(plan, columns=5, sizes=(1, 3, 4, 9, 40)):
    engine = trt.Runtime(trt.Logger(trt.Logger.INTERNAL_ERROR)).deserialize_cuda_engine(plan)._engine
    with engine.context() as context:
        for rows in sizes:
            x, w = rng.standard_normal((rows, columns)).astype("f4"), rng.standard_normal(columns).astype("f4")
            made = context.run(x=x, w=w)
            assert np.allclose(made["y"], x @ w, atol=1e-5) and made["count"][0] == rows, rows


def test_kernels_are_launched():
    for columns in (1, 5, 33):
        check(built("row_sum", "cuda", columns=columns), columns)
    before = len(calls)
    plan = built("row_sum", "cuda", aot=True)
    check(plan)
    check(plan)
    assert len(calls) <= before + 10                            # asked once for each shape


def test_beside_impl():
    name, runs = described("both"), []

    @trtp.impl(name)
    def both(x: trtp.Tensor, w: trtp.Tensor, block: int, outputs: Tuple[trtp.Tensor, trtp.Tensor], stream: int):
        runs.append("jit")
        rows, columns = x.shape
        given = [np.frombuffer((ctypes.c_float * n).from_address(t.data_ptr), "f4") for t, n in ((x, rows * columns), (w, columns))]
        made = np.ascontiguousarray(given[0].reshape(rows, columns) @ given[1], "f4")
        ctypes.memmove(outputs[0].data_ptr, made.ctypes.data, made.nbytes)
        ctypes.memmove(outputs[1].data_ptr, np.array([rows], "i4").ctypes.data, 4)

    @trtp.aot_impl(name)
    def both_aot(x: trtp.TensorDesc, w: trtp.TensorDesc, block: int, outputs: Tuple[trtp.TensorDesc, trtp.TensorDesc], tactic: int):
        runs.append("aot")
        return row_sum(x, w, block, outputs, tactic)
    flag = trt.NetworkDefinitionCreationFlag
    for device, aot, flags, wanted in (("cuda", None, 0, "jit"), ("cuda", True, 0, "aot"), ("cuda", False, 0, "jit"),
                                       ("cuda", None, 1 << int(flag.PREFER_AOT_PYTHON_PLUGINS), "aot"),
                                       ("cuda", None, 1 << int(flag.PREFER_JIT_PYTHON_PLUGINS), "jit"), ("cpu", None, 0, "jit"),
                                       ("cpu", True, 0, "jit")):
        runs.clear()
        trtp.find(name).made.clear()                            # what the function gave is kept by shape
        check(built("both", device, aot, flags), sizes=(3, 9))
        assert set(runs) == {wanted}, (device, aot, flags, runs)


def test_refusals():
    assert built("row_sum", "cpu") is None                      # a kernel for a GPU alone
    rig.raises(ValueError, built, "row_sum", "cuda", aot=False, says="trtp.impl")
    name = described("neither")
    rig.raises(LookupError, built, "neither", "cuda", says="trtp.impl")
    trtp.impl(name)(lambda x, w, block, outputs, stream: None)
    rig.raises(ValueError, built, "neither", "cuda", aot=True, says="trtp.aot_impl")
    rig.raises(ValueError, trtp.aot_impl("aot::none_such"), row_sum, says="trtp.register comes first")
    name = described("bad")
    for result, says in (((1, 2), "four"), (("row_sum", b"no code", trtp.KernelLaunchParams(), trtp.SymIntExprs(0)), "cuLibraryLoadData"),
                         (("row_sum", CODE, trtp.KernelLaunchParams(grid_x=0), trtp.SymIntExprs(0)), "grid_x is 0"),
                         (("no_such", CODE, trtp.KernelLaunchParams(), trtp.SymIntExprs(0)), "RuntimeError: cu"),
                         (("row_sum", CODE, trtp.KernelLaunchParams(), [1.5]), "SymInt32")):
        trtp.aot_impl(name)(lambda x, w, block, outputs, tactic, result=result: result)
        error = rig.raises(Exception, check, built("bad", "cuda"))
        assert says in str(error) or says in str(error.__cause__), (says, error)


if __name__ == "__main__":
    rig.main(__name__)
