# SPDX-License-Identifier: Apache-2.0
"""Are the results of one thing those of another?

    result = sinter.testing.compare("model.onnx", torch_module, {"image": image}, allow=["fp16"], atol=1e-2)
    print(result)                     # the figures of each output
    assert result                     # or result.check(), whose AssertionError has them

The command `sinter compare` does the same for files, by the same rules."""
import ctypes
import inspect
import math
import os
from collections import namedtuple

import numpy as np

from . import _abi
from ._abi import Dtype
from ._build import build
from ._dtype import BITS, dtype_of, numpy_type
from ._engine import Engine, Plan, load
from ._library import lib
from ._network import Network
from ._tensor import Tensor

Difference = namedtuple("Difference", "name is_good why count mismatched max_abs mean_abs max_rel cosine")
Difference.__doc__ = """How far one output of A is from that of B. mismatched: values outside of the tolerances; max_abs, mean_abs: of
|a - b|; max_rel: of |a - b| / |b|; cosine: the cosine similarity. Errors are infinite where one of the two is not finite and they differ."""

# By the type of an output: atol, rtol. Others must be equal.
TOLERANCES = {Dtype.F32: (1e-7, 1e-3), Dtype.F64: (1e-7, 1e-3), Dtype.F16: (1e-3, 5e-3), Dtype.BF16: (1e-2, 2e-2),
              Dtype.F8E4M3FN: (0.002, 0.13), Dtype.F8E4M3FNUZ: (0.002, 0.13), Dtype.F8E5M2: (2e-5, 0.26),
              Dtype.F8E5M2FNUZ: (2e-5, 0.26), Dtype.F4E2M1: (0.5, 0.5), Dtype.F8E8M0: (0, 0.5), Dtype.I8: (1, 0), Dtype.U8: (1, 0)}
ATOL_LEAST = 1e-5               # below, two ways to add up f32 differ


class Comparison:
    """What compare() found. True where every output is within its tolerances. outputs: name -> Difference; is_good."""

    def __init__(self, outputs):
        self.outputs = {d.name: d for d in outputs}
        self.is_good = all(d.is_good for d in outputs)

    def __bool__(self):
        return self.is_good

    def __str__(self):
        lines = []
        for d in self.outputs.values():
            lines.append(f"{'passed' if d.is_good else 'failed'}  {d.name}: {d.count} values, {d.mismatched} mismatched, largest error "
                         f"{d.max_abs:.3g} (relative {d.max_rel:.3g}), mean {d.mean_abs:.3g}, cosine {d.cosine:.9g}{'; ' + d.why if d.why else ''}")
        return "\n".join(lines)

    __repr__ = __str__

    def check(self):
        """Raises an AssertionError with the figures unless all is good."""
        if not self.is_good:
            raise AssertionError(str(self))


