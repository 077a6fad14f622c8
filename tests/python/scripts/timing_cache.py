# SPDX-License-Identifier: Apache-2.0
"""A timing cache in a file, a progress monitor, and the inspector."""
import json
import os
import re
import sys

import numpy as np
import tensorrt as trt


class Monitor(trt.IProgressMonitor):
    def __init__(self, steps=None):
        trt.IProgressMonitor.__init__(self)
        self.open, self.finished, self.steps = {}, [], steps

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.open[phase_name] = -1

    def phase_finish(self, phase_name):
        del self.open[phase_name]
        self.finished.append(phase_name)

    def step_complete(self, phase_name, step):
        assert step == self.open[phase_name] + 1
        self.open[phase_name] = step
        return self.steps is None or step < self.steps


def build(logger, cache_file, monitor, only_cached):
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse_from_file(sys.argv[1])
    network.get_input(0).shape = (1, 1, 28, 28)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.progress_monitor = monitor
    config.builder_optimization_level = 5           # a small model is measured, too
    buffer = b""
    if os.path.exists(cache_file):
        with open(cache_file, mode="rb") as f:
            buffer = f.read()
    timing_cache = config.create_timing_cache(buffer)
    config.set_timing_cache(timing_cache, False)
    if only_cached:
        config.set_flag(trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    plan = builder.build_serialized_network(network, config)
    with open(cache_file, "wb") as f:
        f.write(memoryview(config.get_timing_cache().serialize()))
    return plan


class Lines(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.all = []

    def log(self, severity, msg):
        self.all.append(msg)


def edit():
    """Every key gets each of its other tactics, as the log calls them; the engine then has the steps that were asked for. The log is read
    as TensorRT's."""
    logger = Lines()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 64, 32, 32))
    kernel = np.linspace(-1, 1, 64 * 64 * 9, dtype=np.float32)
    network.mark_output(network.add_convolution_nd(x, 64, (3, 3), kernel).get_output(0))
    config = builder.create_builder_config()
    config.builder_optimization_level = 5
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    assert config.set_timing_cache(config.create_timing_cache(b""), ignore_mismatch=False)

    def tactics():
        inspector = builder.build_engine_with_config(network, config).create_engine_inspector()
        layers = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
        return [layer["Tactic"] for layer in layers if layer["LayerType"] == "conv"]

    tactics()
    cache, edited = config.get_timing_cache(), 0
    keys = cache.queryKeys()
    assert keys and all(trt.TimingCacheKey.parse(str(key)) == key for key in keys)
    found, now = {}, None
    for line in logger.all:
        op = re.fullmatch(r"Autotuning op (.+)\(key: (0x[0-9a-f]{32})\):", line)
        row = re.fullmatch(r"\d+, [\d.e+-]+, [\d.]+, [\d.]+, (\w+), (0x[0-9a-f]+), (.*)", line)
        taken = re.fullmatch(r"The selected tactic is \(tactic hash, cost\(in ms\)\):(0x[0-9a-f]+), [\d.e+-]+", line)
        if op:
            now = found[op.group(2)] = {"op": op.group(1), "tactics": {}}
        elif row:
            now["tactics"][int(row.group(2), 16)] = row.group(1) + " " + row.group(3)
        elif taken:
            assert int(taken.group(1), 16) in now["tactics"]
    for key in keys:
        best, names = cache.query(key), found[str(key)]["tactics"]
        assert best.tacticHash in names and best.timingMSec > 0
        assert not cache.update(key, trt.TimingCacheValue(12345, 1.0))
        for other in names.keys() - {best.tacticHash}:
            assert cache.update(key, trt.TimingCacheValue(other, best.timingMSec))
            assert cache.query(key).tacticHash == other and abs(cache.query(key).timingMSec / best.timingMSec - 1) < 1e-5
            if found[str(key)]["op"] == "(Unnamed Layer* 0) [Convolution]":
                edited += 1
                tactic, = tactics()
                assert f" {tactic} " in names[other]
    assert edited
    unknown = trt.TimingCacheKey.parse("0x" + "12" * 16)
    assert cache.query(unknown).timingMSec < 0 and not cache.update(unknown, best)
    best.timingMSec = float("nan")
    assert cache.update(keys[0], best) and keys[0] not in cache.queryKeys() and len(cache.queryKeys()) == len(keys) - 1


def main():
    edit()
    logger, cache = trt.Logger(trt.Logger.INTERNAL_ERROR), sys.argv[2]
    monitor = Monitor()
    plan = build(logger, cache + ".empty", None, True)
    assert plan is None                                                 # nothing was measured yet
    for no_engine, word in ((plan, "build failed"), ("model.plan", "path"), (3, "int")):
        try:
            trt.Runtime(logger).deserialize_cuda_engine(no_engine)
            raise AssertionError(word)
        except TypeError as e:
            assert word in str(e)
    assert build(logger, cache, monitor, False) is not None
    assert monitor.finished and not monitor.open and os.path.getsize(cache) > 100
    plan = build(logger, cache, None, True)
    assert bytes(plan) == bytes(build(logger, cache, None, True))
    assert build(logger, cache, Monitor(0), False) is None              # cancelled by the monitor
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    inspector = engine.create_engine_inspector()
    info = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    assert len(info["Layers"]) == engine.num_layers and info["Bindings"] == ["image", "scores"]
    assert all(layer["Name"] and layer["LayerType"] and layer["TacticName"] for layer in info["Layers"])
    assert "conv1" in inspector.get_layer_information(0, trt.LayerInformationFormat.ONELINE)
    print("done")


if __name__ == "__main__":
    main()
