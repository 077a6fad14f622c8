#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the model and image of ./demo: draws digits, trains a small convolutional network on them, writes ONNX.

    python3 examples/digits/train.py            needs numpy; about a minute

Digits are strokes (lines and arcs) in a unit square, moved, turned, sheared, thickened and covered with noise at
random. Forward and backward passes are written out below; the network is
conv 3x3, batch norm, ReLU, max pool (twice), one fully connected layer, softmax. The seed is fixed."""
import pathlib
import struct
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SIDE = 28


# ---- drawing ---------------------------------------------------------------------------------------------------------

def line(*points):
    return np.array(points, np.float64)


def arc(cx, cy, rx, ry, start, stop, count=14):
    t = np.radians(np.linspace(start, stop, count))
    return np.stack([cx + rx * np.cos(t), cy + ry * np.sin(t)], 1)


# Each digit has one or more ways of writing it; x goes right and y down, both from 0 to 1.
GLYPHS = {
    0: [[arc(.5, .5, .27, .40, 0, 360, 24)], [arc(.5, .5, .22, .42, 0, 360, 24)]],
    1: [[line((.5, .1), (.5, .9))], [line((.35, .28), (.53, .1), (.53, .9))],
        [line((.35, .28), (.53, .1), (.53, .9)), line((.33, .9), (.72, .9))]],
    2: [[arc(.5, .33, .26, .23, 190, 390), line((.725, .445), (.24, .9), (.78, .9))],
        [arc(.5, .31, .24, .21, 180, 400), line((.68, .445), (.25, .88), (.75, .9))]],
    3: [[arc(.47, .3, .25, .2, 200, 450), arc(.47, .7, .28, .2, 270, 520)],
        [line((.27, .1), (.72, .1), (.47, .42)), arc(.47, .66, .27, .24, 270, 520)]],
    4: [[line((.62, .9), (.62, .1), (.22, .65), (.8, .65))], [line((.3, .1), (.26, .55), (.76, .55)),
                                                          line((.66, .12), (.64, .9))]],
    5: [[line((.74, .1), (.32, .1), (.29, .47)), arc(.47, .65, .27, .24, 230, 510)],
        [line((.72, .12), (.33, .12), (.31, .45)), arc(.46, .66, .27, .23, 240, 500)]],
    6: [[arc(.5, .67, .24, .22, 0, 360, 20), arc(.78, .67, .52, .57, 180, 255)],
        [line((.62, .1), (.38, .4), (.28, .64)), arc(.5, .68, .23, .21, 0, 360, 20)]],
    7: [[line((.24, .12), (.76, .12), (.44, .9))], [line((.24, .12), (.76, .12), (.44, .9)),
                                                 line((.36, .5), (.72, .5))],
        [line((.24, .22), (.24, .12), (.76, .12), (.5, .5), (.44, .9))]],
    8: [[arc(.5, .3, .2, .19, 0, 360, 20), arc(.5, .7, .25, .21, 0, 360, 20)],
        [arc(.5, .3, .22, .2, 0, 360, 20), arc(.5, .7, .22, .2, 0, 360, 20)]],
    9: [[arc(.5, .33, .24, .22, 0, 360, 20), arc(.22, .33, .52, .57, 0, 75)],
        [arc(.5, .32, .23, .21, 0, 360, 20), line((.73, .34), (.66, .9))]],
}


def draw(digit, rng, style=None, calm=False):
    """One image, float32 [SIDE, SIDE] in 0..1."""
    glyphs = GLYPHS[digit]
    strokes = glyphs[rng.integers(len(glyphs)) if style is None else style]
    spread = 0.3 if calm else 1.0
    angle, shear = rng.normal(0, .13) * spread, rng.normal(0, .15) * spread
    scale = rng.uniform(.68, 1.0, 2) if not calm else np.array([.85, .85])
    shift = rng.uniform(-.09, .09, 2) * spread
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, shear], [0, 1]]) @ np.diag(scale)
    starts, ends = [], []
    for stroke in strokes:
        wobble = rng.normal(0, .012 * spread, stroke.shape)
        points = (stroke + wobble - .5) @ matrix.T + .5 + shift
        starts.append(points[:-1])
        ends.append(points[1:])
    a, b = np.concatenate(starts), np.concatenate(ends)
    grid = (np.arange(SIDE) + .5) / SIDE
    pixels = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 1, 2)
    along = b - a
    t = ((pixels - a) * along).sum(-1) / np.maximum((along * along).sum(-1), 1e-9)
    nearest = a + np.clip(t, 0, 1)[..., None] * along
    distance = np.sqrt(((pixels - nearest) ** 2).sum(-1)).min(1)
    width = rng.uniform(.03, .065) if not calm else .05
    ink = 1 / (1 + np.exp((distance - width) * rng.uniform(70, 140)))
    ink = ink * rng.uniform(.75, 1) + rng.normal(0, .06 * spread, ink.shape)
    return np.clip(ink, 0, 1).reshape(SIDE, SIDE).astype(np.float32)


def dataset(count, rng):
    labels = rng.integers(0, 10, count)
    return np.stack([draw(d, rng) for d in labels])[:, None], labels


# ---- layers: each forward returns its result and what its backward needs -------------------------------------------------

def patches(x):
    """3x3 neighbourhoods with padding 1: [N, C, H, W] -> [N*H*W, C*9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)


