# SPDX-License-Identifier: Apache-2.0
"""What random_ops.py draws of products, windows, norms, images, recurrent layers, codes, signals and ai.onnx.ml."""
import numpy as np
from onnx import numpy_helper

from random_ops import FLOATS, NUMPY, Unfit, recipe
from random_recipes import axis_of, broadcast



@recipe("MatMul")
def matmul(d):
    x, dtype, s = d.x(1, 4)
    if len(s) == 1:
        t = d.pick([s[0]], [s[0], d.size()], [d.pick(1, 2), s[0], d.size()])
    else:
        t = d.pick([s[-1]], [s[-1], d.size()], broadcast(d, s[:-2]) + [s[-1], d.size()])
    d.node([x, d.data(dtype, t)])


@recipe("Gemm")
def gemm(d):
    x, dtype, s = d.x(2, 2)
    ta, tb, n = d.odd(0, 1), d.odd(0, 1), d.size()
    k, m = (s[0], s[1]) if ta else (s[1], s[0])
    c = d.data(dtype, d.pick([m, n], [n], [1, n], [m, 1], [1], [])) if d.maybe(0.7) or d.opset < 11 else ""
    whole = dtype not in FLOATS
    d.node([x, d.data(dtype, [n, k] if tb else [k, n]), c], transA=ta, transB=tb,
           alpha=None if whole else d.odd(1.0, 0.5), beta=None if whole else d.odd(1.0, 2.0, 0.0))


