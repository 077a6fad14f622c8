# SPDX-License-Identifier: Apache-2.0
"""The times of a model in PyTorch and on engines, side by side."""
import statistics
import time
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from ._compile import compile, device_of, mapped
from ._input import example_of
from ._module import CompiledModule


@dataclass
class Times:
    """Seconds of one call, a value for each round."""
    times: list
    median = property(lambda self: statistics.median(self.times))
    least = property(lambda self: min(self.times))
    most = property(lambda self: max(self.times))


@dataclass
class Benchmark:
    """torch, sinter: the Times of each. ratio: how often faster sinter's median is. difference: the rms of the difference of all
    outputs over the rms of PyTorch's. engines, fallback: what was compiled; None where that is not known."""
    torch: Times
    sinter: Times
    difference: float
    compile_seconds: float
    engines: int = None
    fallback: dict = None

    ratio = property(lambda self: self.torch.median / self.sinter.median)

    def __str__(self):
        lines = [f"{name:8} {t.median * 1e3:10.3f} ms   ({t.least * 1e3:.3f} to {t.most * 1e3:.3f} in {len(t.times)} rounds){more}"
                 for name, t, more in (("PyTorch", self.torch, ""), ("sinter", self.sinter, f"   {self.ratio:.2f}x"))]
        about = f"difference {self.difference:.2g} of the outputs' rms"
        if self.compile_seconds:
            about += f"; compiled in {self.compile_seconds:.1f} s"
        if self.engines is not None:
            about += f"; {self.engines} engine{'s' * (self.engines != 1)}, {len(self.fallback)} operators in PyTorch"
        return "\n".join([*lines, about])


def difference_of(a, b):
    """The rms of the difference over the rms of `a`, of all tensors of both."""
    gap = size = 0.0
    for x, y in zip(pytree.tree_leaves(a), pytree.tree_leaves(b)):
        if isinstance(x, torch.Tensor):
            gap += float((x.double() - y.double()).square().sum())
            size += float(x.double().square().sum())
    return (gap / size) ** 0.5 if size else float(gap > 0)


def benchmark(model, inputs, *, kwarg_inputs=None, compiled=None, rounds=9, seconds=0.2, quiet=False, **options):
    """Times a model in PyTorch and on engines, prints both, and returns a Benchmark.

    model, inputs, kwarg_inputs, options: as for sinter.torch.compile. compiled: what to time instead of compiling `model`.
    rounds: of each; the rounds take turns, so that a slow moment of the machine meets both. seconds: how long a round is, at least one
    call. The current numbers of threads, flags and streams of PyTorch hold. Gradients are off. Nothing is printed if quiet.
    Errors: ValueError, and those of compile."""
    if rounds < 1 or seconds <= 0:
        raise ValueError(f"rounds is {rounds} and seconds {seconds}; at least 1, and more than 0, are wanted")
    device = device_of(model)
    args = tuple(mapped(lambda v: example_of(v, device), tuple(inputs)))
    kwargs = mapped(lambda v: example_of(v, device), dict(kwarg_inputs or {}))
    spent = 0.0
    if compiled is None:
        begin = time.perf_counter()
        compiled = compile(model, inputs=inputs, kwarg_inputs=kwarg_inputs, **options)
        spent = time.perf_counter() - begin

    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def once(function, count):
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            function(*args, **kwargs)
        wait()
        return (time.perf_counter() - begin) / count

    ways = (model, compiled)
    with torch.no_grad():
        difference = difference_of(*(function(*args, **kwargs) for function in ways))
        counts = [max(1, round(seconds / max(min(once(f, 1) for _ in range(3)), 1e-7))) for f in ways]
        times = [Times([]), Times([])]
        for _ in range(rounds):
            for way, count, to in zip(ways, counts, times):
                to.times.append(once(way, count))
    report = compiled.report if isinstance(compiled, CompiledModule) else None
    made = Benchmark(*times, difference, spent, len(report.partitions) if report else None, dict(report.fallback) if report else None)
    if not quiet:
        print(made)
    return made
