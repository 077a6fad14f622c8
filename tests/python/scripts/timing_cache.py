# SPDX-License-Identifier: Apache-2.0
"""A timing cache in a file, a progress monitor, and the inspector."""
import json
import os
import sys

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


def main():
    logger, cache = trt.Logger(trt.Logger.INTERNAL_ERROR), sys.argv[2]
    monitor = Monitor()
    assert build(logger, cache + ".empty", None, True) is None         # nothing was measured yet
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
