# SPDX-License-Identifier: Apache-2.0
"""Calibrators of sinter.tensorrt: each class, their caches, calibration profiles and dynamic ranges. What ranges are right is
shown in test_calibrate.py; here the engine must be the one of those ranges. On CPUs 8 bits are not always faster, so builds are
told to take them."""
import os
import re
import sys

import rig

import numpy as np  # noqa: I001
import sinter
import sinter.tensorrt as trt
from random_models import data, initializer, model, node, value

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
RNG = np.random.default_rng(2)
W, V = RNG.standard_normal((64, 128)).astype("f4"), RNG.standard_normal((128, 32)).astype("f4")
MODEL = model(node("MatMul", ["x", "w"], ["a"]) + node("Relu", ["a"], ["b"]) + node("MatMul", ["b", "v"], ["y"]) + initializer("w", W) +
              initializer("v", V) + data(11, value("x", "f32", ["N", 64])) + data(12, value("y", "f32", ["N", 32])))
BATCHES = [RNG.standard_normal((64, 64)).astype("f4") * (i + 1) for i in range(3)]
METHODS = {trt.IInt8EntropyCalibrator: ("entropy", "EntropyCalibration"), trt.IInt8EntropyCalibrator2: ("entropy2", "EntropyCalibration2"),
           trt.IInt8MinMaxCalibrator: ("minmax", "MinMaxCalibration"), trt.IInt8LegacyCalibrator: ("legacy", "LegacyCalibration")}
LEGACY = {"quantile": 0.97, "cutoff": 0.9}


class Logger(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, msg):
        if severity <= trt.Logger.INFO:
            self.lines.append(msg)

    def said(self, text):
        return any(text in line for line in self.lines)


def calibrator(base, cache=None, batches=BATCHES, old=False):
    class Calibrator(base):
        def __init__(self):
            base.__init__(self)
            self.read, self.written, self.given = cache, None, 0
            self.memory = None

        def get_batch_size(self):
            return len(batches[0]) if batches else 1

        def take(self, names):
            assert names == ["x"]
            if self.given == len(batches):
                return None
            self.memory = batches[self.given].copy()
            self.given += 1
            return [self.memory.ctypes.data]

        if old:
            def get_batch(self, names, p_str):
                return self.take(names)
        else:
            def get_batch(self, names):
                return self.take(names)

        def read_calibration_cache(self):
            return self.read

        def write_calibration_cache(self, cache):
            self.written = bytes(cache)

        def get_quantile(self):
            return LEGACY["quantile"]

        def get_regression_cutoff(self):
            return LEGACY["cutoff"]
    return Calibrator()


def build(calibrator=None, ranges=None, int8=True, profile=None, logger=None, file=MODEL):
    logger = logger or Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(file)
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    shapes = builder.create_optimization_profile()
    shapes.set_shape("x", (1, 64), (64, 64), (64, 64))
    config.add_optimization_profile(shapes)
    if int8:
        config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    if profile:
        own = builder.create_optimization_profile()
        own.set_shape("x", *[(profile, 64)] * 3)
        assert config.set_calibration_profile(own) and config.get_calibration_profile() is own
    for i in range(network.num_layers):
        for k in range(network.get_layer(i).num_outputs):
            tensor = network.get_layer(i).get_output(k)
            if ranges and tensor.name in ranges:
                assert tensor.set_dynamic_range(*ranges[tensor.name]) and tensor.dynamic_range == ranges[tensor.name]
    if ranges and "x" in ranges:
        network.get_input(0).dynamic_range = ranges["x"]
    own = network._build
    network._build = lambda options, profiles: own(dict(options, lower="always"), profiles)
    plan = builder.build_serialized_network(network, config)
    return bytes(plan) if plan else None


def wanted(ranges):
    options = {} if ranges is None else {"allow": "int8", "calibration": ranges}
    return bytes(sinter.build(MODEL, tune="off", lower="always", profiles={"x": ((1, 64), (64, 64), (64, 64))}, **options))


def same(plan, other):
    """The same numbers in the same types: a network's engine names its model differently."""
    runs = [sinter.load(p).context().run({"x": BATCHES[0]})["y"].tobytes() for p in (plan, other)]
    return runs[0] == runs[1] and quantized(plan) == quantized(other)


def quantized(plan):
    found = re.search(rb"[(](\d+) of 2 products in 8 bits", plan)
    return int(found.group(1)) if found else 0


SAMPLES = [{"x": b} for b in BATCHES]