def windows(d, rank, sizes, pool=False):
    """kernel, attributes of windows that fit."""
    kernel, strides, dilations, begin, end = [], [], [], [], []
    for k in range(rank):
        n = d.choose.randint(1, 3)
        dil = d.pick(1, 1, 1, 2)
        b, e = (d.choose.randint(0, n - 1 if pool else 2) for _ in range(2))
        if (n - 1) * dil + 1 > sizes[k] + b + e:
            n, dil = 1, 1
            b = e = 0
        kernel.append(n)
        strides.append(d.pick(1, 1, 2, 3))
        dilations.append(dil)
        begin.append(b)
        end.append(e)
    auto = d.pick(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto == "VALID" and any((n - 1) * dil + 1 > s for n, dil, s in zip(kernel, dilations, sizes)):
        auto = None
    out = {"strides": strides if d.maybe(0.7) else None, "auto_pad": auto}
    out["dilations"] = dilations if any(k != 1 for k in dilations) or d.maybe(0.3) else None
    if auto in (None, "NOTSET"):
        out["pads"] = begin + end if any(begin + end) or d.maybe(0.5) else None
    return kernel, out


@recipe("Conv", "ConvInteger", "QLinearConv")
def conv(d):
    rank, groups = d.pick(1, 2, 2, 3), d.pick(1, 1, 2, 3)
    sizes = [d.choose.randint(1, 9) for _ in range(rank)]
    shape = [d.pick(0, 1, 2, 3, 1, 2), groups * d.pick(1, 2, 4), *sizes]
    kernel, attributes = windows(d, rank, sizes)
    m = groups * d.pick(1, 2, 3, 8)
    attributes.update(group=groups if groups > 1 else d.odd(1), kernel_shape=d.pick(None, kernel))
    w = [m, shape[1] // groups, *kernel]
    if d.schema.name == "Conv":
        x, dtype, _ = d.x(shape=shape)
        return d.node([x, d.data(dtype, w), d.data(dtype, [m]) if d.maybe() else ""], **attributes)
    a, b = (d.pick("uint8", "int8") for _ in range(2))

    def zero(t, n=None):
        return d.data(t, [] if n is None else [n], 0, 3)

    if d.schema.name == "ConvInteger":
        return d.node([d.data(a, shape), d.data(b, w), zero(a) if d.maybe() else "", d.pick("", zero(b))], **attributes)
    n = d.pick(None, m)
    d.node([
        d.data(a, shape), d.data("float", [], 0.1, 1), zero(a), d.data(b, w),
        d.data("float", [] if n is None else [n], 0.1, 1), zero(b, n), d.data("float", [], 0.5, 2), zero(a),
        d.data("int32", [m]) if d.maybe() else ""
    ], **attributes)


@recipe("ConvTranspose")
def conv_transpose(d):
    rank, groups = d.pick(1, 2, 2, 3), d.pick(1, 1, 2)
    sizes = [d.choose.randint(1, 6) for _ in range(rank)]
    shape = [d.pick(1, 2), groups * d.pick(1, 2, 3), *sizes]
    kernel, attributes = windows(d, rank, sizes)
    m = d.pick(1, 2, 4)
    attributes.update(group=groups if groups > 1 else None, kernel_shape=d.pick(None, kernel))
    strides = attributes["strides"] or [1] * rank
    dil = attributes["dilations"] or [1] * rank
    if (attributes["auto_pad"] or "").startswith("SAME") and any(s > (k - 1) * q + 1
                                                                 for s, k, q in zip(strides, kernel, dil)):
        attributes["auto_pad"] = None  # a negative pad: ONNX Runtime takes 0
    if d.maybe(0.3):
        attributes["output_padding"] = [d.choose.randint(0, max(s, q) - 1) for s, q in zip(strides, dil)]
    if d.maybe(0.2):
        extra = attributes.get("output_padding") or [0] * rank
        attributes.pop("pads", None)
        attributes["output_shape"] = [
            max(1, (n - 1) * s + (k - 1) * q + 1 + e - d.choose.randint(0, 2))
            for n, s, k, q, e in zip(sizes, strides, kernel, dil, extra)
        ]
    x, dtype, _ = d.x(shape=shape)
    d.node([x, d.data(dtype, [shape[1], m, *kernel]), d.data(dtype, [m * groups]) if d.maybe() else ""], **attributes)


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(d):
    rank = d.pick(1, 2, 2, 3)
    sizes = [d.choose.randint(1, 9) for _ in range(rank)]
    x, _, _ = d.x(shape=[d.pick(0, 1, 2, 2), d.pick(1, 2, 3), *sizes])
    kernel, attributes = windows(d, rank, sizes, True)
    if attributes["strides"] and any(
            a > b for a, b in zip(attributes["strides"], kernel)) and (attributes["auto_pad"] or "").startswith("SAME"):
        attributes["auto_pad"] = None  # a negative pad: refused by ONNX Runtime, or a window that moves
    if not d.has("dilations") or (attributes["auto_pad"]
                                  or "").startswith("SAME"):  # there ONNX Runtime takes other sizes
        attributes["dilations"] = None
    outs = 2 if d.schema.name == "MaxPool" and d.opset >= 8 and d.maybe(0.3) else 1
    d.node([x], outs, kernel_shape=kernel, **{k: v
              for k, v in attributes.items() if v is not None},
           **d.attr(ceil_mode=d.odd(0, 1), count_include_pad=d.odd(0, 1), p=d.odd(2, 1, 3),
                    storage_order=d.odd(0, 1) if outs == 2 else None))


@recipe("MaxUnpool")
def max_unpool(d):
    n, c, h, w = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 4), d.choose.randint(1, 4)
    k, s = [d.choose.randint(1, 3) for _ in range(2)], [d.choose.randint(1, 3) for _ in range(2)]
    full = [n, c, (h - 1) * s[0] + k[0], (w - 1) * s[1] + k[1]]
    total = int(np.prod(full))
    if n * c * h * w > total:
        raise Unfit("small")
    i = d.rng.permutation(total)[:n * c * h * w].reshape(n, c, h, w).astype("i8")
    if d.maybe(0.3):  # of another size, ONNX Runtime takes the places as they are, ONNX does not
        return d.node([d.data("float", [n, c, h, w]), d.value(i), d.numbers(full)], kernel_shape=k, strides=s)
    d.node([d.data("float", [n, c, h, w]), d.value(i)], kernel_shape=k, strides=s)


@recipe("BatchNormalization")
def batch_norm(d):
    x, dtype, s = d.x(2, 5)
    c = s[1]
    is_trained = dtype == "float" and 0 not in s and d.maybe(0.3)  # of a batch: with three outputs, earlier with five
    more = {"training_mode": 1, "momentum": d.odd(0.9, 0.4)} if is_trained else {}
    d.node([x, *[d.data(dtype, [c]) for _ in range(3)], d.data(dtype, [c], 0.5, 2)],
           (3 if d.has("training_mode") else 5) if is_trained else 1,
           **d.attr(epsilon=d.odd(1e-5, 1e-2), spatial=d.odd(1), **more))


@recipe("InstanceNormalization")
def instance_norm(d):
    x, dtype, s = d.x(3, 5, fits=lambda s: 0 not in s and np.prod(s[2:]) > 1)
    d.node([x, d.data(dtype, [s[1]]), d.data(dtype, [s[1]])], epsilon=d.odd(1e-5, 1e-2))


@recipe("GroupNormalization")
def group_norm(d):
    g = d.pick(1, 2, 3)
    c = g * d.pick(1, 2, 4)
    x, dtype, s = d.x(shape=[d.pick(1, 2), c, *[d.choose.randint(1, 5) for _ in range(d.choose.randint(0, 3))]])
    n = c if d.opset >= 21 else g
    d.node([x, d.data(dtype, [n]), d.data(dtype, [n])], num_groups=g, epsilon=d.odd(1e-5, 1e-2),
           **d.attr(stash_type=d.odd(1)))


@recipe("LayerNormalization", "RMSNormalization")
def layer_norm(d):
    x, dtype, s = d.x(1, 4)
    axis = d.pick(None, axis_of(d, len(s)))
    t = s[(-1 if axis is None else axis) % len(s):]
    t = [d.pick(n, n, 1) for n in t] if d.maybe(0.1) else t
    more = {} if d.schema.name == "RMSNormalization" else {"b": d.data(dtype, t) if d.maybe() else ""}
    d.node([x, d.data(dtype, t), *more.values()], d.pick(1, 1, 2, 3) if more else 1, axis=axis,
           epsilon=d.odd(1e-5, 1e-2), stash_type=d.odd(1))


@recipe("MeanVarianceNormalization")
def mvn(d):
    # Of one element, and of elements that are the same, ONNX Runtime gives NaN.
    s = [d.choose.randint(2, 5) for _ in range(4)]
    x = d.value(d.rng.normal(size=s).astype(NUMPY[d.type(among=("float", "double"))]))
    d.node([x], axes=d.pick(None, d.choose.sample(range(len(s)), d.choose.randint(1, len(s)))))


@recipe("LRN")
def lrn(d):
    x, _, _ = d.x(3, 5, fits=lambda s: 0 not in s)
    d.node([x], size=d.pick(1, 3, 5, 2), alpha=d.odd(1e-4, 0.5), beta=d.odd(0.75, 1.0), bias=d.odd(1.0, 2.0))


@recipe("Dropout")
def dropout(d):
    x, _, s = d.x(0, 4)
    if d.has("ratio"):
        return d.node([x], ratio=d.odd(0.5, 0.1))
    d.node([
        x, d.numbers(0.3, "float") if d.maybe() else "",
        d.value(np.array(False)) if d.maybe(0.3) and d.opset >= 12 else ""
    ], d.pick(1, 2))


@recipe("Resize")
def resize(d):
    rank = d.pick(1, 2, 3, 4, 4, 5)
    s = [d.choose.randint(1, 6) for _ in range(rank)]
    mode = d.pick(None, "nearest", "linear", "cubic")
    if mode in ("linear", "cubic") and rank > (2 if mode == "cubic" else 3):
        s[0:2] = [d.pick(1, 2), d.pick(1, 3)]
        free = list(range(max(rank - (2 if mode == "cubic" else 3), 0), rank))
    else:
        free = list(range(rank))
    # Of integers, what is between: ONNX rounds, ONNX Runtime cuts off.
    x, dtype, _ = d.x(of="T1" if d.opset >= 11 else "T", among=None if mode in (None, "nearest") else FLOATS, shape=s)
    scales = [d.pick(1.0, 2.0, 0.5, 1.5, 0.7, 3.0) if k in free else 1.0 for k in range(rank)]
    coordinate = d.pick(None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
                        *(["half_pixel_symmetric"] if d.opset >= 19 else []))
    if coordinate == "align_corners":  # of a fraction: ONNX keeps it in the length, ONNX Runtime does not
        scales = [float(max(1, int(f))) for f in scales]
    scales = [1.0 if int(n * f) == 0 else f for n, f in zip(s, scales)]
    if coordinate == "pytorch_half_pixel" and 1 in [int(n * f) for n, f in zip(s, scales)]:
        coordinate = None  # of one element: ONNX's reference and ONNX Runtime read others
    if d.opset < 11:
        return d.node([x, d.numbers(scales, "float")],
                      mode=d.pick(None, "nearest", "linear") if rank in (2, 4) else None)
    if coordinate == "tf_crop_and_resize":  # ONNX Runtime leaves the box out along axes that keep their size
        boxed = [k in free and int(s[k] * scales[k]) != s[k] and (mode in (None, "nearest") or k >= rank - 2)
                 for k in range(rank)]
        roi = d.numbers([d.pick(0.0, 0.125, 0.25) if boxed[k] else 0.0
                         for k in range(rank)] + [d.pick(1.0, 0.75, 1.25) if boxed[k] else 1.0 for k in range(rank)],
                        "float", "init")
    else:
        roi = "" if d.opset >= 13 or d.maybe() else d.numbers([], "float", "init")
    attributes = d.attr(mode=mode, coordinate_transformation_mode=coordinate,
                        nearest_mode=d.pick(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil") if mode
                        in (None, "nearest") else None, cubic_coeff_a=d.odd(-0.75, -0.5) if mode == "cubic" else None,
                        exclude_outside=d.odd(0, 1) if mode == "cubic" else None, extrapolation_value=d.odd(0.0, 3.0),
                        antialias=d.odd(0, 1) if mode in ("linear", "cubic") and rank == 4 else None)
    if d.maybe():
        out = [int(n * f) if k in free else n for k, (n, f) in enumerate(zip(s, scales))]
        if d.opset >= 18 and d.maybe(0.4):
            axes = free
            out = [out[a] for a in axes]
            policy = d.pick(None, "stretch", "not_larger", "not_smaller")
            if coordinate == "tf_crop_and_resize":
                policy = None  # the last place: ONNX has it by the scale, ONNX Runtime by the size
                low = [0.25 if boxed[a] else 0.0 for a in axes]
                roi = d.numbers(low + [1 - v for v in low], "float", "init")
            # Axes from the back with a policy: ONNX Runtime takes the policy for other axes.
            return d.node([x, roi, "", d.numbers(out)],
                          axes=[a - rank if d.maybe(0.3) and policy is None else a for a in axes],
                          keep_aspect_ratio_policy=policy, **attributes)
        return d.node([x, roi, d.numbers([], "float", "init") if d.opset < 13 else "", d.numbers(out)], **attributes)
    if coordinate == "tf_crop_and_resize":  # sizes of scales: ONNX Runtime leaves the roi out of them
        raise Unfit("crop by scales")
    d.node([x, roi or (d.numbers([], "float", "init") if d.opset < 13 else ""),
            d.numbers(scales, "float")], **attributes)


@recipe("Upsample")
def upsample(d):
    mode = d.odd("nearest", "linear")
    x, _, s = d.x(4, 4, among=FLOATS if mode == "linear" else None, fits=lambda s: 0 not in s)
    scales = [1.0, 1.0, d.pick(1.0, 2.0, 1.5), d.pick(1.0, 2.0, 3.0)]
    if d.has("scales"):
        return d.node([x], scales=scales, mode=mode)
    d.node([x, d.numbers(scales, "float")], mode=mode)


@recipe("GridSample")
def grid_sample(d):
    rank = d.pick(2, 2, 3) if d.opset >= 20 else 2
    n, c = d.pick(1, 2), d.pick(1, 3)
    x, _, _ = d.x(of="T1", shape=[n, c] + [d.choose.randint(1, 6) for _ in range(rank)])
    modes = ("linear", "nearest") + (("cubic", ) if rank == 2 else
                                     ()) if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    grid = d.data("float", [n] + [d.choose.randint(1, 5) for _ in range(rank)] + [rank], -1.3, 1.3)
    d.node([x, grid], mode=d.pick(None, *modes), padding_mode=d.pick(None, "zeros", "border", "reflection"),
           align_corners=d.odd(0, 1))


@recipe("AffineGrid")
def affine_grid(d):
    rank, n = d.pick(2, 3), d.pick(1, 2)
    theta = d.data(d.type("T1", FLOATS[:2]), [n, rank, rank + 1])
    corners = d.odd(0, 1)
    least = 2 if corners else 1  # one place between two corners: not defined
    d.node([theta, d.numbers([n, 2] + [d.choose.randint(least, 5) for _ in range(rank)])], align_corners=corners)


@recipe("RoiAlign")
def roi_align(d):
    n, h, w = d.pick(1, 2), d.choose.randint(2, 8), d.choose.randint(2, 8)
    dtype = d.type("T1", FLOATS[:2])
    k = d.size()
    a = np.sort(d.rng.uniform(-1, 9, (k, 2, 2)), 1).reshape(k, 4)
    d.node([
        d.data(dtype, [n, d.pick(1, 3), h, w]), d.value(a.astype(NUMPY[dtype])),
        d.value(d.array("int64", [k], 0, n - 1))
    ],
           **d.attr(mode=d.odd("avg", "max"), output_height=d.odd(1, 3), output_width=d.odd(1, 2),
                    sampling_ratio=d.odd(0, 2), spatial_scale=d.odd(1.0, 0.5),
                    coordinate_transformation_mode=d.odd("half_pixel", "output_half_pixel")))


@recipe("MaxRoiPool")
def max_roi_pool(d):
    n, k = d.pick(1, 2), d.pick(1, 3)
    a = np.concatenate([d.rng.integers(0, n, (k, 1)), np.sort(d.rng.integers(0, 8, (k, 2, 2)), 1).reshape(k, 4)], 1)
    d.node([d.data("float", [n, 2, 6, 7]), d.value(a.astype("f4"))], pooled_shape=[d.pick(1, 2, 3), d.pick(1, 2)],
           spatial_scale=d.odd(1.0, 0.5))


@recipe("Col2Im")
def col2im(d):
    rank = d.pick(1, 2, 2, 3)
    image = [d.choose.randint(3, 7) for _ in range(rank)]
    block = [d.choose.randint(1, 3) for _ in range(rank)]
    strides = [d.pick(1, 2) for _ in range(rank)] if d.maybe() else None
    pads = [d.pick(0, 1) for _ in range(2 * rank)] if d.maybe() else None
    n, c = d.pick(1, 2), d.pick(1, 2)
    count = 1
    for k in range(rank):
        count *= (image[k] + (pads[k] + pads[rank + k] if pads else 0) - block[k]) // (strides[k] if strides else 1) + 1
    d.node([d.data("float", [n, c * int(np.prod(block)), count]), d.numbers(image), d.numbers(block)],
           strides=strides, pads=pads)


@recipe("LSTM", "GRU", "RNN")
def recurrent(d):
    op = d.schema.name
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    t, b, i, h = d.choose.randint(1, 5), d.choose.randint(1, 3), d.choose.randint(1, 4), d.choose.randint(1, 5)
    direction = d.odd("forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    layout = d.odd(0) if d.has("layout") else None
    dtype = d.type(among=("float", ))
    w = lambda *s: d.value(d.array(dtype, s, -1, 1), None, d.pick("init", "init", "input"))  # noqa: E731
    ins = [
        d.data(dtype, [t, b, i]), w(n, gates * h, i), w(n, gates * h, h), w(n, 2 * gates * h) if d.maybe(0.7) else "",
        d.value(d.array("int32", [b], 1, t)) if d.maybe(0.3) else "", d.data(dtype, [n, b, h]) if d.maybe() else ""
    ]
    if op == "LSTM":
        ins += [d.data(dtype, [n, b, h]) if d.maybe() else "", w(n, 3 * h) if d.maybe(0.3) else ""]
    some = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh",
            "Affine")
    per = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    acts = [d.choose.choice(some) for _ in range(per * n)] if d.maybe(0.4) else None
    alpha = beta = None
    if acts and d.maybe():
        takes = [a for a in acts if a in ("HardSigmoid", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh", "Affine")]
        alpha = [0.4] * len(takes) or None
        beta = [0.6] * len([a for a in takes if a in ("HardSigmoid", "ScaledTanh", "Affine")]) or None
    elif acts:
        acts = [a if a not in ("ScaledTanh", "Affine", "ThresholdedRelu") else "Tanh" for a in acts]
    d.node(ins, 3 if op == "LSTM" else 2, hidden_size=h, direction=direction, activations=acts,
           activation_alpha=alpha, activation_beta=beta, **d.attr(layout=layout, clip=d.pick(None, None, 0.5),
                    linear_before_reset=d.odd(0, 1), input_forget=d.odd(0, 1)))


@recipe("QuantizeLinear", "DequantizeLinear")
def quantize(d):
    to = d.pick("int8", "uint8", *(["int16", "uint16"] if d.opset >= 21 else []),
                *(["int32"] if d.schema.name[0] == "D" else []), *(["float8e4m3fn"] if d.opset >= 19 else []))
    s = d.shape(1, 4)
    rank = len(s)
    way = d.pick("tensor", "axis",
                 "block") if d.opset >= 21 else d.pick("tensor", "axis") if d.opset >= 10 else "tensor"
    if way != "tensor" and d.opset < 13:
        way = "tensor"
    axis = axis_of(d, rank)
    block = None
    t = []
    if way == "axis":
        t = [s[axis]]
    if way == "block":
        block = d.choose.randint(1, max(1, s[axis]))
        t = [-(-n // block) if k == axis % rank else n for k, n in enumerate(s)]
    floats = d.pick("float", "float", *(["float16"] if d.opset >= 19 else []))
    scale = d.value(np.exp2(d.rng.integers(-3, 2, t)).astype(NUMPY[floats]))
    zero = d.data(to, t, 0, 0 if to in (
        "int32", "float8e4m3fn") else 3) if d.maybe(0.6) or to not in ("uint8", ) and d.schema.name[0] == "Q" else ""
    x = d.data(floats, s) if d.schema.name[0] == "Q" else d.data(to, s)
    more = d.attr(axis=axis if way != "tensor" and (axis != 1 or d.maybe()) else None, block_size=block)
    d.node([x, scale, zero], **more)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(d):
    x, _, _ = d.x(0, 4, "T1", fits=lambda s: 0 not in s)
    d.node([x], 3)


@recipe("MatMulInteger", "QLinearMatMul")
def matmul_integer(d):
    a, b = (d.pick("uint8", "int8") for _ in range(2))
    s = d.shape(1, 3) + [d.size() or 1]  # sums of nothing: ONNX Runtime forgets the zero point
    t = [s[-1], d.size()]
    if d.schema.name == "MatMulInteger":
        return d.node([
            d.data(a, s), d.data(b, t), d.data(a, [], 0, 3) if d.maybe() else "",
            d.data(b, d.pick([], [t[1]]), 0, 3) if d.maybe() else ""
        ])
    n = d.pick([], [t[1]])
    d.node([
        d.data(a, s), d.data("float", [], 0.1, 1), d.data(a, [], 0, 3), d.data(b, t), d.data("float", n, 0.1, 1),
        d.data(b, n, 0, 3), d.data("float", [], 1, 4), d.data(a, [], 0, 3)
    ])


@recipe("Einsum")
def einsum(d):
    equation = d.pick("ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->ji", "i,j->ij", "...ij,...jk->...ik", "ijk->",
                      "bhqd,bhkd->bhqk", "ij,ij->", "ab,bc,cd->ad", "ii", "...i->...", "i,i")
    left = equation.split("->")[0].split(",")
    sizes, extra = {}, d.shape(0, 2)
    ins = []
    dtype = d.type()
    for term in left:
        shape = []
        for c in term.replace("...", "."):
            shape += extra if c == "." else [sizes.setdefault(c, d.size())]
        ins.append(d.data(dtype, shape))
    d.node(ins, equation=equation)


@recipe("Attention")
def attention(d):
    b, h, q, k, e, v = d.pick(1, 2), d.pick(1, 2, 4), d.choose.randint(1, 5), d.choose.randint(1, 6), d.pick(1, 4,
                                                                                                       8), d.pick(2, 4)
    hk = d.pick(h, 1) if h > 1 else h
    dtype = d.type("T1", ("float", "float16", "double"))
    flat = d.maybe()
    causal = d.odd(0, 1)
    past = d.choose.randint(0, 3) if d.maybe(0.3) and causal in (None, 0, 1) else None
    Q, K, V = ([b, q, h * e], [b, k, hk * e], [b, k, hk * v]) if flat else ([b, h, q, e], [b, hk, k, e], [b, hk, k, v])
    total = k + (past or 0)
    mask = d.pick("", "bool", "float")
    if mask:
        kind = "bool" if mask == "bool" else dtype
        shape = d.pick([q, total], [b, 1, q, total], [1, h, q, total], [b, h, q, total])
        m = d.array(kind, shape)
        if kind == "bool":
            m[..., 0] = True
        mask = d.value(m)
    ins = [d.data(dtype, Q), d.data(dtype, K), d.data(dtype, V), mask]
    outs = 1
    if past is not None:
        ins += [d.data(dtype, [b, hk, past, e]), d.data(dtype, [b, hk, past, v])]
        outs = 3
    more = {"q_num_heads": h, "kv_num_heads": hk} if flat else {}
    d.node(ins, outs, is_causal=causal, scale=d.odd(0.5), softcap=d.odd(0.0, 2.0), **more)


@recipe("RotaryEmbedding")
def rotary(d):
    b, h, t, e = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 5), d.pick(2, 4, 8)
    dtype = d.type()
    part = d.pick(None, e // 2 if e > 2 else None)
    n = (part or e) // 2
    flat = d.maybe()
    more = {"num_heads": h} if flat else {}
    x = d.data(dtype, [b, t, h * e] if flat else [b, h, t, e])
    if part and not flat:
        more["num_heads"] = h
    if d.maybe():
        ins = [x, d.data(dtype, [9, n]), d.data(dtype, [9, n]), d.value(d.array("int64", [b, t], 0, 8))]
    else:
        ins = [x, d.data(dtype, [b, t, n]), d.data(dtype, [b, t, n])]
    d.node(ins, interleaved=d.odd(0, 1), rotary_embedding_dim=part, **more)


@recipe("NonMaxSuppression")
def nms(d):
    b, c, n = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 9)
    centre = d.odd(0, 1)
    a = d.rng.uniform(0, 6, (b, n, 4)).astype("f4")
    opt = [
        d.numbers(d.choose.randint(0, 4) if d.maybe() else [d.choose.randint(1, 4)]), d.numbers([0.4], "float"),
        d.numbers([0.3], "float")
    ]
    d.node([
        d.value(a),
        d.value(d.rng.permutation(b * c * n).reshape(b, c, n).astype("f4") / (b * c * n)), *opt[:d.choose.randint(1, 3)]
    ],
           center_point_box=centre)


@recipe("DFT")
def dft(d):
    dtype = d.type("T1", FLOATS[:2])
    s = [d.pick(1, 2)] + [d.choose.randint(1, 7) for _ in range(d.choose.randint(1, 2))]
    whole = d.maybe()
    inverse = d.odd(0, 1)
    onesided = d.odd(0, 1)
    if onesided and inverse:
        inverse = None
    if onesided:
        whole = False
    x = d.data(dtype, s + [2 if whole else 1])
    length = d.numbers(d.choose.randint(1, 9)) if d.maybe() else ""
    axis = d.choose.randint(1, len(s) - 1)
    if d.has("axis"):
        return d.node([x, length], axis=axis if axis != 1 or d.maybe() else None, inverse=inverse, onesided=onesided)
    d.node([x, length, d.numbers(d.pick(axis, axis - len(s) - 1)) if d.maybe() else ""], inverse=inverse,
           onesided=onesided)


@recipe("STFT")
def stft(d):
    n, frame, step = d.choose.randint(8, 20), d.choose.randint(2, 8), d.choose.randint(1, 5)
    dtype = d.type("T1", FLOATS[:2])
    onesided = d.odd(1, 0)
    signal = d.data(dtype, [d.pick(1, 2), n, 1])
    w = d.data(dtype, [frame]) if d.maybe() else ""
    d.node([signal, d.numbers(step), w, d.numbers(frame) if not w or d.maybe() else ""], onesided=onesided)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d):
    d.node([d.numbers(d.choose.randint(2, 9), d.pick("int32", "int64"))], periodic=d.odd(1, 0),
           output_datatype=d.pick(None, 1, 11))


@recipe("MelWeightMatrix")
def mel(d):
    d.node([
        d.numbers(d.pick(3, 8)), d.numbers(d.pick(16, 32)), d.numbers(8192), d.numbers(d.pick(0.0, 100.0), "float"),
        d.numbers(4000.0, "float")
    ])


@recipe("CenterCropPad")
def center_crop_pad(d):
    x, _, s = d.x(1, 4)
    axes = d.choose.sample(range(len(s)), d.choose.randint(1, len(s))) if d.maybe() else None
    d.node([x, d.numbers([d.choose.randint(1, 8) for _ in (axes if axes is not None else s)])], axes=axes)


@recipe("DeformConv")
def deform_conv(d):
    n, g = d.pick(1, 2), d.pick(1, 2)
    c, m, h, w = g * 2, g * 2, d.choose.randint(3, 6), d.choose.randint(3, 6)
    o = d.pick(1, 2)
    kh, kw, pads = d.choose.randint(1, 3), d.choose.randint(1, 3), [d.pick(0, 1) for _ in range(4)]
    oh, ow = h + pads[0] + pads[2] - kh + 1, w + pads[1] + pads[3] - kw + 1
    ins = [
        d.data("float", [n, c, h, w]), d.data("float", [m, c // g, kh, kw]),
        d.data("float", [n, o * kh * kw * 2, oh, ow], -1, 1), d.data("float", [m]) if d.maybe() else "",
        d.data("float", [n, o * kh * kw, oh, ow], 0, 1) if d.maybe() else ""
    ]
    d.node(ins, pads=pads if any(pads) else None, group=g if g > 1 else None, offset_group=o if o > 1 else None,
           kernel_shape=d.pick(None, [kh, kw]))


@recipe("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def losses(d):
    n, c, rest = d.choose.randint(1, 4), d.choose.randint(
        1, 5), [d.choose.randint(1, 3) for _ in range(d.choose.randint(0, 2))]
    ignore = d.pick(None, 0, -1)
    t = d.array("int64", [n, *rest], 0, c - 1)
    if ignore == -1:
        t[..., :1] = -1
    ins = [d.data("float", [n, c, *rest]), d.value(t), d.data("float", [c], 0.1, 1) if d.maybe() else ""]
    outs = d.pick(1, 2) if d.schema.name[0] == "S" else 1
    d.node(ins, outs, reduction=d.odd("mean", "sum", "none"), ignore_index=ignore)


@recipe("Constant")
def constant(d):
    kind = d.pick("value", "value_float", "value_floats", "value_int", "value_ints")
    if not d.has(kind):
        kind = "value"
    v = {
        "value": numpy_helper.from_array(d.array(d.choose.choice(list(NUMPY)), d.shape(0, 3)), "c"), "value_float": 1.5,
        "value_floats": [1.0, 2.0], "value_int": 3, "value_ints": [1, 2]
    }
    d.node([], **{kind: v[kind]})


# ai.onnx.ml
@recipe("Binarizer", "Normalizer", "Scaler", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer")
def ml_small(d):
    op = d.schema.name
    s = [d.choose.randint(1, 4), d.choose.randint(1, 5)][d.pick(0, 0, 0, 1):]
    kind = d.pick("float", "float", "double", "int64", "int32")
    x = d.data(kind if op not in ("Binarizer", "Imputer") else d.pick("float", "int64") if op == "Imputer" else "float",
               s)
    if op == "Binarizer":
        return d.node([x], threshold=d.odd(0.0, 1.0))
    if op == "Normalizer":
        return d.node([x], norm=d.odd("MAX", "L1", "L2"))
    if op == "Scaler":
        n = d.pick(1, s[-1])
        return d.node([x], offset=[0.5] * n, scale=[float(k + 1) for k in range(n)])
    if op == "Imputer":
        n = d.pick(1, s[-1])
        if d.feeds.get(x) is not None and d.feeds[x].dtype.kind == "i":
            return d.node([x], imputed_value_int64s=[7] * n, replaced_value_int64=d.odd(0, 2))
        return d.node([x], imputed_value_floats=[7.5] * n, replaced_value_float=d.odd(0.0, 1.0))
    if op == "FeatureVectorizer":
        return d.node([x, d.data(kind, [s[0], 3])], inputdimensions=[s[1], 3]) if len(s) == 2 else None
    return d.node([x, d.value(d.array("int64", [d.choose.randint(1, 3)], 0, s[-1] - 1))])


@recipe("LinearRegressor", "LinearClassifier")
def ml_linear(d):
    n, f, t = d.choose.randint(1, 4), d.choose.randint(1, 5), d.choose.randint(1, 4)
    kind = d.pick("float", "float", "double", "int64", "int32") if d.schema.name == "LinearClassifier" else "float"
    post = d.pick(None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
    w = d.rng.normal(size=t * f).tolist()
    if d.schema.name == "LinearRegressor":
        if t == 1:
            post = None
        return d.node([d.data(kind, [n, f])], coefficients=w, intercepts=d.pick(None, [0.5] * t), targets=t,
                      post_transform=post)
    labels = t if t > 1 else 2
    d.node([d.data(kind, [n, f])], 2, coefficients=w, intercepts=[0.1 * k for k in range(t)],
           classlabels_ints=[5 * k + 1 for k in range(labels)], post_transform=post, multi_class=d.odd(0, 1))


@recipe("SVMRegressor", "SVMClassifier")
def ml_svm(d):
    n, f, k = d.choose.randint(1, 4), d.choose.randint(1, 4), d.choose.randint(1, 4)
    kernel = d.pick("LINEAR", "POLY", "RBF", "SIGMOID")
    params = [0.5, 0.3, 2.0]
    sv = d.rng.normal(size=k * f).tolist()
    x = d.data(
        d.pick("float", "float", "double", "int64", "int32") if d.schema.name == "SVMClassifier" else "float", [n, f])
    if d.schema.name == "SVMRegressor":
        if d.maybe(0.2):
            return d.node([x], coefficients=d.rng.normal(size=f).tolist(), n_supports=0, kernel_type="LINEAR",
                          rho=[0.2])
        return d.node([x], coefficients=d.rng.normal(size=k).tolist(), support_vectors=sv, n_supports=k,
                      kernel_type=kernel, kernel_params=params, rho=[0.2], one_class=d.odd(0, 1))
    classes = d.choose.randint(2, 4)
    per = [d.choose.randint(1, 2) for _ in range(classes)]
    k = sum(per)
    pairs = classes * (classes - 1) // 2
    prob = d.maybe(0.4)
    d.node([x], 2, coefficients=d.rng.normal(size=k * (classes - 1)).tolist(),
           support_vectors=d.rng.normal(size=k * f).tolist(), vectors_per_class=per, kernel_type=kernel,
           kernel_params=params, rho=[0.1 * j for j in range(pairs)],
           classlabels_ints=[3 * j for j in range(classes)], prob_a=[-1.0] * pairs if prob else None,
           prob_b=[0.1] * pairs if prob else None, post_transform=d.odd("NONE", "LOGISTIC", "SOFTMAX"))


@recipe("TreeEnsembleRegressor", "TreeEnsembleClassifier")
def ml_trees(d):
    """A leaf may have several weights for one target. Where it has none for a class, or there are two classes with
    weights for both, ONNX Runtime's labels are not those of the largest score."""
    kind = "target" if d.schema.name == "TreeEnsembleRegressor" else "class"
    f, t = d.choose.randint(1, 4), d.pick(1, 1, 2 if kind == "target" else 4, 3)
    dtype = d.pick("float", "float", "double")
    nodes = []  # tree, number, feature, value, mode, yes, no
    for tree in range(d.choose.randint(1, 3)):
        own = [[tree, 0, 0, 0.0, "LEAF", 0, 0]]
        for _ in range(d.choose.randint(0, 3)):
            leaf = d.choose.choice([n for n in own if n[4] == "LEAF"])
            leaf[2:] = [d.choose.randrange(f), d.choose.randint(-6, 6) / 4,
                        d.pick(*(f"BRANCH_{m}" for m in ("LEQ", "LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))), len(own), len(own) + 1]
            own += [[tree, len(own) + k, 0, 0.0, "LEAF", 0, 0] for k in (0, 1)]
        nodes += own
    columns = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    more = {f"nodes_{name}": [n[i] for n in nodes] for i, name in enumerate(columns)}
    classes = t if kind == "target" or t > 1 else 2
    leaves = [(n[0], n[1], k) for n in nodes if n[4] == "LEAF" for k in range(t) for _ in range(d.pick(1, 1, 1, 2, 3))]
    more.update({f"{kind}_treeids": [n[0] for n in leaves], f"{kind}_nodeids": [n[1] for n in leaves],
                 f"{kind}_ids": [n[2] for n in leaves],
                 f"{kind}_weights": [d.choose.randint(-8, 8) / 4 for _ in leaves]})
    if kind == "target":
        more.update(n_targets=t, aggregate_function=d.odd("SUM", "AVERAGE", "MIN", "MAX"))
    else:
        more.update(classlabels_int64s=[3 * k + 1 for k in range(classes)])
    d.node([d.data(dtype, [d.choose.randint(1, 5), f])], 1 if kind == "target" else 2, **more,
           base_values=d.pick(None, [0.5] * t) if t == classes else None,
           post_transform=d.pick(None, "NONE", "LOGISTIC") if t > 1 else None)


@recipe("LabelEncoder")
def label_encoder(d):
    if d.maybe():
        return d.node([d.data("int64", d.shape(1, 2), 0, 4)], keys_int64s=[0, 1, 2], values_floats=[1.5, 2.5, 3.5],
                      default_float=d.odd(-0.0, 9.0))
    d.node([d.data("float", d.shape(1, 2), 0, 4)], keys_floats=[0.0, 1.0, 2.0], values_int64s=[5, 6, 7],
           default_int64=d.odd(-1, 4))


@recipe("OneHotEncoder")
def one_hot_encoder(d):
    d.node([d.data(d.pick("int64", "float", "int32", "double"), d.shape(1, 3), 0, 3)], cats_int64s=[0, 1, 2], zeros=1)
