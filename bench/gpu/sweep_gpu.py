# SPDX-License-Identifier: Apache-2.0
"""One network of bench/sweep on a GPU: built with --allow fp16 and compared with PyTorch in f32, clocked beside PyTorch's
CUDA graph in fp16. The form gpu8 has a batch of 8. The environment's SWEEP_DEVICE is a path: PATH.lock is
locked from the start of the build to the end of the clocks, so that one process at a time uses the device; PATH.timings
is the timing cache."""
import contextlib
import fcntl
import os
import time

import numpy as np
import torch

import sinter_c
from on_device import Deployed
from run_clock import clock, replay_of
from sweep_one import Stopped, distance, export, inputs_of, number_of, session, stage_of


SUSPECT = 1e-2  # a difference that fp16 need not explain


@contextlib.contextmanager
def device_alone():
    with open(os.environ["SWEEP_DEVICE"] + ".lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for part in value for t in tensors_in(part)] if hasattr(value, "__iter__") else []


class Module:
    """The network in PyTorch on the device, and its inputs: those of `feed` by name, or in order where none has a name."""

    def __init__(self, net, args, named, feed):
        if not set(feed) <= set(named) if named else len(feed) != len(tensors_in(args)):
            raise Stopped("torch", f"the model's inputs are {', '.join(feed)}")
        self.net, self.is_named = net.eval().cuda(), bool(named)  # an exporter may have left it in training
        self.is_list = bool(args) and isinstance(args[0], list)
        self.values = {key: value.cuda() for key, value in named.items()}
        self.values |= {key: torch.from_numpy(array).cuda() for key, array in feed.items()}

    def to_half(self):
        self.net.half()
        for key, value in self.values.items():
            value = value.half() if value.is_floating_point() else value
            self.values[key] = value.to(memory_format=torch.channels_last) if value.dim() == 4 else value
        if any(value.dim() == 4 for value in self.values.values()):
            self.net.to(memory_format=torch.channels_last)

    def __call__(self):
        with torch.inference_mode():
            if self.is_named:
                return tensors_in(self.net(**self.values))
            images = [value[0] for value in self.values.values()] if self.is_list else None
            return tensors_in(self.net(images) if images else self.net(*self.values.values()))

    def arrays(self):
        return [t.float().cpu().numpy() if t.is_floating_point() else t.cpu().numpy() for t in self()]


def compare(spec, folder, found):
    form, rng = spec.split("|")[3], np.random.default_rng(number_of(spec))
    path = str(folder / "model.onnx")
    made = stage_of("export", found, lambda: export(spec, path, 8 if form == "gpu8" else 1))
    if not made:
        return
    feed = inputs_of(path, rng)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def wanted():
        module = Module(*made, feed)
        return module, module.arrays()

    def deploy():
        library = sinter_c.Library(os.environ["SINTER_LIBRARY"])
        shapes = {name: list(array.shape) for name, array in feed.items()}
        start = time.time()
        engine = library.build(path, shapes, device="cuda", tune="fast", threads=16, allow=["fp16"], sample=feed,
                               timing_cache=os.environ["SWEEP_DEVICE"] + ".timings")
        found["build_s"] = round(time.time() - start, 1)
        deployed = Deployed(library, engine, feed)
        deployed.context.run()
        return deployed, deployed.context.outputs()

    with device_alone():
        ready = stage_of("torch", found, wanted)
        if not ready:
            return
        module, want = ready
        with torch.cuda.stream(torch.cuda.Stream()):
            built = stage_of("sinter", found, deploy)
            if not built:
                return
            deployed, got = built
            if len(got) != len(want) or any(np.shape(a) != np.shape(b) for a, b in zip(got, want)):
                found.update(stage="shape", error=f"{[np.shape(a) for a in got]} instead of {[np.shape(b) for b in want]}")
                return
            found["error_rms"] = max((distance(a, b) for a, b in zip(got, want)), default=0.0)
            if not found["error_rms"] <= SUSPECT:
                # Exporters, too, change what a network computes: then the model's results are the judge.
                want = session(path).run(None, feed)
                found["exported"], found["error_rms"] = found["error_rms"], max(map(distance, got, want), default=0.0)
            found["ms"], _, run = deployed.clock()
            found["on_host"] = run != deployed.context.run_async
            found["steps"], _, kinds = deployed.dearest(6)
            found["dearest"] = [f"{took:.1f} us {times} x {kernel} {problem[:120]}" for took, times, kernel, problem in kinds]
        found["stage"] = "done"
        torch.backends.cudnn.benchmark = True
        try:
            module.to_half()
            found["peer_error"] = max((distance(a, b) for a, b in zip(module.arrays(), want)), default=0.0)
            found["peer_ms"] = clock(replay_of(module))
            found["ratio"] = found["peer_ms"] / found["ms"]
        except Exception as e:  # a network that PyTorch does not run in fp16, or not in a graph, has no peer
            found["peer"] = f"{type(e).__name__}: {e}"[:200]