def test_classes():
    for base, (method, word) in METHODS.items():
        given = calibrator(base, old=base is trt.IInt8MinMaxCalibrator)
        assert given.get_algorithm().name.startswith(word[:6].upper())
        options = LEGACY if method == "legacy" else {}
        ranges = sinter.calibrate(MODEL, SAMPLES, method=method, **options)
        plan = build(given)
        assert quantized(plan) == 2 and given.given == len(BATCHES)
        assert given.written == bytes(ranges) and given.written.startswith(b"TRT-101600-" + word.encode() + b"\n")
        assert same(plan, wanted(ranges))
        # From the cache: no batch is asked for, and the engine is the same.
        again = calibrator(base, cache=given.written)
        assert build(again) == plan and again.given == 0 and again.written is None


def test_caches_that_do_not_fit():
    ranges = sinter.calibrate(MODEL, SAMPLES, method="minmax")
    logger = Logger()
    given = calibrator(trt.IInt8EntropyCalibrator2, cache=bytes(ranges))
    build(given, logger=logger)
    assert given.given == len(BATCHES) and logger.said("'TRT-101600-MinMaxCalibration', the calibrator's are 'EntropyCalibration2'")
    # Of another version, with other tensors, too: what fits is taken.
    text = bytes(ranges).replace(b"101600", b"8601").replace(b"x: ", b"other: ")
    assert quantized(build(calibrator(trt.IInt8MinMaxCalibrator, cache=text))) == 1
    logger = Logger()
    assert build(calibrator(trt.IInt8MinMaxCalibrator, cache=text[:-3]), logger=logger) is None and logger.said("line ")
    logger = Logger()
    assert build(calibrator(trt.IInt8MinMaxCalibrator, batches=[]), logger=logger) is None and logger.said("no batch")


def test_calibration_profile():
    """The batches have the calibration profile's shape, whatever the engine takes."""
    given = calibrator(trt.IInt8MinMaxCalibrator, batches=[b[:5] for b in BATCHES])
    assert quantized(build(given, profile=5)) == 2
    assert given.written == bytes(sinter.calibrate(MODEL, [{"x": b[:5]} for b in BATCHES], method="minmax"))


def test_dynamic_ranges():
    ranges = sinter.Calibration()
    ranges["b"], ranges["x"] = 30.0, 4.0
    plan = build(ranges={"x": (-4.0, 3.5), "b": (0.0, 30.0)})
    assert quantized(plan) == 2 and same(plan, wanted(ranges))
    assert quantized(build(ranges={"b": (-1.0, 30.0)})) == 1
    # They win over a calibrator's.
    given = calibrator(trt.IInt8MinMaxCalibrator)
    both = sinter.calibrate(MODEL, SAMPLES, method="minmax")
    both["b"] = 30.0
    assert same(build(given, ranges={"b": (0.0, 30.0)}), wanted(both))
    # Without the flag nothing is quantised, and a calibrator is not asked.
    given = calibrator(trt.IInt8MinMaxCalibrator)
    assert same(build(given, int8=False), wanted(None)) and given.given == 0
    network = trt.Builder(Logger()).create_network(0)
    tensor = network.add_input("x", trt.float32, (1, 4))
    assert tensor.dynamic_range is None and not tensor.set_dynamic_range(2, 1) and not tensor.set_dynamic_range(0, float("nan"))
    rig.raises(ValueError, setattr, tensor, "dynamic_range", (0, 0), says="not both 0")
    assert tensor.set_dynamic_range(-1, 2) and network.get_input(0).dynamic_range == (-1, 2)
    tensor.reset_dynamic_range()
    assert tensor.dynamic_range is None


def test_polygraphy():
    """Polygraphy's own calibrator, unmodified."""
    try:
        import polygraphy  # noqa: F401
    except ImportError:
        print("     polygraphy is not installed")
        return
    # Polygraphy asks for a module "torch"; the folder of that name beside this file is none.
    sys.path[:] = [path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(os.path.realpath(__file__))]
    trt.install_as_tensorrt()
    from polygraphy.backend.trt import Calibrator, CreateConfig, NetworkFromOnnxBytes, Profile, TrtRunner, engine_from_network
    for base, (_, word) in METHODS.items():
        path = rig.FOLDER / f"{word}.cache"
        profile = Profile().add("x", (1, 64), (64, 64), (64, 64))
        used = []

        def give():
            for batch in BATCHES:
                used.append(len(batch))
                yield {"x": batch}
        for _ in range(2):
            own = Calibrator(give(), cache=str(path), BaseClass=base, quantile=0.9999, regression_cutoff=1.0)
            with TrtRunner(engine_from_network(NetworkFromOnnxBytes(MODEL), CreateConfig(int8=True, profiles=[profile], calibrator=own))) as runner:
                y = runner.infer({"x": BATCHES[0]})["y"]
            exact = np.maximum(BATCHES[0] @ W, 0) @ V
            assert np.abs(y - exact).max() < 0.2 * np.abs(exact).max()
            assert path.read_bytes().startswith(b"TRT-101600-" + word.encode() + b"\n")
        assert len(used) == len(BATCHES), "the second build reads the cache"


if __name__ == "__main__":
    rig.main(__name__)
