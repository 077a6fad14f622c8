# SPDX-License-Identifier: Apache-2.0
"""The device's clock, events around batches of runs; graphs of PyTorch's work; how many kernels a run is."""
import statistics
import time

import torch


def clock(work, budget=1.0):
    """Milliseconds of `work`: the median of batches, over about `budget` seconds."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    inner = max(1, int(0.01 / max(time.perf_counter() - start, 1e-5)))
    times = []
    for _ in range(max(10, min(30, int(budget / (inner * 1e-3))))):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(inner):
            work()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) / inner)
    return statistics.median(times)


def replay_of(call):
    """A call that replays what `call` has the device do, as a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        outputs = call()

    def replay(_alive=(call, outputs)):
        """The graph holds addresses alone: what lies there must live as long as somebody can replay it."""
        made.replay()
    return replay


def count_kernels(work):
    """How many kernels one run of `work` has the device execute; copies and fills do not count."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        work()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("Memcpy", "Memset"))
               for event in profiler.events())
