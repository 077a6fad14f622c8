# SPDX-License-Identifier: Apache-2.0
"""A builder class and an inference class as the EfficientDet and detectron2 samples have them: a network in one of several
precisions, a calibrator that is fed by an image batcher, layers that keep their type, a timing cache, debug output of the
engine; an inferer with the host's and the device's buffers in dicts."""
import logging
import os
import sys

import numpy as np
import tensorrt as trt
from cuda import cudart

logging.basicConfig(level=logging.INFO)
logging.getLogger("EngineBuilder").setLevel(logging.INFO)
log = logging.getLogger("EngineBuilder")


def cuda_call(call):
    err, *res = call
    if isinstance(err, cudart.cudaError_t) and err != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"Cuda Runtime Error: {cudart.cudaGetErrorName(err)[1]}")
    return res[0] if len(res) == 1 else res


class ImageBatcher:
    def __init__(self, image, shape, dtype, max_num_images):
        self.dtype, self.shape, self.batch_size = dtype, shape, shape[0]
        rng = np.random.default_rng(1)
        self.images = [image[0] + rng.normal(0, 0.02, image[0].shape).astype(dtype) for _ in range(max_num_images)]
        self.num_images = len(self.images)
        self.batches = [self.images[i:i + self.batch_size] for i in range(0, self.num_images, self.batch_size)]
        self.image_index = 0

    def get_batch(self):
        for batch in self.batches:
            data = np.zeros(self.shape, self.dtype)
            for i, image in enumerate(batch):
                data[i] = image
            self.image_index += len(batch)
            yield data, batch


class EngineCalibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self, cache_file):
        super().__init__()
        self.cache_file = cache_file
        self.image_batcher = None
        self.batch_allocation = None
        self.batch_generator = None

    def set_image_batcher(self, image_batcher):
        self.image_batcher = image_batcher
        size = int(np.dtype(self.image_batcher.dtype).itemsize * np.prod(self.image_batcher.shape))
        self.batch_allocation = cuda_call(cudart.cudaMalloc(size))
        self.batch_generator = self.image_batcher.get_batch()

    def get_batch_size(self):
        if self.image_batcher:
            return self.image_batcher.batch_size
        return 1

    def get_batch(self, names):
        if not self.image_batcher:
            return None
        try:
            batch, _ = next(self.batch_generator)
            log.info("Calibrating image {} / {}".format(self.image_batcher.image_index, self.image_batcher.num_images))
            data = np.ascontiguousarray(batch)
            cuda_call(cudart.cudaMemcpy(self.batch_allocation, data.ctypes.data, data.nbytes,
                                        cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))
            return [int(self.batch_allocation)]
        except StopIteration:
            log.info("Finished calibration batches")
            return None

    def read_calibration_cache(self):
        if self.cache_file is not None and os.path.exists(self.cache_file):
            with open(self.cache_file, "rb") as f:
                log.info("Using calibration cache file: {}".format(self.cache_file))
                return f.read()

    def write_calibration_cache(self, cache):
        if self.cache_file is None:
            return
        with open(self.cache_file, "wb") as f:
            log.info("Writing calibration cache data to: {}".format(self.cache_file))
            f.write(cache)


