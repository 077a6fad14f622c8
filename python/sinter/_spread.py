# SPDX-License-Identifier: Apache-2.0
"""A batch split over several engines, one for each device."""
import os
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from ._dtype import numpy
from ._engine import Engine, Plan, load


class Spread:
    """Runs batches on several engines at the same time.

        with sinter.Spread("model.sinter", devices=["cuda:0", "cuda:1"]) as many:
            scores = many.run({"image": images})["scores"]          # in the order of the images, none is dropped

    engines: a list of Engines of one model; or a plan, a path or bytes, which is loaded for each of `devices` with `options`.
    The first axis is the batch: of the inputs that have its size, and of the outputs. Other inputs are given to every engine whole. A
    batch is cut into parts as equal as can be, that the profile permits: at least one for each engine where there are rows enough. An
    engine that was built for a fixed batch gets parts of this size; the last row is repeated in the last part, and what comes of that
    is cut off. Any number of threads may call run; parts wait for an engine that is free. Needs NumPy.
    Errors: ValueError (no engine, engines that differ), those of load."""

    def __init__(self, engines, devices=None, **options):
        if isinstance(engines, (str, bytes, os.PathLike, Plan)):
            if not devices:
                raise ValueError("devices are missing: names such as cuda:0, one for each engine")
            engines = [load(engines, device=device, **options) for device in devices]
        self.engines = list(engines)
        if not self.engines or not all(isinstance(e, Engine) for e in self.engines):
            raise ValueError("no engine is given" if not self.engines else "engines are a list of Engine")
        faces = [[(io.name, io.dtype, io.shape) for io in (*e.inputs, *e.outputs)] for e in self.engines]
        for i, face in enumerate(faces):
            if face != faces[0]:
                raise ValueError(f"engines 0 and {i} differ in their inputs and outputs")
        self._find_batch()
        self._free, self._contexts = SimpleQueue(), [e.context() for e in self.engines]
        for context in self._contexts:
            self._free.put(context)
        self._pool = ThreadPoolExecutor(len(self.engines), "sinter.Spread")

    def _find_batch(self):
        first = self.engines[0]
        with_axis = [io for io in first.inputs if len(io.shape)]
        lead = next((io for io in with_axis if io.shape[0] < 0), with_axis[0] if with_axis else None)
        if lead is None:
            raise ValueError("no input has a first axis, which would be the batch")
        self.is_fixed = lead.shape[0] >= 0

        def has_it(io):
            return len(io.shape) > 0 and (io.shape[0] == lead.shape[0] if self.is_fixed else io.dim_text[0] == lead.dim_text[0])
        self.batched = [io.name for io in first.inputs if has_it(io)]
        self.whole = [io.name for io in first.inputs if not has_it(io)]
        self.results = {io.name: has_it(io) for io in first.outputs}
        for io in first.outputs:
            if not self.results[io.name] and len(io.shape) and lead.dim_text[0] in io.dim_text[0] and not self.is_fixed:
                raise ValueError(f"the first axis of output '{io.name}' is {io.dim_text[0]}; the batch is {lead.dim_text[0]}")
        limits = [next(io for io in e.inputs if io.name == lead.name) for e in self.engines]
        self.least, self.most = max(io.min[0] for io in limits), min(io.max[0] for io in limits)

    def parts(self, rows):
        """The sizes of the parts that a batch of so many rows is cut into. Errors: ValueError."""
        if rows < 1:
            raise ValueError(f"the batch has {rows} rows")
        if self.is_fixed:
            return [min(self.most, rows - at) for at in range(0, rows, self.most)]
        count = max(-(-rows // self.most), min(len(self.engines), rows // max(self.least, 1)))
        if count < 1 or rows // count < self.least:
            raise ValueError(f"a batch of {rows} rows cannot be cut into parts of at least {self.least} and at most {self.most}")
        return [rows // count + (i < rows % count) for i in range(count)]

    def _run_part(self, inputs, at, size):
        np, context = numpy(), self._free.get()
        try:
            given = {name: inputs[name][at:at + size] for name in self.batched}
            if self.is_fixed and size < self.most:
                given = {name: np.concatenate([v, np.repeat(v[-1:], self.most - size, 0)]) for name, v in given.items()}
            given.update((name, inputs[name]) for name in self.whole)
            made = context.run(given)
            return {name: np.asarray(v)[:size] if self.results[name] else v for name, v in made.items()}
        finally:
            self._free.put(context)

    def run(self, inputs=None, **named):
        """Runs a batch and gives a dict of arrays, as Context.run does. Errors: ValueError (inputs, the size of the batch), and those of
        Context.run, of the first part that fails."""
        if self._pool is None:
            raise ValueError("this Spread is closed")
        np, given = numpy(), dict(inputs or {}, **named)
        unknown = [n for n in given if n not in self.batched and n not in self.whole]
        missing = [n for n in (*self.batched, *self.whole) if n not in given]
        if unknown or missing:
            raise ValueError(f"there is no input '{unknown[0]}'" if unknown else f"input '{missing[0]}' is missing")
        given = {name: v if hasattr(v, "__getitem__") and hasattr(v, "shape") else np.asarray(v) for name, v in given.items()}
        rows = given[self.batched[0]].shape[0]
        for name in self.batched:
            if given[name].shape[0] != rows:
                raise ValueError(f"input '{name}' has {given[name].shape[0]} rows, '{self.batched[0]}' has {rows}")
        sizes, starts = self.parts(rows), [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        futures = [self._pool.submit(self._run_part, given, at, size) for at, size in zip(starts, sizes)]
        made = [f.result() for f in _all_ended(futures)]
        return {name: np.concatenate([m[name] for m in made]) if is_batched else made[0][name] for name, is_batched in self.results.items()}

    def close(self):
        """Waits for the current runs, and frees the contexts; the engines stay."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
            for context in self._contexts:
                context.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _all_ended(futures):
    """The futures, once all have ended: a part that fails must not leave others at the caller's memory."""
    for future in futures:
        future.exception()
    return futures