def compare(a, b, inputs=None, *, atol=None, rtol=None, cos=None, validate=False, seed=1, shapes=None, **options):
    """Gives A and B the same inputs and says how far the outputs of A are from those of B, which is what is right.

    a, b: each an ONNX model (a path, bytes, an onnx.ModelProto, a Network), which is built; "reference:PATH", computed by the
    reference kernels; "onnxruntime:PATH"; an Engine or a Plan; a function or a torch.nn.Module, which gets arrays (torch tensors) and
    gives one result, several, or a dict; or results: a dict of arrays, a path of a .npz file.
    inputs: name -> array; those that are missing are random numbers by `seed`, in the shapes of `shapes` (name -> shape), else in
    those that the profile says are usual.
    atol, rtol: each value has to hold |a - b| <= atol + rtol * |b|; NaN equals NaN. A number, or a dict by output; default: by type.
    cos: the least cosine similarity, likewise. validate: NaN and infinite values are failures.
    options: build options of A (sinter.build); B is built as plainly as can be.

    Gives a Comparison of the outputs that both have; results without names are those of the other side, in its order.
    Errors: ValueError (inputs are missing, there is nothing to compare), TypeError, KeyError, and those of building and running."""
    sides = [_Side(a, options, False), _Side(b, {}, True)]
    if options and not sides[0].is_built:
        raise TypeError(f"{', '.join(options)}: options of building, but A is not built here")
    given = {name: _plain(value) for name, value in (inputs or {}).items()}
    needs = next((s for s in sides if s.can_tell), None)
    profile = {name: tuple(v.shape) for name, v in given.items() if hasattr(v, "shape")}
    profile.update(shapes or {})
    for side in sides:
        side.open(profile)
    if needs is not None:
        needs.complete(given, seed, shapes or {})
    elif not given and any(s.is_called for s in sides):
        raise ValueError("inputs are missing: neither side says what it takes")
    results = [side.results(given) for side in sides]
    pairs = _paired(*results)
    tolerances = {"atol": atol, "rtol": rtol, "cos": cos}
    known = {name for r in results if isinstance(r, dict) for name in r} | set(pairs)
    for word, value in tolerances.items():
        for name in value if isinstance(value, dict) else ():
            if name not in known:
                raise KeyError(f"{word} names '{name}', which is no output: {', '.join(sorted(known))}")
    return Comparison([_difference(name, *pair, {w: v.get(name) if isinstance(v, dict) else v for w, v in tolerances.items()}, validate)
                       for name, pair in pairs.items()])


# ---- sides ----

def _plain(value):
    return value if hasattr(value, "shape") else np.asarray(value)


def _is_torch(value):
    return type(value).__module__.split(".")[0] == "torch"