def conv(x, weight, bias):
    n, _, h, w = x.shape
    columns = patches(x)
    out = columns @ weight.reshape(len(weight), -1).T + bias
    return out.reshape(n, h, w, -1).transpose(0, 3, 1, 2), (columns, x.shape, weight)


def conv_back(grad, saved):
    columns, (n, c, h, w), weight = saved
    flat = grad.transpose(0, 2, 3, 1).reshape(-1, len(weight))
    grad_weight = (flat.T @ columns).reshape(weight.shape)
    # The gradient of the input is a convolution with the kernel turned by 180 degrees, channels exchanged.
    turned = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    grad_x = (patches(grad) @ turned.reshape(c, -1).T).reshape(n, h, w, c).transpose(0, 3, 1, 2)
    return grad_x, grad_weight, flat.sum(0)


def norm(x, gamma, beta, state, training):
    if training:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        state[0][:] = .95 * state[0] + .05 * mean
        state[1][:] = .95 * state[1] + .05 * var
    else:
        mean, var = state
    scale = 1 / np.sqrt(var + 1e-5)
    unit = (x - mean[:, None, None]) * scale[:, None, None]
    return unit * gamma[:, None, None] + beta[:, None, None], (unit, scale, gamma)


def norm_back(grad, saved):
    unit, scale, gamma = saved
    axes = (0, 2, 3)
    count = grad.size / grad.shape[1]
    grad_gamma, grad_beta = (grad * unit).sum(axes), grad.sum(axes)
    centred = grad - (grad_beta[:, None, None] + unit * grad_gamma[:, None, None]) / count
    return centred * (gamma * scale)[:, None, None], grad_gamma, grad_beta


