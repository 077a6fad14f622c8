# SPDX-License-Identifier: Apache-2.0
"""INT8 with a calibrator that gives batches from memory of the device, and keeps what was found in a calibration cache."""
import os
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt


class Calibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self, image, batches, cache_file):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.image, self.left, self.cache_file = image, batches, cache_file
        self.device_input = cuda.mem_alloc(image.nbytes)

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        assert names == ["image"]
        if self.left == 0:
            return None
        self.left -= 1
        cuda.memcpy_htod(self.device_input, np.ascontiguousarray(self.image * (1 + self.left / 8)))
        return [int(self.device_input)]

    def read_calibration_cache(self):
        if os.path.exists(self.cache_file):
            with open(self.cache_file, "rb") as f:
                return f.read()

    def write_calibration_cache(self, cache):
        with open(self.cache_file, "wb") as f:
            f.write(cache)


def build(model, image, calibrator, logger):
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    assert trt.OnnxParser(network, logger).parse_from_file(model)
    network.get_input(0).shape = [1, 1, 28, 28]
    config = builder.create_builder_config()
    if builder.platform_has_fast_int8:
        config.set_flag(trt.BuilderFlag.INT8)
    if builder.platform_has_fast_fp16:
        config.set_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    config.int8_calibrator = calibrator
    return builder.build_engine(network, config)


def main():
    image, cache = np.load(sys.argv[2]), sys.argv[3]
    logger = trt.Logger(trt.Logger.ERROR)
    first = Calibrator(image, 4, cache)
    assert build(sys.argv[1], image, first, logger) and first.left == 0
    # The second build reads the cache and takes no batch.
    second = Calibrator(image, 4, cache)
    engine = build(sys.argv[1], image, second, logger)
    assert second.left == 4
    out = cuda.pagelocked_empty(10, np.float32)
    memory = cuda.to_device(image), cuda.mem_alloc(out.nbytes)
    context = engine.create_execution_context()
    assert context.execute_v2([int(m) for m in memory])
    cuda.memcpy_dtoh(out, memory[1])
    with open(cache) as file:
        print("class", int(out.argmax()), "ranges", len(file.readlines()) - 1)


if __name__ == "__main__":
    main()
