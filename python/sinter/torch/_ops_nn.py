# SPDX-License-Identifier: Apache-2.0
"""Converters of products, normalisations, pooling, resizing, attention, reductions and sorting."""
import math

import torch

from ._lowering import Unsupported, as_int, converts
from ._ops_math import FLOATS
from ._ops_shape import reshaped


# ---- products ----

@converts("aten.mm", "aten.bmm", "aten.matmul")
def matmul(c, n, a, b):
    return c.op("MatMul", c.x(a), c.x(b))


@converts("aten.addmm", "aten.baddbmm")
def addmm(c, n, bias, a, b, beta=1, alpha=1):
    dtype = c.dtype(n)
    made = c.op("MatMul", c.x(a), c.x(b))
    made = made if alpha == 1 else c.op("Mul", made, c.x(alpha, dtype))
    if beta == 0:
        return made
    bias = c.x(bias) if beta == 1 else c.op("Mul", c.x(bias), c.x(beta, dtype))
    return c.op("Add", made, bias)


@converts("aten.linear")
def linear(c, n, x, weight, bias=None):
    made = c.op("MatMul", c.x(x), c.op("Transpose", c.x(weight), perm=list(reversed(range(c.rank(weight))))))
    return made if bias is None else c.op("Add", made, c.x(bias))


def per_axis(values, count):
    values = list(values)
    return values * count if len(values) == 1 else values


