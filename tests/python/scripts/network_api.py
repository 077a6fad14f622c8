# SPDX-License-Identifier: Apache-2.0
"""A network made by calls: convolution, pooling, constants, matrix products; its results against NumPy's."""
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.ERROR)
RNG = np.random.default_rng(7)
WEIGHTS = {"conv_w": RNG.standard_normal((5, 1, 3, 3)).astype(np.float32), "conv_b": RNG.standard_normal(5).astype(np.float32),
           "fc_w": RNG.standard_normal((6, 5 * 4 * 4)).astype(np.float32), "fc_b": RNG.standard_normal(6).astype(np.float32)}


def add_matmul_as_fc(net, input, outs, w, b):
    m = int(np.prod(input.shape[1:]))
    k = w.shape[0]
    input_reshape = net.add_shuffle(input)
    input_reshape.reshape_dims = trt.Dims2(-1, m)
    filter_const = net.add_constant(trt.Dims2(k, m), w)
    mm = net.add_matrix_multiply(input_reshape.get_output(0), trt.MatrixOperation.NONE, filter_const.get_output(0),
                                 trt.MatrixOperation.TRANSPOSE)
    bias_const = net.add_constant(trt.Dims2(1, k), b)
    return net.add_elementwise(mm.get_output(0), bias_const.get_output(0), trt.ElementWiseOperation.SUM)


def populate_network(network):
    input_tensor = network.add_input(name="data", dtype=trt.float32, shape=(2, 1, 10, 10))
    conv1 = network.add_convolution_nd(input=input_tensor, num_output_maps=5, kernel_shape=(3, 3), kernel=WEIGHTS["conv_w"],
                                       bias=WEIGHTS["conv_b"])
    conv1.stride_nd = (1, 1)
    assert conv1.type == network[0].type == trt.LayerType.CONVOLUTION and isinstance(conv1, trt.IConvolutionLayer) and conv1.num_output_maps == 5
    assert conv1.padding_nd == (0, 0) and conv1.kernel_size_nd == (3, 3) and conv1.get_output(0).shape == (2, 5, 8, 8)
    pool1 = network.add_pooling_nd(conv1.get_output(0), trt.PoolingType.MAX, (2, 2))
    pool1.stride_nd = trt.Dims2(2, 2)
    assert pool1.type == trt.PoolingType.MAX
    fc1 = add_matmul_as_fc(network, pool1.get_output(0), 6, WEIGHTS["fc_w"], WEIGHTS["fc_b"])
    relu1 = network.add_activation(input=fc1.get_output(0), type=trt.ActivationType.RELU)
    relu1.name = "last"
    assert relu1.get_output(0).dtype == trt.float32 and network.num_layers == 8 and network.get_layer(7).name == "last"
    relu1.get_output(0).name = "prob"
    network.mark_output(tensor=relu1.get_output(0))
    assert network.num_inputs == network.num_outputs == 1 and network.get_output(0).name == "prob"


def reference(x):
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), axis=(1, 2))
    conv = np.einsum("nhwij,oij->nohw", windows, WEIGHTS["conv_w"][:, 0]) + WEIGHTS["conv_b"][None, :, None, None]
    pool = conv.reshape(2, 5, 4, 2, 4, 2).max((3, 5))
    return np.maximum(pool.reshape(2, -1) @ WEIGHTS["fc_w"].T + WEIGHTS["fc_b"], 0)


def main():
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(0)
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)
    populate_network(network)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    x, y = RNG.standard_normal((2, 1, 10, 10)).astype(np.float32), cuda.pagelocked_empty((2, 6), np.float32)
    buffers = [cuda.to_device(x), cuda.mem_alloc(y.nbytes)]
    assert context.execute_v2([int(b) for b in buffers])
    cuda.memcpy_dtoh(y, buffers[1])
    assert np.allclose(y, reference(x), rtol=1e-4, atol=1e-4), np.abs(y - reference(x)).max()
    print("done", *sys.argv[1:])


if __name__ == "__main__":
    main()
