# SPDX-License-Identifier: Apache-2.0
"""The device's clock: events around batches of replays, the median batch."""
import statistics
import time

import torch


def clock(work, budget=1.0):
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