@converts("aten.convolution")
def convolution(c, n, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if c.dtype(n) not in FLOATS:
        raise Unsupported(f"of {c.dtype(n)}")
    axes = c.rank(x) - 2
    kernel = c.need_ints("the kernel", c.shape(weight)[2:])
    stride, padding, dilation = (per_axis(c.need_ints("the window", v), axes) for v in (stride, padding, dilation))
    attributes = dict(kernel_shape=kernel, strides=stride, pads=padding * 2, dilations=dilation, group=groups)
    if transposed:
        attributes["output_padding"] = per_axis(c.need_ints("output_padding", output_padding), axes)
    return c.op("ConvTranspose" if transposed else "Conv", c.x(x), c.x(weight), c.x(bias), **attributes)


# ---- normalisations ----

def scale_of(c, x, weight, shape):
    return c.x(weight, c.dtype(x)) if weight is not None else c.full(c.need_ints("the scale", shape), 1, c.dtype(x))


@converts("aten.native_layer_norm")
def layer_norm(c, n, x, shape, weight, bias, eps):
    bias = None if bias is None else c.x(bias, c.dtype(x))
    return [c.op("LayerNormalization", c.x(x), scale_of(c, x, weight, shape), bias, axis=-len(shape), epsilon=eps), None, None]


@converts("aten._fused_rms_norm")
def rms_norm(c, n, x, shape, weight, eps):
    eps = torch.finfo(c.dtype(x)).eps if eps is None else eps
    return [c.op("RMSNormalization", c.x(x), scale_of(c, x, weight, shape), axis=-len(shape), epsilon=eps), None]


@converts("aten.native_group_norm")
def group_norm(c, n, x, weight, bias, batch, channels, size, groups, eps):
    dtype, channels = c.dtype(x), c.need_ints("the channels", [channels])
    bias = c.full(channels, 0, dtype) if bias is None else c.x(bias, dtype)
    return [c.op("GroupNormalization", c.x(x), scale_of(c, x, weight, channels), bias, num_groups=groups, epsilon=eps),
            None, None]


def batch_norm_of(c, x, weight, bias, mean, var, eps):
    dtype, channels = c.dtype(mean), c.need_ints("the channels", [c.shape(x)[1]])
    weight = c.full(channels, 1, dtype) if weight is None else c.x(weight, dtype)
    bias = c.full(channels, 0, dtype) if bias is None else c.x(bias, dtype)
    made = c.op("BatchNormalization", c.x(x, dtype), weight, bias, c.x(mean), c.x(var), epsilon=eps)
    return c.cast(made, dtype, c.dtype(x))


@converts("aten._native_batch_norm_legit_no_training")
def batch_norm(c, n, x, weight, bias, mean, var, momentum, eps):
    return [batch_norm_of(c, x, weight, bias, mean, var, eps), None, None]


@converts("aten.native_batch_norm", "aten._native_batch_norm_legit.default", "aten.cudnn_batch_norm")
def batch_norm_with_flag(c, n, x, weight, bias, mean, var, training, momentum, eps):
    if training or mean is None:
        raise Unsupported("statistics of the batch")
    return [batch_norm_of(c, x, weight, bias, mean, var, eps)] + [None] * (len(n.meta["val"]) - 1)


@converts("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(c, n, x, weight, bias, training, momentum, eps):
    """What instance norms are made of: [1, N*C, ...] with the statistics of the input itself."""
    dtype, rank = c.dtype(x), c.rank(x)
    axes = c.ints([0] + list(range(2, rank)))
    centered = c.op("Sub", c.x(x), c.op("ReduceMean", c.x(x), axes))
    var = c.op("ReduceMean", c.op("Mul", centered, centered), axes)
    made = c.op("Div", centered, c.op("Sqrt", c.op("Add", var, c.scalar(eps, dtype))))
    for op, tensor in (("Mul", weight), ("Add", bias)):
        if tensor is not None:
            made = c.op(op, made, reshaped(c, c.x(tensor, dtype), [c.shape(x)[1]] + [1] * (rank - 2)))
    return [made, None, None]


@converts("aten.native_dropout")
def dropout(c, n, x, p, train):
    if train:
        raise Unsupported("random numbers")
    return [c.op("Identity", c.x(x)), None]


# ---- softmax, attention ----

@converts("aten._softmax", "aten._log_softmax")
def softmax(c, n, x, dim, half_to_float):
    x = c.x(x, c.dtype(n))
    if not c.rank(n):
        return c.op("Mul", x, c.scalar(0, c.dtype(n))) if "log" in n.target.__name__ else c.op("Exp", c.op("Sub", x, x))
    return c.op("LogSoftmax" if "_log_softmax" in n.target.__name__ else "Softmax", x, axis=c.dim(n, dim))


@converts("aten._safe_softmax")
def safe_softmax(c, n, x, dim, dtype=None):
    dtype, axis = c.dtype(n), c.dim(n, dim)
    x = c.x(x, dtype)
    is_masked = c.op("Equal", c.op("ReduceMax", x, c.ints([axis])), c.scalar(-math.inf, dtype))
    return c.op("Where", is_masked, c.scalar(0, dtype), c.op("Softmax", x, axis=axis))


def attention_of(c, n, q, k, v, mask, dropout_p, is_causal, scale, enable_gqa=False):
    if dropout_p:
        raise Unsupported("dropout")
    if c.rank(q) != 4 or c.rank(k) != 4 or c.rank(v) != 4:
        raise Unsupported("attention of other ranks than 4")
    if c.shape(q)[:1] != c.shape(k)[:1] or c.shape(q)[1] != c.shape(k)[1] and not enable_gqa:
        raise Unsupported("heads that are broadcast")
    if mask is not None and c.dtype(mask) != torch.bool:
        mask = c.x(mask, c.dtype(q))
    elif mask is not None:
        mask = c.x(mask)
    return c.op("Attention", c.x(q), c.x(k), c.x(v), mask, is_causal=int(bool(is_causal)),
                scale=None if scale is None else float(scale))


@converts("aten.scaled_dot_product_attention")
def attention(c, n, q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return attention_of(c, n, q, k, v, mask, dropout_p, is_causal, scale, enable_gqa)


@converts("aten._scaled_dot_product_flash_attention_for_cpu")
def attention_cpu(c, n, q, k, v, dropout_p=0.0, is_causal=False, mask=None, scale=None):
    return [attention_of(c, n, q, k, v, mask, dropout_p, is_causal, scale), None]


@converts("aten._scaled_dot_product_flash_attention")
def attention_flash(c, n, q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, scale=None):
    return [attention_of(c, n, q, k, v, None, dropout_p, is_causal, scale)] + [None] * 8


@converts("aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_cudnn_attention")
def attention_efficient(c, n, q, k, v, mask, log_sum_exp, dropout_p=0.0, is_causal=False, *rest):
    scale = rest[-1] if rest else None
    return [attention_of(c, n, q, k, v, mask, dropout_p, is_causal, scale)] + [None] * 8


# ---- pooling, resizing ----

def windows(c, x, kernel, stride, padding, dilation, axes):
    kernel, padding = per_axis(c.need_ints("the window", kernel), axes), per_axis(c.need_ints("padding", padding), axes)
    stride = per_axis(c.need_ints("the stride", stride), axes) if stride else kernel
    return dict(kernel_shape=kernel, strides=stride, pads=padding * 2,
                dilations=None if dilation is None else per_axis(c.need_ints("dilation", dilation), axes))


def batched(c, x, axes):
    """The value of x with an axis for the batch, and whether it was added."""
    is_single = c.rank(x) == axes + 1
    return (c.op("Unsqueeze", c.x(x), c.ints([0])) if is_single else c.x(x)), is_single


def unbatched(c, name, is_single):
    return c.op("Squeeze", name, c.ints([0])) if is_single else name


@converts("aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def max_pool(c, n, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    if c.dtype(x) not in FLOATS:
        raise Unsupported(f"of {c.dtype(x)}")
    axes = 3 if "3d" in n.target.__name__ else 2
    data, is_single = batched(c, x, axes)
    attributes = dict(windows(c, x, kernel, stride, padding, dilation, axes), ceil_mode=int(ceil_mode))
    if not any(u.args[1] == 1 for u in n.users):
        return [unbatched(c, c.op("MaxPool", data, **attributes), is_single), None]
    made, index = c.op("MaxPool", data, results=2, **attributes)
    plane = math.prod(c.need_ints("the indices of a plane", c.shape(x)[-axes:]))
    return [unbatched(c, made, is_single), unbatched(c, c.op("Mod", index, c.scalar(plane, torch.int64)), is_single)]


@converts("aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(c, n, x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):
    if c.dtype(x) not in FLOATS or divisor is not None:
        raise Unsupported("divisor_override" if divisor is not None else f"of {c.dtype(x)}")
    axes = 3 if "3d" in n.target.__name__ else 2
    data, is_single = batched(c, x, axes)
    attributes = windows(c, x, kernel, stride, padding, None, axes)
    made = c.op("AveragePool", data, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad), **attributes)
    return unbatched(c, made, is_single)


@converts("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d")
def adaptive_avg_pool(c, n, x, size):
    axes = len(size)
    have, want = c.need_ints("adaptive pooling", c.shape(x)[-axes:]), c.need_ints("adaptive pooling", size)
    if 0 in want or 0 in have:
        raise Unsupported("a size of 0")
    if all(h % w == 0 for h, w in zip(have, want)):
        data, is_single = batched(c, x, axes)
        kernel = [h // w for h, w in zip(have, want)]
        return unbatched(c, c.op("AveragePool", data, kernel_shape=kernel, strides=kernel), is_single)
    # Windows of several sizes: a product with a matrix of their weights for each axis.
    made = c.x(x)
    for i, (h, w) in enumerate(zip(have, want)):
        matrix = torch.zeros(h, w, dtype=torch.float64)
        for j in range(w):
            first, last = j * h // w, -(-(j + 1) * h // w)
            matrix[first:last, j] = 1 / (last - first)
        perm = list(range(c.rank(x)))
        axis = c.rank(x) - axes + i
        perm[axis], perm[-1] = perm[-1], perm[axis]
        made = c.op("MatMul", c.op("Transpose", made, perm=perm), c.tensor(matrix.to(c.dtype(x))))
        made = c.op("Transpose", made, perm=perm)
    return made


def resized(c, n, x, scales, **attributes):
    """Resize of all axes behind the second, by scales where torch was given such, else to the sizes of the result."""
    if c.dtype(x) not in FLOATS:
        raise Unsupported(f"of {c.dtype(x)}")
    if scales and None not in scales:
        given = c.tensor(torch.tensor([1.0, 1.0] + [float(s) for s in scales], dtype=torch.float32))
        return c.op("Resize", c.x(x), None, given, **attributes)
    return c.op("Resize", c.x(x), None, None, c.ints(c.shape(n)), **attributes)


@converts("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d", "aten._upsample_nearest_exact1d",
          "aten._upsample_nearest_exact2d", "aten._upsample_nearest_exact3d")
def nearest(c, n, x, size, *scales):
    if n.target._overloadname == "vec":
        scales = scales[0]
    exact = "exact" in n.target.__name__
    return resized(c, n, x, scales, mode="nearest", nearest_mode="round_prefer_ceil" if exact else "floor",
                   coordinate_transformation_mode="half_pixel" if exact else "asymmetric")


@converts("aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d", "aten.upsample_bicubic2d")
def smooth(c, n, x, size, align_corners, *scales):
    if n.target._overloadname == "vec":
        scales = scales[0]
    cubic = "cubic" in n.target.__name__
    return resized(c, n, x, None if align_corners else scales, mode="cubic" if cubic else "linear",
                   cubic_coeff_a=-0.75 if cubic else None,
                   coordinate_transformation_mode="align_corners" if align_corners else "half_pixel")


@converts("aten.grid_sampler_2d")
def grid_sampler(c, n, x, grid, mode, padding, align_corners):
    return c.op("GridSample", c.x(x), c.x(grid), mode=("linear", "nearest", "cubic")[mode],
                padding_mode=("zeros", "border", "reflection")[padding], align_corners=int(align_corners))


# ---- reductions ----

def axes_of(c, x, dim):
    """The axes of a reduction as a value; None: all of them."""
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    return c.ints(sorted(c.dim(x, d) for d in dims)) if dims else None


def reduced(c, op, name, x, dim, keep):
    """A reduction of the value `name`, which has the axes of x."""
    if not c.rank(x):
        return c.op("Identity", name)
    return c.op(op, name, axes_of(c, x, dim), keepdims=int(bool(keep)))


@converts("aten.sum", "aten.mean")
def sum_(c, n, x, dim=None, keep=False, dtype=None):
    if isinstance(dim, torch.dtype) or not n.target._overloadname.startswith("dim"):
        dim, keep = None, False
    op = "ReduceSum" if n.target.overloadpacket.__name__ == "sum" else "ReduceMean"
    return reduced(c, op, c.x(x, c.dtype(n)), x, dim, keep)


@converts("aten.prod")
def prod(c, n, x, dim=None, keep=False, dtype=None):
    if n.target._overloadname != "dim_int":
        dim, keep = None, False
    return reduced(c, "ReduceProd", c.x(x, c.dtype(n)), x, dim, keep)


@converts("aten.amax", "aten.amin", "aten.max.default", "aten.min.default")
def extreme(c, n, x, dim=(), keep=False):
    op, dtype = ("ReduceMax" if "max" in n.target.__name__ else "ReduceMin"), c.dtype(n)
    if dtype == torch.bool:
        return c.cast(reduced(c, op, c.x(x, torch.uint8), x, dim, keep), torch.uint8, torch.bool)
    return reduced(c, op, c.x(x), x, dim, keep)


@converts("aten.any", "aten.all")
def any_(c, n, x, dim=None, keep=False):
    op = "ReduceMax" if n.target.overloadpacket.__name__ == "any" else "ReduceMin"
    name = c.cast(c.x(x, torch.bool), torch.bool, torch.int32)
    return c.cast(c.cast(reduced(c, op, name, x, dim, keep), torch.int32, torch.bool), torch.bool, c.dtype(n))


def ordered(c, x):
    """A value whose order is that of x, of a type that orders."""
    return c.x(x, torch.uint8) if c.dtype(x) == torch.bool else c.x(x)


@converts("aten.max.dim", "aten.min.dim")
def extreme_dim(c, n, x, dim, keep=False):
    if not c.rank(x):
        return [c.op("Identity", c.x(x)), c.scalar(0, torch.int64)]
    is_max = "max" in n.target.__name__
    values = c.op("ReduceMax" if is_max else "ReduceMin", ordered(c, x), c.ints([c.dim(x, dim)]), keepdims=int(keep))
    if c.dtype(x) == torch.bool:
        values = c.cast(values, torch.uint8, torch.bool)
    return [values, c.op("ArgMax" if is_max else "ArgMin", ordered(c, x), axis=c.dim(x, dim), keepdims=int(keep))]


@converts("aten.argmax", "aten.argmin")
def arg_extreme(c, n, x, dim=None, keep=False):
    if not c.rank(x):
        return c.scalar(0, torch.int64)
    op, data = ("ArgMax" if "argmax" in n.target.__name__ else "ArgMin"), ordered(c, x)
    if dim is not None:
        return c.op(op, data, axis=c.dim(x, dim), keepdims=int(keep))
    found = c.op(op, c.op("Reshape", data, c.ints([-1])), axis=0, keepdims=0)
    return reshaped(c, found, c.shape(n)) if keep else found


def moments(c, n, x, dim, correction, keep):
    """(variance, mean) in the type of the result."""
    dtype, data = c.dtype(x), c.x(x)
    if dtype in (torch.float16, torch.bfloat16):
        data, dtype = c.cast(data, dtype, torch.float32), torch.float32
    axes = axes_of(c, x, dim)
    mean = c.op("ReduceMean", data, axes)
    centered = c.op("Sub", data, mean)
    total = c.op("ReduceSum", c.op("Mul", centered, centered), axes, keepdims=int(bool(keep)))
    count = 1
    dims = [dim] if isinstance(dim, int) else list(dim or range(c.rank(x)))
    for d in dims:
        count = count * c.shape(x)[c.dim(x, d)] if c.rank(x) else 1
    correction = 1 if correction is None else correction
    if as_int(count) is not None:
        divisor = c.scalar(max(as_int(count) - correction, 0), dtype)
    else:
        divisor = c.op("Max", c.op("Sub", c.x(count, dtype), c.scalar(correction, dtype)), c.scalar(0, dtype))
    var = c.op("Div", total, divisor)
    if not keep:
        mean = c.op("Squeeze", mean, axes)
    return c.cast(var, dtype, c.dtype(x)), c.cast(mean, dtype, c.dtype(x))


@converts("aten.var.correction")
def var(c, n, x, dim=None, correction=None, keep=False):
    return moments(c, n, x, dim, correction, keep)[0]


@converts("aten.var_mean.correction")
def var_mean(c, n, x, dim=None, correction=None, keep=False):
    return list(moments(c, n, x, dim, correction, keep))


@converts("aten.cumsum", "aten.cumprod")
def cumulate(c, n, x, dim, dtype=None):
    data = c.x(x, c.dtype(n))
    if not c.rank(x):
        return c.op("Identity", data)
    return c.op("CumSum" if "cumsum" in n.target.__name__ else "CumProd", data, c.scalar(c.dim(x, dim), torch.int64))


# ---- sorting ----

def sorted_by(c, x, k, dim, largest, results_sorted):
    if not c.rank(x):
        return [c.op("Identity", c.x(x)), c.scalar(0, torch.int64)]
    values, index = c.op("TopK", ordered(c, x), c.ints([k]), axis=c.dim(x, dim), largest=int(bool(largest)),
                         sorted=int(bool(results_sorted)), results=2)
    return [c.cast(values, torch.uint8, torch.bool) if c.dtype(x) == torch.bool else values, index]


@converts("aten.topk")
def topk(c, n, x, k, dim=-1, largest=True, results_sorted=True):
    return sorted_by(c, x, k, dim, largest, results_sorted)


@converts("aten.sort.default")
def sort(c, n, x, dim=-1, descending=False):
    return sorted_by(c, x, c.shape(x)[c.dim(x, dim)] if c.rank(x) else 1, dim, descending, True)


@converts("aten.sort.stable")
def sort_stable(c, n, x, stable, dim=-1, descending=False):
    return sort(c, n, x, dim, descending)