def pool(x):
    n, c, h, w = x.shape
    tiles = x.reshape(n, c, h // 2, 2, w // 2, 2)
    out = tiles.max((3, 5))
    is_max = tiles == out[:, :, :, None, :, None]
    return out, (is_max / is_max.sum((3, 5), keepdims=True), x.shape)


def pool_back(grad, saved):
    share, shape = saved
    return (share * grad[:, :, :, None, :, None]).reshape(shape)


# ---- the network -----------------------------------------------------------------------------------------------------

def make_weights(rng):
    def he(*shape):
        return (rng.normal(0, 1, shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
    ones, zeros = (lambda n: np.ones(n, np.float32)), (lambda n: np.zeros(n, np.float32))
    p = {"conv1.weight": he(8, 1, 3, 3), "conv1.bias": zeros(8), "norm1.gamma": ones(8), "norm1.beta": zeros(8),
         "conv2.weight": he(16, 8, 3, 3), "conv2.bias": zeros(16), "norm2.gamma": ones(16), "norm2.beta": zeros(16),
         "fc.weight": he(10, 16 * 7 * 7), "fc.bias": zeros(10)}
    state = {"norm1.mean": zeros(8), "norm1.var": ones(8), "norm2.mean": zeros(16), "norm2.var": ones(16)}
    return p, state


def forward(p, state, x, training=False):
    saved = []
    for i in ("1", "2"):
        x, s_conv = conv(x, p[f"conv{i}.weight"], p[f"conv{i}.bias"])
        x, s_norm = norm(x, p[f"norm{i}.gamma"], p[f"norm{i}.beta"],
                         (state[f"norm{i}.mean"], state[f"norm{i}.var"]), training)
        x, is_on = np.maximum(x, 0), x > 0
        x, s_pool = pool(x)
        saved.append((s_conv, s_norm, is_on, s_pool))
    flat = x.reshape(len(x), -1)
    scores = flat @ p["fc.weight"].T + p["fc.bias"]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return scores / scores.sum(1, keepdims=True), (saved, flat, x.shape)


def backward(p, scores, labels, kept):
    saved, flat, shape = kept
    grads = {}
    grad = scores.copy()
    grad[np.arange(len(labels)), labels] -= 1
    grad /= len(labels)
    grads["fc.weight"], grads["fc.bias"] = grad.T @ flat, grad.sum(0)
    grad = (grad @ p["fc.weight"]).reshape(shape)
    for i, (s_conv, s_norm, is_on, s_pool) in (("2", saved[1]), ("1", saved[0])):
        grad = pool_back(grad, s_pool) * is_on
        grad, grads[f"norm{i}.gamma"], grads[f"norm{i}.beta"] = norm_back(grad, s_norm)
        grad, grads[f"conv{i}.weight"], grads[f"conv{i}.bias"] = conv_back(grad, s_conv)
    return grads


def train(p, state, images, labels, rng, epochs=5, batch=64):
    first, second = ({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2))
    step, steps = 0, epochs * (len(images) // batch)
    for epoch in range(epochs):
        order, hits = rng.permutation(len(images)), 0
        for at in range(0, len(images) - batch + 1, batch):
            pick = order[at:at + batch]
            scores, kept = forward(p, state, images[pick], True)
            hits += (scores.argmax(1) == labels[pick]).sum()
            step += 1
            rate = 3e-3 * .5 * (1 + np.cos(np.pi * step / steps))
            for name, grad in backward(p, scores, labels[pick], kept).items():
                first[name] += .1 * (grad - first[name])
                second[name] += .001 * (grad * grad - second[name])
                m, v = first[name] / (1 - .9 ** step), second[name] / (1 - .999 ** step)
                p[name] -= (rate * m / (np.sqrt(v) + 1e-8)).astype(np.float32)
        print(f"epoch {epoch + 1}: {hits / len(images):.4f} right while training", flush=True)


# ---- ONNX: protobuf written by hand, fields by number as in onnx.proto ----------------------------------------------------

def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, float):
        return chunk(5, chunk(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1))
    if isinstance(value, int):
        return chunk(5, chunk(1, name) + number(3, value & (1 << 64) - 1) + number(20, 2))
    return chunk(5, chunk(1, name) + b"".join(number(8, v) for v in value) + number(20, 7))


def node(op, inputs, output, **attributes):
    body = b"".join(chunk(1, i) for i in inputs) + chunk(2, output) + chunk(3, output + "_" + op.lower()) + chunk(4, op)
    return chunk(1, body + b"".join(attribute(k, v) for k, v in attributes.items()))


def initializer(name, array):
    dims = b"".join(number(1, d) for d in array.shape)
    return chunk(5, dims + number(2, 1) + chunk(8, name) + chunk(9, array.astype("<f4").tobytes()))


def value(field, name, dims):
    shape = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return chunk(field, chunk(1, name) + chunk(2, chunk(1, number(1, 1) + chunk(2, shape))))


def write_onnx(path, p, state):
    nodes, x = b"", "image"
    for i in ("1", "2"):
        nodes += node("Conv", [x, f"conv{i}.weight", f"conv{i}.bias"], f"conv{i}", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        nodes += node("BatchNormalization", [f"conv{i}", f"norm{i}.gamma", f"norm{i}.beta", f"norm{i}.mean",
                                             f"norm{i}.var"], f"norm{i}", epsilon=1e-5)
        nodes += node("Relu", [f"norm{i}"], f"relu{i}")
        nodes += node("MaxPool", [f"relu{i}"], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
        x = f"pool{i}"
    nodes += node("Flatten", [x], "flat", axis=1)
    nodes += node("Gemm", ["flat", "fc.weight", "fc.bias"], "logits", transB=1)
    nodes += node("Softmax", ["logits"], "scores", axis=-1)
    graph = nodes + chunk(2, "digits") + b"".join(initializer(k, v) for k, v in {**p, **state}.items())
    graph += value(11, "image", ["N", 1, SIDE, SIDE]) + value(12, "scores", ["N", 10])
    model = number(1, 8) + chunk(2, "sinter examples/digits/train.py") + chunk(7, graph) + chunk(8, chunk(1, "") + number(2, 17))
    path.write_bytes(model)


def write_npy(path, array):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {array.shape}, }}"
    header = header.ljust(128 - 10 - 1) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes())


def write_png(path, image, zoom=8):
    big = np.kron((image * 255).astype(np.uint8), np.ones((zoom, zoom), np.uint8))
    rows = b"".join(b"\0" + row.tobytes() for row in big)

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", big.shape[1], big.shape[0], 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows, 9))
                     + part(b"IEND", b""))


def main():
    rng = np.random.default_rng(2024)
    images, labels = dataset(12000, rng)
    p, state = make_weights(rng)
    train(p, state, images, labels, rng)
    fresh, truth = dataset(3000, np.random.default_rng(7))
    scores = np.concatenate([forward(p, state, fresh[i:i + 500])[0] for i in range(0, 3000, 500)])
    right = (scores.argmax(1) == truth).mean()
    print(f"fresh drawings: {right:.4f} right")
    if right < .97:
        raise SystemExit("too few: nothing was written")
    write_onnx(HERE / "digits.onnx", p, state)
    seven = draw(7, np.random.default_rng(3), style=1, calm=True)
    write_npy(HERE / "seven.npy", seven[None, None])
    write_png(HERE / "seven.png", seven)
    print(f"seven.png is taken for a {forward(p, state, seven[None, None])[0].argmax()}")


if __name__ == "__main__":
    main()
