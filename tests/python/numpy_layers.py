# SPDX-License-Identifier: Apache-2.0
"""What layers of networks compute, in plain NumPy and f64: the judge of the tests of networks."""
import math

import numpy as np

erf = np.vectorize(math.erf, otypes=["f8"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "RELU": lambda x, a, b: np.maximum(x, 0), "SIGMOID": lambda x, a, b: sigmoid(x), "TANH": lambda x, a, b: np.tanh(x),
    "LEAKY_RELU": lambda x, a, b: np.where(x < 0, a * x, x), "ELU": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    "SELU": lambda x, a, b: b * np.where(x < 0, a * np.expm1(x), x), "SOFTSIGN": lambda x, a, b: x / (1 + np.abs(x)),
    "SOFTPLUS": lambda x, a, b: a * np.log1p(np.exp(b * x)), "CLIP": lambda x, a, b: np.clip(x, a, b),
    "HARD_SIGMOID": lambda x, a, b: np.clip(a * x + b, 0, 1), "SCALED_TANH": lambda x, a, b: a * np.tanh(b * x),
    "THRESHOLDED_RELU": lambda x, a, b: np.where(x > a, x, 0), "GELU_ERF": lambda x, a, b: x * (1 + erf(x / math.sqrt(2))) / 2,
    "GELU_TANH": lambda x, a, b: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2}

UNARY = {
    "EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt, "RECIP": lambda x: 1 / x, "ABS": np.abs, "NEG": np.negative, "SIN": np.sin,
    "COS": np.cos, "TAN": np.tan, "SINH": np.sinh, "COSH": np.cosh, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
    "ASINH": np.arcsinh, "ACOSH": lambda x: np.arccosh(x + 1), "ATANH": np.arctanh, "CEIL": np.ceil, "FLOOR": np.floor, "ERF": erf,
    "NOT": np.logical_not, "SIGN": np.sign, "ROUND": np.round, "ISINF": np.isinf, "ISNAN": np.isnan}

ELEMENTWISE = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum, "SUB": np.subtract, "DIV": np.divide,
               "POW": np.power, "FLOOR_DIV": np.floor_divide, "AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor,
               "EQUAL": np.equal, "GREATER": np.greater, "LESS": np.less}

REDUCE = {"SUM": np.sum, "PROD": np.prod, "MAX": np.max, "MIN": np.min, "AVG": np.mean}


def softmax(x, axes):
    power = np.exp(x - x.max(axes, keepdims=True))
    return power / power.sum(axes, keepdims=True)


def paddings(mode, size, kernel, stride, pre, post, is_pooling):
    """(elements of the output, elements before, elements behind) of one axis for the word of a padding mode."""
    if mode.startswith("SAME"):
        count = -(-size // stride)
        total = max((count - 1) * stride + kernel - size, 0)
        less = total // 2
        return (count, less, total - less) if mode == "SAME_UPPER" else (count, total - less, less)
    post = pre if mode.startswith("CAFFE") else post
    room = size + pre + post - kernel
    count = room // stride + 1 if mode.endswith("ROUND_DOWN") else -(-room // stride) + 1
    if mode == "CAFFE_ROUND_UP" and is_pooling and (count - 1) * stride >= size + pre:
        count -= 1
    return count, pre, max((count - 1) * stride + kernel - size - pre, 0)


def windows(x, kernel, stride, dilation, pre, post, mode, fill, is_pooling=True):
    """[N, C, output axes, kernel axes]: the elements under each position of a window."""
    spatial = len(kernel)
    plan = [paddings(mode, x.shape[2 + i], (kernel[i] - 1) * dilation[i] + 1, stride[i], pre[i], post[i], is_pooling) for i in range(spatial)]
    x = np.pad(x, [(0, 0), (0, 0)] + [(p[1], p[2]) for p in plan], constant_values=fill)
    made = np.empty(x.shape[:2] + tuple(p[0] for p in plan) + tuple(kernel), x.dtype)
    for at in np.ndindex(*(p[0] for p in plan)):
        part = tuple(slice(at[i] * stride[i], at[i] * stride[i] + (kernel[i] - 1) * dilation[i] + 1, dilation[i]) for i in range(spatial))
        made[(slice(None), slice(None)) + at] = x[(slice(None), slice(None)) + part]
    return made


def convolution(x, w, bias, stride, dilation, pre, post, groups, mode="EXPLICIT_ROUND_DOWN"):
    spatial = x.ndim - 2
    seen = windows(x, w.shape[2:], stride, dilation, pre, post, mode, 0, False)
    parts = [np.tensordot(seen[:, g * w.shape[1]:(g + 1) * w.shape[1]], part,
                          (tuple([1] + list(range(2 + spatial, 2 + 2 * spatial))), tuple(range(1, 2 + spatial))))
             for g, part in enumerate(np.split(w, groups))]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1) + bias.reshape((-1,) + (1,) * spatial)


