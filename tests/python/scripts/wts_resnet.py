# SPDX-License-Identifier: Apache-2.0
"""A residual network by calls, in the style of tensorrtx: weights in a text file of hexadecimal words (.wts), batch norm as a scale
layer, blocks with shortcuts, an API version of the engine that is saved and loaded; old spellings of version 7 and 8."""
import struct
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

BATCH_SIZE, INPUT_H, INPUT_W, OUTPUT_SIZE = 1, 32, 32, 10
INPUT_BLOB_NAME, OUTPUT_BLOB_NAME, EPS = "data", "prob", 1e-5
TRT_LOGGER = trt.Logger(trt.Logger.WARNING)


def write_wts(path):
    """What gen_wts.py writes: a line for each tensor: name, count, words."""
    rng = np.random.default_rng(5)
    made = {}

    def conv(name, out, cin, k):
        made[name + ".weight"] = rng.normal(0, (2 / (cin * k * k)) ** 0.5, (out, cin, k, k))

    def norm(name, n):
        made.update({name + ".weight": rng.uniform(0.5, 1.5, n), name + ".bias": rng.normal(0, 0.1, n),
                     name + ".running_mean": rng.normal(0, 0.1, n), name + ".running_var": rng.uniform(0.5, 1.5, n)})
    conv("conv1", 16, 3, 7)
    norm("bn1", 16)
    width = 16
    for stage, out in ((1, 16), (2, 32)):
        for block in range(2):
            name = f"layer{stage}.{block}."
            conv(name + "conv1", out, width, 3)
            norm(name + "bn1", out)
            conv(name + "conv2", out, out, 3)
            norm(name + "bn2", out)
            if stage == 2 and block == 0:
                conv(name + "downsample.0", out, width, 1)
                norm(name + "downsample.1", out)
            width = out
    made["fc.weight"], made["fc.bias"] = rng.normal(0, 0.2, (10, 32)), rng.normal(0, 0.1, 10)
    with open(path, "w") as f:
        f.write("{}\n".format(len(made)))
        for name, array in made.items():
            flat = array.astype(np.float32).reshape(-1)
            f.write("{} {}".format(name, len(flat)))
            for v in flat:
                f.write(" " + struct.pack(">f", float(v)).hex())
            f.write("\n")


def load_weights(file):
    weight_map = {}
    with open(file, "r") as f:
        lines = f.readlines()
    count = int(lines[0])
    assert count == len(lines) - 1
    for i in range(1, count + 1):
        splits = lines[i].split(" ")
        name = splits[0]
        cur_count = int(splits[1])
        assert cur_count + 2 == len(splits)
        values = [struct.unpack(">f", bytes.fromhex(word.strip()))[0] for word in splits[2:]]
        weight_map[name] = np.array(values, dtype=np.float32)
    return weight_map


def addBatchNorm2d(network, weight_map, input, layer_name, eps):
    gamma = weight_map[layer_name + ".weight"]
    beta = weight_map[layer_name + ".bias"]
    mean = weight_map[layer_name + ".running_mean"]
    var = np.sqrt(weight_map[layer_name + ".running_var"] + eps)
    scale = gamma / var
    shift = -mean / var * gamma + beta
    return network.add_scale(input=input, mode=trt.ScaleMode.CHANNEL, shift=shift, scale=scale)


def basic_block(network, weight_map, input, in_channels, out_channels, stride, layer_name):
    conv1 = network.add_convolution(input=input, num_output_maps=out_channels, kernel_shape=(3, 3),
                                    kernel=weight_map[layer_name + "conv1.weight"], bias=trt.Weights())
    assert conv1
    conv1.stride = (stride, stride)
    conv1.padding = (1, 1)
    bn1 = addBatchNorm2d(network, weight_map, conv1.get_output(0), layer_name + "bn1", EPS)
    assert bn1
    relu1 = network.add_activation(bn1.get_output(0), type=trt.ActivationType.RELU)
    assert relu1
    conv2 = network.add_convolution_nd(relu1.get_output(0), out_channels, (3, 3), weight_map[layer_name + "conv2.weight"], trt.Weights())
    conv2.stride_nd, conv2.padding_nd = (1, 1), (1, 1)
    bn2 = addBatchNorm2d(network, weight_map, conv2.get_output(0), layer_name + "bn2", EPS)
    if in_channels != out_channels:
        conv3 = network.add_convolution(input, out_channels, (1, 1), weight_map[layer_name + "downsample.0.weight"])
        conv3.stride = trt.DimsHW(stride, stride)
        shortcut = addBatchNorm2d(network, weight_map, conv3.get_output(0), layer_name + "downsample.1", EPS).get_output(0)
    else:
        shortcut = input
    ew1 = network.add_elementwise(shortcut, bn2.get_output(0), trt.ElementWiseOperation.SUM)
    relu2 = network.add_activation(ew1.get_output(0), trt.ActivationType.RELU)
    relu2.name = layer_name + "out"
    return relu2


