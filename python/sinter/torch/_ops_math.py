# SPDX-License-Identifier: Apache-2.0
"""Converters of elementwise operators."""
import math

import torch
from torch import fx

from ._lowering import Unsupported, converts

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def rename(op, *names):
    """Operators of one argument that ONNX has under a name of its own, computed in the type of the result."""
    @converts(*(f"aten.{n}" for n in names))
    def convert(c, n, x, *_):
        return c.op(op, c.x(x, c.dtype(n)))


for aten in ("abs acos acosh asin asinh atan atanh cos cosh erf exp log neg reciprocal sigmoid sin sinh sqrt tan tanh "
             "relu").split():
    rename(aten.capitalize(), aten)


@converts("aten.ceil", "aten.floor", "aten.trunc", "aten.round.default")
def rounding(c, n, x, *_):
    name, dtype = n.target.overloadpacket.__name__, c.dtype(x)
    if dtype not in FLOATS:
        return c.op("Identity", c.x(x))
    if name != "trunc":
        return c.op(name.capitalize(), c.x(x))
    return truncated(c, c.x(x), dtype)


def truncated(c, x, dtype):
    is_negative = c.op("Less", x, c.scalar(0, dtype))
    return c.op("Where", is_negative, c.op("Ceil", x), c.op("Floor", x))


@converts("aten.sign", "aten.sgn")
def sign(c, n, x):
    if c.dtype(x) == torch.bool:
        return c.op("Identity", c.x(x))
    return c.op("Sign", c.x(x))


@converts("aten.rsqrt")
def rsqrt(c, n, x):
    return c.op("Reciprocal", c.op("Sqrt", c.x(x, c.dtype(n))))


@converts("aten.log2", "aten.log10")
def log_of_base(c, n, x):
    base = 2 if n.target.overloadpacket.__name__ == "log2" else 10
    return c.op("Mul", c.op("Log", c.x(x, c.dtype(n))), c.scalar(1 / math.log(base), c.dtype(n)))


@converts("aten.exp2")
def exp2(c, n, x):
    return c.op("Pow", c.scalar(2, c.dtype(n)), c.x(x, c.dtype(n)))


@converts("aten.expm1")
def expm1(c, n, x):
    """tanh(x/2) * (exp(x) + 1), which is exact near zero."""
    dtype = c.dtype(n)
    x = c.x(x, dtype)
    return c.op("Mul", c.op("Tanh", c.op("Mul", x, c.scalar(0.5, dtype))), c.op("Add", c.op("Exp", x), c.scalar(1, dtype)))


@converts("aten.log1p")
def log1p(c, n, x):
    """2*atanh(x / (x + 2)) near zero, which is exact there."""
    dtype = c.dtype(n)
    x = c.x(x, dtype)
    near = c.op("Atanh", c.op("Div", x, c.op("Add", x, c.scalar(2, dtype))))
    is_near = c.op("Less", c.op("Abs", x), c.scalar(0.5, dtype))
    return c.op("Where", is_near, c.op("Mul", near, c.scalar(2, dtype)), c.op("Log", c.op("Add", x, c.scalar(1, dtype))))


@converts("aten.isnan")
def isnan(c, n, x):
    if c.dtype(x) not in FLOATS:
        return c.op("And", c.op("Not", c.x(x, torch.bool)), c.x(x, torch.bool))
    return c.op("IsNaN", c.x(x))


@converts("aten.isinf")
def isinf(c, n, x):
    if c.dtype(x) not in FLOATS:
        return c.op("And", c.op("Not", c.x(x, torch.bool)), c.x(x, torch.bool))
    return c.op("IsInf", c.x(x))


@converts("aten.logical_not")
def logical_not(c, n, x):
    return c.op("Not", c.x(x, torch.bool))


@converts("aten.bitwise_not")
def bitwise_not(c, n, x):
    return c.op("Not" if c.dtype(x) == torch.bool else "BitwiseNot", c.x(x))


# ---- two arguments ----