def deconvolution(x, w, bias, stride, dilation, pre, post, groups):
    spatial = x.ndim - 2
    size = [(x.shape[2 + i] - 1) * stride[i] + (w.shape[2 + i] - 1) * dilation[i] + 1 for i in range(spatial)]
    y = np.zeros((x.shape[0], w.shape[1] * groups) + tuple(size))
    for g in range(groups):
        part = w[g * x.shape[1] // groups:(g + 1) * x.shape[1] // groups]
        own = x[:, g * x.shape[1] // groups:(g + 1) * x.shape[1] // groups]
        out = y[:, g * w.shape[1]:(g + 1) * w.shape[1]]
        for at in np.ndindex(*x.shape[2:]):
            for k in np.ndindex(*w.shape[2:]):
                to = tuple(at[i] * stride[i] + k[i] * dilation[i] for i in range(spatial))
                out[(slice(None), slice(None)) + to] += own[(slice(None), slice(None)) + at] @ part[(slice(None), slice(None)) + k]
    cut = tuple(slice(pre[i], size[i] - post[i]) for i in range(spatial))
    return y[(slice(None), slice(None)) + cut] + bias.reshape((-1,) + (1,) * spatial)


def pooling(x, kind, kernel, stride, pre, post, mode, excludes, blend):
    one = [1] * len(kernel)
    axes = tuple(range(-len(kernel), 0))
    most = windows(x, kernel, stride, one, pre, post, mode, -np.inf).max(axes)
    total = windows(x, kernel, stride, one, pre, post, mode, 0).sum(axes)
    count = windows(np.ones_like(x), kernel, stride, one, pre, post, mode, 0).sum(axes) if excludes else np.prod(kernel)
    mean = total / count
    return {"MAX": most, "AVERAGE": mean, "MAX_AVERAGE_BLEND": (1 - blend) * most + blend * mean}[kind]


def lrn(x, window, alpha, beta, k):
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - (window - 1) // 2):c + window // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha / window * (near ** 2).sum(1)) ** beta
    return y


def matrix(x, op):
    return x.swapaxes(-1, -2) if op == "TRANSPOSE" else x


def slice_outside(x, start, size, stride, mode, fill):
    """A slice that may leave the input, one axis after the other."""
    for axis in range(x.ndim):
        at, n = start[axis] + stride[axis] * np.arange(size[axis]), x.shape[axis]
        inside = (at >= 0) & (at < n)
        if mode == "WRAP":
            index = at % n
        elif mode == "REFLECT":
            index = at % max(2 * n - 2, 1)
            index = np.minimum(index, 2 * n - 2 - index)
        else:
            index = np.clip(at, 0, n - 1)
        x = np.take(x, index, axis)
        if mode == "FILL":
            x = np.where(inside.reshape((-1,) + (1,) * (x.ndim - 1 - axis)), x, fill)
    return x


def coordinates(count, size, rule, scale):
    """Where the elements of an axis of `count` lie in one of `size`."""
    at = np.arange(count)
    if rule == "ALIGN_CORNERS":
        return at * (size - 1) / (count - 1) if count > 1 else at * 0.0
    return at / scale if rule == "ASYMMETRIC" else (at + 0.5) / scale - 0.5


def resize(x, shape, mode, rule, rounding, scales):
    for axis, count in enumerate(shape):
        size = x.shape[axis]
        if count == size and scales[axis] == 1:
            continue
        at = coordinates(count, size, rule, scales[axis])
        if mode == "NEAREST":
            near = {"FLOOR": np.floor, "CEIL": np.ceil, "HALF_UP": lambda v: np.floor(v + 0.5), "HALF_DOWN": lambda v: np.ceil(v - 0.5)}
            x = np.take(x, np.clip(near[rounding](at), 0, size - 1).astype(int), axis)
            continue
        at = np.clip(at, 0, size - 1)
        low = np.floor(at).astype(int)
        part = (at - low).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
        x = np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, size - 1), axis) * part
    return x