class _Side:
    def __init__(self, what, options, is_plain):
        self.what, self.options, self.engine, self.session = what, options, None, None
        text = os.fspath(what) if isinstance(what, (str, os.PathLike)) else ""
        self.prefix = next((p for p in ("reference", "onnxruntime") if text.startswith(p + ":")), None)
        self.path = text[len(self.prefix) + 1:] if self.prefix else text
        self.is_saved = isinstance(what, dict) or text.endswith(".npz") and not self.prefix
        self.is_built = self.prefix != "onnxruntime" and (bool(text) and not self.is_saved or isinstance(what, (bytes, Network)) or
                                                          hasattr(what, "SerializeToString"))
        is_engine = isinstance(what, (Engine, Plan))
        if self.is_built and text and not self.prefix and _is_engine_file(self.path):
            self.is_built, is_engine = False, True
        self.can_tell = self.is_built or is_engine
        self.is_called = not (self.can_tell or self.is_saved or self.prefix)
        if self.is_called and not callable(what):
            raise TypeError(f"a side of type {type(what).__name__}: a model, an engine, a function or results are wanted")
        if is_plain or self.prefix == "reference":
            self.options = {"tune": "off", **({"device": "reference"} if self.prefix == "reference" else {})}

    def open(self, profile):
        if self.is_built:
            options = dict(self.options)
            if "profiles" not in options and profile:
                options["profiles"] = profile
            self.engine = build(self.path or self.what, **options).load()
        elif isinstance(self.what, Plan):
            self.engine = self.what.load()
        elif self.can_tell:
            self.engine = self.what if isinstance(self.what, Engine) else load(self.path)

    def complete(self, given, seed, shapes):
        """Makes the inputs that are missing: floats in [0, 1), whole numbers in the range that the engine says."""
        for i, io in enumerate(self.engine.inputs):
            if io.name in given:
                continue
            rng, shape = np.random.default_rng([seed, i]), tuple(shapes.get(io.name, io.opt))
            low, high = io.value_range or (0, 9)
            if io.dtype == Dtype.BOOL:
                given[io.name] = rng.integers(0, 2, shape).astype(bool)
            elif io.dtype in (Dtype.F32, Dtype.F64, Dtype.F16):
                given[io.name] = rng.random(shape).astype(numpy_type(io.dtype))
            elif io.dtype == Dtype.BF16:
                given[io.name] = (rng.random(shape).astype("f4").view("u4") >> 16).astype("u2")
            elif BITS[io.dtype] >= 8 and io.dtype not in TOLERANCES or io.dtype in (Dtype.I8, Dtype.U8):
                given[io.name] = rng.integers(max(low, 0), min(high, 2**31) + 1, shape).astype(numpy_type(io.dtype))
            else:
                raise ValueError(f"input '{io.name}' of type {io.dtype.name} is not given, and no random numbers are made of it")

    def results(self, given):
        """name -> (Dtype, array), or a list where there are no names."""
        if self.engine is not None:
            with self.engine.context() as context:
                context.run({io.name: given[io.name] for io in self.engine.inputs})
                return {io.name: _numbers(context.output(io.name)) for io in self.engine.outputs}
        if isinstance(self.what, dict):
            return {name: _numbers(value) for name, value in self.what.items()}
        if self.is_saved:
            with np.load(self.path) as found:
                return {name: _numbers(found[name]) for name in found.files}
        if self.prefix:
            import onnxruntime
            session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
            wanted = {i.name: np.asarray(given[i.name]) for i in session.get_inputs()}
            return {o.name: _numbers(r) for o, r in zip(session.get_outputs(), session.run(None, wanted))}
        return self.called(given)

    def called(self, given):
        is_module = _is_torch(self.what) or any(c.__module__.split(".")[0] == "torch" for c in type(self.what).__mro__)
        if is_module:
            import torch
            values = {name: v if _is_torch(v) else torch.from_numpy(np.array(v)) for name, v in given.items()}
        else:
            values = given
        try:
            parameters = inspect.signature(getattr(self.what, "forward", self.what) if is_module else self.what).parameters.values()
        except (TypeError, ValueError):
            parameters = ()
        names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        takes_any = any(p.kind == p.VAR_KEYWORD for p in parameters)
        by_name = takes_any or set(values) <= names
        if is_module:
            with torch.no_grad():
                made = self.what(**values) if by_name else self.what(*values.values())
        else:
            made = self.what(**values) if by_name else self.what(*values.values())
        if hasattr(made, "items"):
            return {name: _numbers(value) for name, value in made.items()}
        return [_numbers(value) for value in (made if isinstance(made, (tuple, list)) else [made])]


def _is_engine_file(path):
    with open(path, "rb") as file:
        return file.read(8) == b"\x89SINTER\n"


# ---- numbers ----

def _numbers(value):
    """(Dtype, array of numbers): floats that NumPy lacks become f4."""
    if _is_torch(value):
        value = value.detach().cpu()
        kind = dtype_of(str(value.dtype))
        return kind, (value.float() if kind in TOLERANCES and kind not in (Dtype.F32, Dtype.F64, Dtype.F16, Dtype.I8, Dtype.U8)
                      else value).numpy()
    if not isinstance(value, Tensor):
        value = np.asarray(value)
        kind = dtype_of(value.dtype)
        return kind, value.astype("f4") if value.dtype.kind == "V" or kind == Dtype.BF16 else value
    kind = value.dtype
    if kind == Dtype.BF16:
        return kind, (value.numpy().astype("u4") << np.uint32(16)).view("f4")
    if kind in (Dtype.F8E4M3FN, Dtype.F8E4M3FNUZ, Dtype.F8E5M2, Dtype.F8E5M2FNUZ, Dtype.F8E8M0):
        return kind, _table(kind, 256)[value.numpy()]
    if BITS[kind] < 8:
        bits, count = BITS[kind], math.prod(value.shape)
        packed = np.frombuffer(value.tobytes(), "u1")
        codes = (packed[:, None] >> np.arange(0, 8, bits, dtype="u1") & (1 << bits) - 1).reshape(-1)[:count]
        return kind, _table(kind, 1 << bits)[codes].reshape(value.shape)
    return kind, np.array(value.numpy())


