# SPDX-License-Identifier: Apache-2.0
"""An engine on a GPU as a bench runs it: inputs and outputs in device memory, one stream, the device's clock."""
import statistics
import time

import torch

import sinter_c
from run_clock import clock


def seconds(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def whole(work):
    """Median milliseconds of `work` and all that it has the device do, from outside."""
    def once():
        work()
        torch.cuda.synchronize()
    return statistics.median(seconds(once)[0] for _ in range(30)) * 1e3


class Deployed:
    """A context of an engine on the current stream. `inputs`: name -> array; copies of them lie on the device."""

    def __init__(self, library, engine_bytes, inputs):
        self.library, self.bytes, self.inputs = library, engine_bytes, inputs
        self.on_device = {name: torch.from_numpy(array).cuda() for name, array in inputs.items()}
        self.ready_s, self.context = seconds(self.load)

    def load(self):
        self.engine = self.library.load(self.bytes, trust_code=True)
        return self.make()

    def make(self, timing=False):
        """A context whose inputs are those on the device."""
        context = self.engine.context(timing, torch.cuda.current_stream().cuda_stream)
        for name, array in self.inputs.items():
            context.set_device_input(name, str(array.dtype), array.shape, self.on_device[name].data_ptr() or 256)
        return context

    def clock(self):
        """After a run: milliseconds of a run, microseconds of the host for one, and the call that was clocked. A network
        with host steps, or whose outputs have sizes that data decide, is clocked from outside, its results on the host."""
        try:
            self.place_outputs()
            self.context.run_async()
            self.context.wait()
            ms = clock(self.context.run_async)
            self.context.wait()
            host_us = seconds(lambda: [self.context.run_async() for _ in range(20)])[0] / 20 * 1e6
            self.context.wait()
            return ms, host_us, self.context.run_async
        except sinter_c.SinterError as error:
            if "host" not in str(error) and "data decide" not in str(error):
                raise
        self.context = self.make()
        self.context.run()
        return whole(self.context.run), float("nan"), self.context.run

    def place_outputs(self):
        self.results = [torch.tensor(array, device="cuda") for array in self.context.outputs()]
        for name, tensor in zip(self.engine.outputs, self.results):
            self.context.set_device_output(name, tensor.data_ptr(), tensor.numel() * tensor.element_size())

    def dearest(self, count):
        """How many steps there are, their microseconds one by one, and the dearest kinds: (microseconds, how many, kernel,
        problem). These times hold two event nodes a step."""
        context, alike = self.make(timing=True), {}
        for _ in range(5):
            context.run()
        steps = context.steps()
        for step in steps:
            alike.setdefault((step["kernel"], step["problem"]), []).append(step["min_ns"] / 1e3)
        kinds = sorted(((sum(times), len(times), *kind) for kind, times in alike.items()), reverse=True)
        return len(steps), sum(step["min_ns"] for step in steps) / 1e3, kinds[:count]