def normalization(x, scale, bias, axes, epsilon, groups):
    shape = x.shape
    if groups > 1:
        x = x.reshape((shape[0], groups, -1) + shape[2:])
        axes = tuple(range(2, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return ((x - mean) / np.sqrt(var + epsilon)).reshape(shape) * scale + bias


def nms(boxes, scores, most, overlap, least, centers):
    """Rows (batch, class, box), of each batch the best first, over all classes."""
    if centers:
        boxes = np.concatenate([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    found = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[2]):
            kept = []
            own = (batch, slice(None), kind) if boxes.ndim == 4 else (batch,)
            a, b = low[own], high[own]
            for i in np.argsort(-scores[batch, :, kind], kind="stable"):
                if scores[batch, i, kind] <= least or len(kept) >= most:
                    continue
                shared = [np.prod(np.maximum(np.minimum(b[i], b[k]) - np.maximum(a[i], a[k]), 0)) for k in kept]
                both = [np.prod(b[i] - a[i]) + np.prod(b[k] - a[k]) - s for k, s in zip(kept, shared)]
                if all(s <= overlap * u for s, u in zip(shared, both)):
                    kept.append(i)
            found += [(batch, kind, i) for i in kept]
    found.sort(key=lambda row: (row[0], -scores[row[0], row[2], row[1]]))
    return np.array(found, "i4").reshape(-1, 3)


def grid_sample(x, grid, mode, outside, corners):
    """x [N, C, H, W], grid [N, h, w, 2]."""
    def place(g, size):
        return (g + 1) / 2 * (size - 1) if corners else ((g + 1) * size - 1) / 2

    def reflect(v, size):
        low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
        span = high - low
        if span == 0:
            return np.zeros_like(v)
        v = np.abs(v - low) % (2 * span)
        return np.where(v > span, 2 * span - v, v) + low

    def pick(n, i, j):
        inside = (i >= 0) & (i < x.shape[2]) & (j >= 0) & (j < x.shape[3])
        i, j = np.clip(i, 0, x.shape[2] - 1).astype(int), np.clip(j, 0, x.shape[3] - 1).astype(int)
        return np.where(inside, x[n][:, i, j], 0) if outside == "FILL" else x[n][:, i, j]
    made = []
    for n in range(x.shape[0]):
        h, w = place(grid[n, ..., 1], x.shape[2]), place(grid[n, ..., 0], x.shape[3])
        if outside == "REFLECT":
            h, w = reflect(h, x.shape[2]), reflect(w, x.shape[3])
        if outside != "FILL":
            h, w = np.clip(h, 0, x.shape[2] - 1), np.clip(w, 0, x.shape[3] - 1)
        if mode == "NEAREST":
            made.append(pick(n, np.round(h), np.round(w)))
            continue
        i, j = np.floor(h), np.floor(w)
        p, q = h - i, w - j
        made.append(pick(n, i, j) * (1 - p) * (1 - q) + pick(n, i, j + 1) * (1 - p) * q + pick(n, i + 1, j) * p * (1 - q) +
                    pick(n, i + 1, j + 1) * p * q)
    return np.stack(made)


def attention(q, k, v, norm, causal, mask, query_lengths, key_lengths):
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    y = q @ k.swapaxes(-1, -2)
    seen = np.ones(y.shape, bool)
    rows, columns = np.arange(y.shape[2])[:, None], np.arange(y.shape[3])
    if causal != "NONE":
        seen &= columns <= rows + (y.shape[3] - y.shape[2] if causal == "LOWER_RIGHT" else 0)
    if key_lengths is not None:
        seen &= columns < key_lengths.reshape(-1, 1, 1, 1)
    if mask is not None and mask.dtype == bool:
        seen &= mask
    elif mask is not None:
        y = y + mask
    y = softmax(np.where(seen, y, -np.inf), -1) if norm == "SOFTMAX" else np.where(seen, y, 0)
    y = y @ v
    return y if query_lengths is None else np.where(rows < query_lengths.reshape(-1, 1, 1, 1), y, 0)


def rotary(x, cos, sin, interleaved, dim):
    """x [B, H, N, D]; cos and sin [B, N, dim / 2]."""
    dim = dim or x.shape[-1]
    cos, sin = cos[:, None], sin[:, None]
    first, second = (slice(0, dim, 2), slice(1, dim, 2)) if interleaved else (slice(0, dim // 2), slice(dim // 2, dim))
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


def moe(x, experts, scores, weights, biases, silu, limit, alpha, beta):
    gate_w, up_w, down_w = weights
    gate_b, up_b, down_b = biases or [np.zeros(w.shape[::2]) for w in weights]
    y = np.zeros_like(x)
    for at in np.ndindex(*x.shape[:-1]):
        for e, share in zip(experts[at], scores[at]):
            gate, up = x[at] @ gate_w[e] + gate_b[e], x[at] @ up_w[e] + up_b[e]
            gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
            gate = gate * sigmoid(alpha * gate) if silu else gate
            y[at] += share * ((gate * (up + beta)) @ down_w[e] + down_b[e])
    return y