class EngineBuilder:
    def __init__(self, verbose=False, workspace=8):
        self.trt_logger = trt.Logger(trt.Logger.INFO)
        if verbose:
            self.trt_logger.min_severity = trt.Logger.Severity.VERBOSE
        trt.init_libnvinfer_plugins(self.trt_logger, namespace="")
        self.builder = trt.Builder(self.trt_logger)
        self.config = self.builder.create_builder_config()
        self.config.max_workspace_size = workspace * (2 ** 30)
        self.config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, workspace * (2 ** 30))
        self.network = None
        self.parser = None

    def create_network(self, onnx_path, batch_size=None, dynamic_batch_size=None):
        network_flags = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
        self.network = self.builder.create_network(network_flags)
        self.parser = trt.OnnxParser(self.network, self.trt_logger)
        onnx_path = os.path.realpath(onnx_path)
        with open(onnx_path, "rb") as f:
            if not self.parser.parse(f.read(), path=onnx_path):
                log.error("Failed to load ONNX file: {}".format(onnx_path))
                for error in range(self.parser.num_errors):
                    log.error(self.parser.get_error(error))
                sys.exit(1)
        log.info("Network Description")
        profile = self.builder.create_optimization_profile()
        dynamic_inputs = False
        for i in range(self.network.num_inputs):
            inp = self.network.get_input(i)
            log.info("Input '{}' with shape {} and dtype {}".format(inp.name, inp.shape, inp.dtype))
            if inp.shape[0] == -1:
                dynamic_inputs = True
                if dynamic_batch_size:
                    dynamic_batch_size = [int(v) for v in dynamic_batch_size.split(",")]
                    assert len(dynamic_batch_size) == 3
                    min_shape, opt_shape, max_shape = ([v] + list(inp.shape[1:]) for v in dynamic_batch_size)
                    profile.set_shape(inp.name, min_shape, opt_shape, max_shape)
                else:
                    shape = [batch_size] + list(inp.shape[1:])
                    profile.set_shape(inp.name, shape, shape, shape)
        for i in range(self.network.num_outputs):
            out = self.network.get_output(i)
            log.info("Output '{}' with shape {} and dtype {}".format(out.name, out.shape, out.dtype))
        if dynamic_inputs:
            self.config.add_optimization_profile(profile)
            self.config.set_calibration_profile(profile)

    def set_mixed_precision(self):
        """The first and the last layers are sensitive: they stay in higher precision."""
        self.config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        kinds = {}
        for i in range(self.network.num_layers):
            layer = self.network.get_layer(i)
            kinds.setdefault(layer.type, []).append(layer.name)
            if layer.type == trt.LayerType.CONVOLUTION and len(kinds[layer.type]) == 1:
                layer.precision = trt.DataType.FLOAT
                assert layer.precision_is_set
                log.info("Mixed-Precision Layer {} set to FLOAT".format(layer.name))
            if layer.type == trt.LayerType.SOFTMAX:
                layer.precision = trt.float32
                for j in range(layer.num_outputs):
                    layer.set_output_type(j, trt.float32)
                    assert layer.output_type_is_set(j) and layer.get_output_type(j) == trt.float32
        assert trt.LayerType.CONVOLUTION in kinds, kinds

    def create_engine(self, engine_path, precision, batcher=None, calib_cache=None, timing_cache=None):
        engine_path = os.path.realpath(engine_path)
        os.makedirs(os.path.dirname(engine_path), exist_ok=True)
        log.info("Building {} Engine in {}".format(precision, engine_path))
        if precision in ("fp16", "int8", "mixed"):
            if not self.builder.platform_has_fast_fp16:
                log.warning("FP16 is not supported natively on this platform/device")
            self.config.set_flag(trt.BuilderFlag.FP16)
        if precision in ("int8", "mixed"):
            if not self.builder.platform_has_fast_int8:
                log.warning("INT8 is not supported natively on this platform/device")
            self.config.set_flag(trt.BuilderFlag.INT8)
            self.config.int8_calibrator = EngineCalibrator(calib_cache)
            if calib_cache is None or not os.path.exists(calib_cache):
                self.config.int8_calibrator.set_image_batcher(batcher)
            if precision == "mixed":
                self.set_mixed_precision()
        cache_data = b""
        if timing_cache and os.path.exists(timing_cache):
            with open(timing_cache, "rb") as f:
                cache_data = f.read()
        self.config.set_timing_cache(self.config.create_timing_cache(cache_data), ignore_mismatch=False)
        self.config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        assert self.builder.is_network_supported(self.network, self.config)
        engine_bytes = self.builder.build_serialized_network(self.network, self.config)
        if engine_bytes is None:
            log.error("Failed to create engine")
            sys.exit(1)
        with open(engine_path, "wb") as f:
            log.info("Serializing engine to file: {:}".format(engine_path))
            f.write(engine_bytes)
        if timing_cache:
            with open(timing_cache, "wb") as f:
                f.write(memoryview(self.config.get_timing_cache().serialize()))


class TensorRTInfer:
    def __init__(self, engine_path):
        self.logger = trt.Logger(trt.Logger.ERROR)
        trt.init_libnvinfer_plugins(self.logger, namespace="")
        with open(engine_path, "rb") as f, trt.Runtime(self.logger) as runtime:
            assert runtime
            self.engine = runtime.deserialize_cuda_engine(f.read())
        assert self.engine
        self.context = self.engine.create_execution_context()
        assert self.context
        self.inputs, self.outputs, self.allocations = [], [], []
        for i in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(i)
            is_input = self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            dtype = np.dtype(trt.nptype(self.engine.get_tensor_dtype(name)))
            shape = self.context.get_tensor_shape(name)
            if is_input and shape[0] < 0:
                assert self.engine.num_optimization_profiles > 0
                profile_shape = self.engine.get_tensor_profile_shape(name, 0)
                assert len(profile_shape) == 3  # min,opt,max
                self.context.set_input_shape(name, profile_shape[2])
                shape = self.context.get_tensor_shape(name)
            if is_input:
                self.batch_size = shape[0]
            size = dtype.itemsize
            for s in shape:
                size *= s
            allocation = cuda_call(cudart.cudaMalloc(size))
            host_allocation = None if is_input else np.zeros(shape, dtype)
            binding = {"index": i, "name": name, "dtype": dtype, "shape": list(shape), "allocation": allocation,
                       "host_allocation": host_allocation, "size": size}
            self.allocations.append(allocation)
            (self.inputs if is_input else self.outputs).append(binding)
        assert self.batch_size > 0 and len(self.inputs) > 0 and len(self.outputs) > 0 and len(self.allocations) > 0

    def infer(self, batch):
        inp = self.inputs[0]
        cuda_call(cudart.cudaMemcpy(inp["allocation"], np.ascontiguousarray(batch), batch.nbytes,
                                    cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))
        self.context.execute_v2(self.allocations)
        for out in self.outputs:
            cuda_call(cudart.cudaMemcpy(out["host_allocation"], out["allocation"], out["size"],
                                        cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost))
        return [o["host_allocation"] for o in self.outputs]


def main():
    onnx, image, folder = sys.argv[1], np.load(sys.argv[2]), sys.argv[3]
    for precision in ("fp32", "fp16", "int8", "mixed"):
        path = os.path.join(folder, "engines", precision + ".engine")
        builder = EngineBuilder(verbose=precision == "fp16")
        builder.create_network(onnx, batch_size=4, dynamic_batch_size="1,4,4" if precision == "fp32" else None)
        builder.create_engine(path, precision, ImageBatcher(image, (4, 1, 28, 28), np.float32, 12),
                              os.path.join(folder, "calibration.cache"), os.path.join(folder, "timing.cache"))
        infer = TensorRTInfer(path)
        assert infer.batch_size == 4 and infer.outputs[0]["shape"] == [4, 10]
        scores = infer.infer(np.repeat(image, 4, 0))[0]
        assert (scores.argmax(1) == 7).all(), scores
    assert os.path.getsize(os.path.join(folder, "calibration.cache")) > 50
    print("done")


if __name__ == "__main__":
    main()