def _table(kind, count):
    """The number of each code of a type, as the library has it."""
    bits = BITS[kind]
    codes = np.zeros((count * bits + 7) // 8, "u1")
    for i in range(count):
        codes[i * bits // 8] |= i << i * bits % 8
    tensor = _abi.sinter_tensor(dtype=kind, rank=1, data=codes.ctypes.data)
    tensor.dim[0] = count
    return np.array([lib.sinter_tensor_value(ctypes.byref(tensor), i) for i in range(count)], "f4")


# ---- figures ----

def _paired(a, b):
    """name -> the numbers of both sides."""
    if isinstance(a, list) and isinstance(b, list):
        a, b = ({f"output_{i}": v for i, v in enumerate(side)} for side in (a, b))
    for first, second in ((a, b), (b, a)):
        if isinstance(first, list) and len(first) != len(second):
            raise ValueError(f"one side gave {len(first)} results without names, the other has {len(second)}: {', '.join(second)}")
    if isinstance(a, list):
        a = dict(zip(b, a))
    if isinstance(b, list):
        b = dict(zip(a, b))
    pairs = {name: (a[name], b[name]) for name in a if name in b}
    if not pairs:
        raise ValueError(f"the sides have no output in common: {', '.join(a) or 'none'}; {', '.join(b) or 'none'}")
    return pairs


def _tolerance(kinds, asked):
    atol, rtol = (max(TOLERANCES.get(k, (0, 0))[i] for k in kinds) for i in range(2))
    atol = max(atol, ATOL_LEAST) if rtol > 0 else atol
    return atol if asked["atol"] is None else asked["atol"], rtol if asked["rtol"] is None else asked["rtol"]


def _difference(name, got, want, asked, validate):
    (kind, a), (other, b) = got, want
    if a.shape != b.shape:
        return Difference(name, False, f"has shape {list(a.shape)}, want {list(b.shape)}", 0, 0, 0.0, 0.0, 0.0, 0.0)
    atol, rtol = _tolerance((kind, other), asked)
    x, y = a.astype("f8").ravel(), b.astype("f8").ravel()
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        absolute = np.where(same, 0, np.where(finite, np.abs(x - y), np.inf))
        relative = np.where(absolute == 0, 0, np.where((y != 0) & np.isfinite(absolute), absolute / np.abs(y), np.inf))
        bad = ~same & (~finite | (absolute > atol + rtol * np.abs(y)))
        if kind == other and kind in (Dtype.I64, Dtype.U64) and not atol and not rtol:
            bad = (a != b).ravel()              # doubles do not tell all of them apart
        u, v = x[finite], y[finite]
        norms = math.sqrt(u @ u), math.sqrt(v @ v)
        cosine = float(u @ v) / (norms[0] * norms[1]) if norms[0] > 0 and norms[1] > 0 else float(norms[0] == norms[1])
    why = []
    if bad.any():
        worst = int(np.argmax(np.where(bad, absolute, -1)))
        index = [int(i) for i in np.unravel_index(worst, a.shape)]
        why.append(f"{int(bad.sum())} of {x.size} values differ by more than {atol:g} + {rtol:g} * |b|, most at {index}: {x[worst]:.9g}, want {y[worst]:.9g}")
    if asked["cos"] is not None and not cosine >= asked["cos"]:
        why.append(f"the cosine similarity is {cosine:.9g}, at least {asked['cos']:g} is wanted")
    for side, values in (("A", x), ("B", y)) if validate else ():
        if not np.isfinite(values).all():
            why.append(f"{side} has {int(np.isnan(values).sum())} NaN and {int(np.isinf(values).sum())} infinite values")
    return Difference(name, not why, "; ".join(why), x.size, int(bad.sum()), float(absolute.max(initial=0)),
                      float(absolute.mean()) if x.size else 0.0, float(relative.max(initial=0)), cosine)
