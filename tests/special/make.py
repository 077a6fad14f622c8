#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes scalar.txt: what ONNX's operators make of special values, one line an op and further arguments.

The formulas are those of ONNX's operator text, in numpy's doubles, and know nothing of src/ops. Where the text is
silent the value is ONNX Runtime's or is decided in docs/numerics.md. Run by hand where numpy (and ml_dtypes) is.
"""
import math

import ml_dtypes
import numpy as np

np.seterr(all="ignore")
MAX, TINY, LEAST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny), 2.0 ** -149
INF, NAN = math.inf, math.nan
X = [-INF, -MAX, -2.0 ** 63, -3e9, -1e5, -300, -129.5, -104, -88, -20, -2.5, -1.5, -1, -.5, -TINY, -LEAST, -0.0,
     0.0, LEAST, TINY, .5, 1, 1.5, 2.5, 3, 20, 88.5, 127.5, 255.5, 300, 65520, 3e9, 2.0 ** 63, MAX, INF, NAN]
Y = [-INF, -MAX, -3, -2, -1, -.5, -0.0, 0.0, LEAST, .5, 1, 2, 2.5, 3, MAX, INF, NAN]
x = np.array(X, np.float32).astype(np.float64)
SMALL = np.abs(x) < 1e4                       # where sin and its kin are told apart in f32


def erf(v):
    return np.array([math.erf(t) for t in np.ravel(v)])


def erfc(v):
    return np.array([math.erfc(t) for t in np.ravel(v)])


def sigmoid(v):
    return np.where(v >= 0, 1 / (1 + np.exp(-v)), np.exp(v) / (1 + np.exp(v)))


def softplus(v):
    return np.logaddexp(v, 0)


def clip(v, lo, hi):
    return np.minimum(np.maximum(v, lo), hi)


UNARY = {
    "neg": -x, "abs": np.abs(x), "sign": np.sign(x), "ceil": np.ceil(x), "floor": np.floor(x), "round": np.rint(x),
    "sqrt": np.sqrt(x), "rsqrt": 1 / np.sqrt(x), "reciprocal": 1 / x, "exp": np.exp(x), "log": np.log(x),
    "asin": np.arcsin(x), "acos": np.arccos(x), "atan": np.arctan(x), "sinh": np.sinh(x), "cosh": np.cosh(x),
    "tanh": np.tanh(x), "asinh": np.arcsinh(x), "acosh": np.arccosh(x), "atanh": np.arctanh(x), "erf": erf(x),
    "sin": np.sin(x), "cos": np.cos(x), "tan": np.tan(x),
    "sigmoid": sigmoid(x), "relu": np.where(x < 0, 0.0, x), "softplus": softplus(x), "softsign": x / (1 + np.abs(x)),
    "hardswish": x * np.maximum(0, np.minimum(1, x / 6 + .5)), "mish": x * np.tanh(softplus(x)),
    "silu": x * sigmoid(x), "gelu": .5 * x * erfc(-x / math.sqrt(2)),
    "gelu_tanh": x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + .044715 * x ** 3)),
    "is_nan": np.isnan(x), "is_inf": np.isinf(x), "is_inf_pos": np.isposinf(x), "is_inf_neg": np.isneginf(x),
}
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: np.power(a, np.full(a.shape, b)), "fmod": np.fmod, "mod": np.mod, "min": np.minimum, "max": np.maximum,
    "eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "prelu": lambda a, b: np.where(a < 0, a * b, a), "elu": lambda a, b: np.where(a < 0, b * np.expm1(a), a),
    "thresholded_relu": lambda a, b: np.where(a > b, a, 0.0),
}
CELU = lambda a, b: np.where(a >= 0, a, np.where(np.isnan(a), a, b * np.expm1(a / b)))
CLIPS = [(-1, 1), (0, 6), (1, -1), (-INF, INF), (0, INF), (-INF, 0), (NAN, 1), (-1, NAN), (NAN, NAN), (INF, INF),
         (-MAX, MAX), (0, 0)]


def number(v):
    if isinstance(v, int):
        return "%d" % v
    v = float(np.float32(v))
    return "-0" if v == 0 and math.copysign(1, v) < 0 else "nan" if math.isnan(v) else "%.9g" % v


def line(name, values, **arguments):
    head = name + "".join(" %s=%s" % (k, v if isinstance(v, str) else number(v)) for k, v in arguments.items())
    print(head + " : " + " ".join(number(v) for v in values))


def quantized(low, high, scale, zero):
    q = np.rint((x.astype(np.float32) / np.float32(scale)).astype(np.float64)) + zero
    return [low if math.isnan(t) else int(min(max(t, low), high)) for t in q]


def main():
    print("# SPDX-License-Identifier: Apache-2.0\n# Written by make.py. Each line: a scalar function of f32, its further")
    print("# arguments, and its results for the x of the last line \"x\". to: the type of the result.")
    line("x", x)
    for name, y in UNARY.items():
        line(name, y)
    for name, f in BINARY.items():
        for y in Y:
            line(name, f(x, float(np.float32(y))), y=y)
    for y in (.5, 1, 2):
        line("celu", CELU(x, y), y=y)
    for lo, hi in CLIPS:
        line("clip", clip(x, float(np.float32(lo)), float(np.float32(hi))), y=lo, z=hi)
    for a, g in ((1.67326319, 1.05070102), (.5, 2)):
        a, g = float(np.float32(a)), float(np.float32(g))
        line("selu", g * np.where(x <= 0, a * np.expm1(x), x), y=a, z=g)
    for a, b in ((.2, .5), (0, .5), (-1, 0)):
        line("hard_sigmoid", clip(float(np.float32(a)) * x + b, 0, 1), y=a, z=b)
    for bias, lam in ((0, .5), (1.5, 1.5), (.5, 0)):
        line("shrink", np.where(x < -lam, x + bias, np.where(x > lam, x - bias, 0.0)), y=bias, z=lam)
    bits = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767)}
    for to, (low, high) in bits.items():
        for scale, zero in ((1, 0), (.5, 3), (1e-3, 0), (1e-38, low), (3e38, high), (.1, high)):
            line("quantize", quantized(low, high, scale, zero), to=to, y=scale, z=zero)
    whole = {**bits, "i32": (-2 ** 31, 2 ** 31 - 1), "u32": (0, 2 ** 32 - 1), "i64": (-2 ** 63, 2 ** 63 - 1),
             "u64": (0, 2 ** 64 - 1)}
    for to, (low, high) in whole.items():
        line("cast", [0 if math.isnan(t) else int(max(low, min(high, math.trunc(t)))) if math.isfinite(t) else
                      (low if t < 0 else high) for t in x], to=to)
    line("cast", x != 0, to="bool")
    line("cast", x, to="f64")
    line("cast", x.astype(np.float16), to="f16")
    line("cast", x.astype(ml_dtypes.bfloat16), to="bf16")
    for to, top in (("f8e4m3fn", 448), ("f8e5m2", 57344)):
        t = getattr(ml_dtypes, {"f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}[to])
        line("cast", np.where(np.isnan(x), NAN, np.clip(x, -top, top)).astype(t).astype(np.float32), to=to)
        line("cast_wrap", x.astype(t).astype(np.float32), to=to)


if __name__ == "__main__":
    main()