def both(c, n, a, b, dtype=None):
    dtype = dtype or c.dtype(n)
    return c.x(a, dtype), c.x(b, dtype)


def scaled(c, x, alpha, dtype):
    return x if alpha == 1 else c.op("Mul", x, c.x(alpha, dtype))


@converts("aten.add.Tensor", "aten.add.Scalar")
def add(c, n, a, b, alpha=1):
    dtype = c.dtype(n)
    a, b = both(c, n, a, b)
    if dtype == torch.bool:
        if alpha not in (True, 1):
            raise Unsupported("alpha of bool")
        return c.op("Or", a, b)
    return c.op("Add", a, scaled(c, b, alpha, dtype))


@converts("aten.sub.Tensor", "aten.sub.Scalar")
def sub(c, n, a, b, alpha=1):
    a, b = both(c, n, a, b)
    return c.op("Sub", a, scaled(c, b, alpha, c.dtype(n)))


@converts("aten.rsub")
def rsub(c, n, a, b, alpha=1):
    a, b = both(c, n, a, b)
    return c.op("Sub", b, scaled(c, a, alpha, c.dtype(n)))


@converts("aten.mul.Tensor", "aten.mul.Scalar")
def mul(c, n, a, b):
    return c.op("And" if c.dtype(n) == torch.bool else "Mul", *both(c, n, a, b))


@converts("aten.div.Tensor", "aten.div.Scalar")
def div(c, n, a, b):
    return c.op("Div", *both(c, n, a, b))


def floored(c, a, b, dtype):
    """a divided by b, rounded down, and the rest. As torch does: the rest is found first, exactly."""
    rest = c.op("Mod", a, b, fmod=1)
    zero = c.scalar(0, dtype)
    if dtype == torch.uint8:
        return c.op("Div", a, b), rest
    differs = c.op("And", c.op("Not", c.op("Equal", rest, zero)),
                   c.op("Xor", c.op("Less", rest, zero), c.op("Less", b, zero)))
    if dtype not in FLOATS:
        down = c.op("Sub", c.op("Div", a, b), c.cast(differs, torch.bool, dtype))
        return down, c.op("Where", differs, c.op("Add", rest, b), rest)
    quotient = c.op("Div", c.op("Sub", a, rest), b)
    quotient = c.op("Sub", quotient, c.cast(differs, torch.bool, dtype))
    nearest = c.op("Floor", quotient)
    is_off = c.op("Greater", c.op("Sub", quotient, nearest), c.scalar(0.5, dtype))
    down = c.op("Add", nearest, c.cast(is_off, torch.bool, dtype))
    is_zero = c.op("Equal", b, zero)
    return c.op("Where", is_zero, c.op("Div", a, b), down), c.op("Where", differs, c.op("Add", rest, b), rest)