def create_engine(weights, builder, config, dt):
    network = builder.create_network(1 << (int)(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    data = network.add_input(INPUT_BLOB_NAME, dt, (BATCH_SIZE, 3, INPUT_H, INPUT_W))
    assert data
    weight_map = load_weights(weights)
    conv1 = network.add_convolution(input=data, num_output_maps=16, kernel_shape=(7, 7), kernel=weight_map["conv1.weight"],
                                    bias=trt.Weights())
    conv1.stride, conv1.padding = (2, 2), (3, 3)
    bn1 = addBatchNorm2d(network, weight_map, conv1.get_output(0), "bn1", EPS)
    relu1 = network.add_activation(bn1.get_output(0), type=trt.ActivationType.RELU)
    pool1 = network.add_pooling(input=relu1.get_output(0), window_size=trt.DimsHW(3, 3), type=trt.PoolingType.MAX)
    assert pool1
    pool1.stride = trt.DimsHW(2, 2)
    pool1.padding = trt.DimsHW(1, 1)
    x = basic_block(network, weight_map, pool1.get_output(0), 16, 16, 1, "layer1.0.")
    x = basic_block(network, weight_map, x.get_output(0), 16, 16, 1, "layer1.1.")
    x = basic_block(network, weight_map, x.get_output(0), 16, 32, 2, "layer2.0.")
    x = basic_block(network, weight_map, x.get_output(0), 32, 32, 1, "layer2.1.")
    pool2 = network.add_pooling(x.get_output(0), window_size=trt.DimsHW(4, 4), type=trt.PoolingType.AVERAGE)
    pool2.stride = (1, 1)
    fc1 = network.add_fully_connected(input=pool2.get_output(0), num_outputs=OUTPUT_SIZE, kernel=weight_map["fc.weight"],
                                      bias=weight_map["fc.bias"])
    assert fc1
    fc1.get_output(0).name = OUTPUT_BLOB_NAME
    network.mark_output(fc1.get_output(0))
    builder.max_batch_size = BATCH_SIZE
    builder.max_workspace_size = 1 << 20
    config.max_workspace_size = 1 << 20
    engine = builder.build_engine(network, config)
    del network
    del weight_map
    return engine


def reference(w, x):
    """The same in NumPy."""
    def conv(x, name, out, stride, pad):
        kernel = w[name + ".weight"].reshape(out, x.shape[0], -1)
        k = int(round(kernel.shape[2] ** 0.5))
        kernel = kernel.reshape(out, x.shape[0], k, k)
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), (1, 2))[:, ::stride, ::stride]
        return np.einsum("chwij,ocij->ohw", windows, kernel)

    def norm(x, name):
        gamma, beta, mean, var = (w[f"{name}.{p}"][:, None, None] for p in ("weight", "bias", "running_mean", "running_var"))
        return (x - mean) / np.sqrt(var + EPS) * gamma + beta
    relu = lambda x: np.maximum(x, 0)                                        # noqa: E731
    x = np.pad(relu(norm(conv(x, "conv1", 16, 2, 3), "bn1")), ((0, 0), (1, 1), (1, 1)))
    x = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))
    for stage, out in ((1, 16), (2, 32)):
        for block in range(2):
            name = f"layer{stage}.{block}."
            first = stage == 2 and block == 0
            y = relu(norm(conv(x, name + "conv1", out, 2 if first else 1, 1), name + "bn1"))
            y = norm(conv(y, name + "conv2", out, 1, 1), name + "bn2")
            x = relu(y + (norm(conv(x, name + "downsample.0", out, 2, 0), name + "downsample.1") if first else x))
    return w["fc.weight"].reshape(10, 32) @ x.mean((1, 2)) + w["fc.bias"]


def do_inference(context, host_in, host_out, batch_size):
    engine = context.engine
    assert engine.num_bindings == 2
    devide_in = cuda.mem_alloc(host_in.nbytes)
    devide_out = cuda.mem_alloc(host_out.nbytes)
    bindings = [int(devide_in), int(devide_out)]
    stream = cuda.Stream()
    cuda.memcpy_htod_async(devide_in, host_in, stream)
    context.execute_async(bindings=bindings, stream_handle=stream.handle)
    cuda.memcpy_dtoh_async(host_out, devide_out, stream)
    stream.synchronize()
    devide_in.free()
    devide_out.free()


def main():
    weights, engine_path = sys.argv[1] + ".wts", sys.argv[1] + ".engine"
    write_wts(weights)
    builder = trt.Builder(TRT_LOGGER)
    config = builder.create_builder_config()
    engine = create_engine(weights, builder, config, trt.float32)
    assert engine
    with open(engine_path, "wb") as f:
        f.write(engine.serialize())
    del engine, builder
    runtime = trt.Runtime(TRT_LOGGER)
    with open(engine_path, "rb") as f:
        engine = runtime.deserialize_cuda_engine(f.read())
    context = engine.create_execution_context()
    data = np.random.default_rng(6).normal(0, 1, (3, INPUT_H, INPUT_W)).astype(np.float32)
    host_in = cuda.pagelocked_empty(BATCH_SIZE * 3 * INPUT_H * INPUT_W, dtype=np.float32)
    np.copyto(host_in, data.ravel())
    host_out = cuda.pagelocked_empty(OUTPUT_SIZE, dtype=np.float32)
    do_inference(context, host_in, host_out, BATCH_SIZE)
    want = reference({k: v.astype(np.float64) for k, v in load_weights(weights).items()}, data.astype(np.float64))
    assert np.abs(host_out - want).max() < 1e-4 * np.abs(want).max(), (host_out, want)
    print("done")


if __name__ == "__main__":
    main()