@converts("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(c, n, a, b, rounding_mode):
    dtype = c.dtype(n)
    a, b = both(c, n, a, b)
    if rounding_mode is None:
        return c.op("Div", a, b)
    if rounding_mode == "floor":
        return floored(c, a, b, dtype)[0]
    found = c.op("Div", a, b)
    return truncated(c, found, dtype) if dtype in FLOATS else found


@converts("aten.floor_divide")
def floor_divide(c, n, a, b):
    return floored(c, *both(c, n, a, b), c.dtype(n))[0]


@converts("aten.remainder")
def remainder(c, n, a, b):
    return floored(c, *both(c, n, a, b), c.dtype(n))[1]


@converts("aten.fmod")
def fmod(c, n, a, b):
    return c.op("Mod", *both(c, n, a, b), fmod=1)


@converts("aten.pow")
def power(c, n, a, b):
    dtype = c.dtype(n)
    if not isinstance(b, fx.Node) and b == 2:
        a = c.x(a, dtype)
        return c.op("Mul", a, a)
    if dtype not in FLOATS:
        raise Unsupported("powers of whole numbers")
    if not isinstance(b, fx.Node) and b == 0.5:
        return c.op("Sqrt", c.x(a, dtype))
    return c.op("Pow", *both(c, n, a, b))


@converts("aten.maximum", "aten.minimum")
def extremum(c, n, a, b):
    is_max = n.target.overloadpacket.__name__ == "maximum"
    if c.dtype(n) == torch.bool:
        return c.op("Or" if is_max else "And", *both(c, n, a, b))
    return c.op("Max" if is_max else "Min", *both(c, n, a, b))


@converts("aten.clamp", "aten.clamp_min", "aten.clamp_max")
def clamp(c, n, x, low=None, high=None):
    dtype, name = c.dtype(n), n.target.overloadpacket.__name__
    if name == "clamp_max":
        low, high = None, low
    made = c.x(x, dtype)
    if low is not None:
        made = c.op("Max", made, c.x(low, dtype))
    return made if high is None else c.op("Min", made, c.x(high, dtype))


@converts("aten.hardtanh")
def hardtanh(c, n, x, low, high):
    return c.op("Clip", c.x(x), c.x(low, c.dtype(n)), c.x(high, c.dtype(n)))


def comparing(op, *names):
    @converts(*(f"aten.{n}" for n in names))
    def convert(c, n, a, b):
        dtype = c.promoted(a, b)
        if not isinstance(b, fx.Node) and dtype not in FLOATS and dtype != torch.bool:
            bounds = torch.iinfo(dtype)
            if isinstance(b, int) and not bounds.min <= b <= bounds.max:
                dtype = torch.int64
        a, b = both(c, n, a, b, dtype)
        if dtype == torch.bool and op not in ("Equal", "NotEqual"):
            a, b = c.cast(a, torch.bool, torch.uint8), c.cast(b, torch.bool, torch.uint8)
        return c.op("Not", c.op("Equal", a, b)) if op == "NotEqual" else c.op(op, a, b)


for onnx_name, aten in (("Equal", "eq"), ("NotEqual", "ne"), ("Less", "lt"), ("LessOrEqual", "le"), ("Greater", "gt"),
                        ("GreaterOrEqual", "ge")):
    comparing(onnx_name, f"{aten}.Tensor", f"{aten}.Scalar")


def logical(op, *names):
    @converts(*(f"aten.{n}" for n in names))
    def convert(c, n, a, b):
        return c.op(op, *both(c, n, a, b, torch.bool))


for aten in ("and", "or", "xor"):
    logical(aten.capitalize(), f"logical_{aten}")


@converts("aten.bitwise_and", "aten.bitwise_or", "aten.bitwise_xor")
def bitwise(c, n, a, b):
    word = n.target.overloadpacket.__name__[8:].capitalize()
    return c.op(word if c.dtype(n) == torch.bool else f"Bitwise{word}", *both(c, n, a, b))


@converts("aten.where.self")
def where(c, n, condition, a, b):
    if c.dtype(condition) not in (torch.bool, torch.uint8):
        raise Unsupported(f"a condition of {c.dtype(condition)}")
    return c.op("Where", c.x(condition, torch.bool), *both(c, n, a, b))


@converts("aten.masked_fill")
def masked_fill(c, n, x, mask, value):
    return c.op("Where", c.x(mask, torch.bool), c.x(value, c.dtype(n)), c.x(x))


# ---- activations ----

@converts("aten.gelu")
def gelu(c, n, x, approximate="none"):
    return c.op("Gelu", c.x(x), approximate=approximate)


@converts("aten.silu")
def silu(c, n, x):
    return c.op("Swish", c.x(x))


@converts("aten.mish")
def mish(c, n, x):
    return c.op("Mish", c.x(x))


@converts("aten.hardswish")
def hardswish(c, n, x):
    return c.op("HardSwish", c.x(x))


@converts("aten.hardsigmoid")
def hardsigmoid(c, n, x):
    return c.op("HardSigmoid", c.x(x), alpha=1 / 6, beta=0.5)


@converts("aten.leaky_relu")
def leaky_relu(c, n, x, slope=0.01):
    return c.op("LeakyRelu", c.x(x), alpha=float(slope))


@converts("aten.elu")
def elu(c, n, x, alpha=1, scale=1, input_scale=1):
    if input_scale != 1:
        raise Unsupported(f"input_scale is {input_scale}")
    made = c.op("Elu", c.x(x), alpha=float(alpha))
    return made if scale == 1 else c.op("Mul", made, c.scalar(scale, c.dtype(n)))


@converts("aten.softplus")
def softplus(c, n, x, beta=1, threshold=20):
    dtype = c.dtype(n)
    x = c.x(x)
    scaled_x = x if beta == 1 else c.op("Mul", x, c.scalar(beta, dtype))
    made = c.op("Softplus", scaled_x)
    made = made if beta == 1 else c.op("Mul", made, c.scalar(1 / beta, dtype))
    return made if threshold >= 20 else c.op("Where", c.op("Greater", scaled_x, c.scalar(threshold, dtype)), x, made)


@converts("aten._prelu_kernel")
def prelu(c, n, x, slope):
    return c.op("PRelu", c.x(x), c.x(slope))


# ---- conversions ----

@converts("aten._to_copy")
def to_copy(c, n, x, *_):
    return convert_type(c, c.x(x), c.dtype(x), c.dtype(n))


@converts("prims.convert_element_type")
def convert_element_type(c, n, x, dtype):
    return convert_type(c, c.x(x), c.dtype(x), dtype)


def convert_type(c, x, source, dtype):
    return c.op("Identity", x) if source == dtype else c.cast(x, source, dtype)


@converts("aten.clone", "aten.alias", "aten.detach", "aten.lift_fresh_copy", "aten.contiguous", view=True)
def same(c, n, x, *_):
    return c.op("Identity", c.x(x))


@converts("aten.copy")
def copy(c, n, x, source, *_):
    found = c.x(source, c.dtype(n))
    return found if c.shape(x) == c.shape(source) else c.op("Expand", found, c.ints(c.shape(n)))


@converts("aten.fill.Scalar")
def fill(c, n, x, value):
    return c.op("Expand", c.x(value, c.dtype(n)), c.ints(c.shape(n)))


@converts("aten.full", "aten.full_like", "aten.zeros", "aten.ones", "aten.scalar_tensor", "aten.zeros_like", "aten.ones_like",
          "aten.empty", "aten.empty_like", "aten.new_zeros", "aten.new_ones", "aten.new_empty")
def full(c, n, *arguments):
    name, dtype = n.target.overloadpacket.__name__, c.dtype(n)
    value = {"full": 1, "full_like": 1, "scalar_tensor": 0}.get(name)
    value = arguments[value] if value is not None else 1 if "ones" in name else 0
    value = c.x(value, dtype)
    return value if not c.rank(n) else c.op("Expand", value, c.ints(c.shape(n)))


@converts("aten.arange.start_step", "prims.iota")
def arange(c, n, *arguments):
    dtype = c.dtype(n)
    if n.target.overloadpacket.__name__ == "iota":
        length, start, step = arguments[:3]
        stop = length if (start, step) == (0, 1) else None
        if stop is None:
            stop = start + length * step
    else:
        start, stop, step = arguments[:3]
        step = 1 if step is None else step
    if dtype not in FLOATS:
        if any(isinstance(v, float) for v in (start, stop, step)):
            raise Unsupported("whole numbers of a range with fractions")
        found = c.op("Range", *(c.x(v, torch.int64) for v in (start, stop, step)))
        return c.cast(found, torch.int64, dtype)
    # torch computes start + i * step; a sum of steps would drift.
    count = c.op("Range", c.scalar(0, torch.int64), c.op("Squeeze", c.ints(c.shape(n)), c.ints([0])), c.scalar(1, torch.int64))
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    found = c.op("Mul", c.cast(count, torch.int64, wide), c.x(step, wide))
    return c.cast(c.op("Add", found, c.x(start, wide)), wide, dtype)


