# SPDX-License-Identifier: Apache-2.0
"""Problems of single operators whose kinds, shapes, axes and types are drawn at random, for `bench/ops --random`.

Sizes are drawn so that small ones are as likely as large ones, and seven of ten as they come, so that few are multiples
of a vector. What a seed gives does not depend on what is measured of it."""
import math
import random

from op_models import (B, F, H, I, I32, U8, arg_max, binary, concat, conv, cumulative_sum, expand, gather, gather_elements,
                       layer_norm, matmul, pool, reduce, resize, slice_of, softmax, split, top_k, transpose, unary, where)

LARGEST = 500_000                      # elements of an operand, unless the caller says otherwise


class Draw:
    """Each method named after a group draws a problem of it, (name, make), or None where it came out too large."""

    def __init__(self, seed, largest):
        self.random, self.largest, self.scale = random.Random(seed), largest, largest / LARGEST
        self.one_in, self.pick = (lambda n: self.random.random() * n < 1), self.random.choice

    def size(self, low, high):
        value = int(math.exp(self.random.uniform(math.log(low), math.log(high + 1))))
        return min(high, max(low, value if self.random.random() < 0.7 else value // 8 * 8))

    def dims(self, low, high):
        """Dims of a rank from low to high, of 1/20 to all of the largest operand."""
        rank = self.random.randint(low, high)
        while True:
            dims = [self.size(1, 1000 if rank > 1 else self.largest) for _ in range(rank)]
            if self.largest // 20 <= math.prod(dims) <= self.largest:
                return dims, self.random.randrange(rank)

    def type_of(self, *types):
        """f32 three times of four, else another type, and how it is named."""
        kind = self.pick(types) if self.one_in(4) else F
        return kind, {F: "", I: "i64 ", I32: "i32 ", H: "f16 ", U8: "u8 "}[kind]

    def matmul(self):
        m, k, n = self.pick([1, 1, 2, 3, 7, 17, 33, 64, 100, 197, 384, 1000, 4096]), self.size(8, 2048), self.size(8, 2048)
        is_weight = not self.one_in(3)
        return m * k * n < 3e8 * self.scale and (f"{m}x{k}x{n}{'' if is_weight else ', two inputs'}", lambda: matmul(m, k, n, is_weight))

    def batched(self):
        count, m, k, n = self.size(2, 32), self.size(1, 200), self.size(8, 128), self.size(8, 200)
        return f"{count} of {m}x{k}x{n}, two inputs", lambda: matmul(m, k, n, False, (count,))

    def conv(self):
        channels, size, out, kernel = self.size(3, 256), self.size(7, 112), self.size(3, 256), self.pick([1, 1, 3, 3, 3, 5, 7])
        stride, dilation = self.pick([1, 1, 2]), self.pick([1, 1, 1, 2]) if kernel > 1 else 1
        return channels * size * size * out * kernel * kernel < 4e8 * self.scale and size > dilation * (kernel - 1) and (
            f"{kernel}x{kernel} stride {stride} dilation {dilation} {channels} to {out} {size}x{size}",
            lambda: conv(channels, size, out, kernel, stride, dilation=dilation))

    def depthwise(self):
        channels, size, kernel, stride = self.size(8, 512), self.size(7, 112), self.pick([3, 3, 5, 7]), self.pick([1, 2])
        return channels * size * size < 2e6 * self.scale and (
            f"{kernel}x{kernel} stride {stride} {channels} {size}x{size}",
            lambda: conv(channels, size, channels, kernel, stride, groups=channels))

    def pool(self):
        kind, channels, size, kernel = self.pick(["MaxPool", "AveragePool"]), self.size(3, 256), self.size(7, 112), self.pick([2, 3, 3, 5, 7])
        stride = self.pick([1, 2, 2, kernel])
        return channels * size * size < 1e6 * self.scale and (
            f"{kind} {kernel}x{kernel} stride {stride} {channels} {size}x{size}", lambda: pool(kind, channels, size, kernel, stride))

    def resize(self):
        channels, size, scale = self.size(1, 256), self.size(7, 100), self.pick([2, 2, 3, 1.5, 0.5])
        mode = self.pick(["nearest", "linear", "cubic"])
        return channels * (size * scale) ** 2 < 2e6 * self.scale and (
            f"{mode} by {scale} {channels} {size}x{size}", lambda: resize(channels, size, scale, mode))

    def reduce(self):
        dims, _ = self.dims(1, 4)
        axes = sorted(self.random.sample(range(len(dims)), self.random.randint(1, len(dims))))
        of, name = self.type_of(I, I32)
        kind = self.pick(["Sum", "Mean", "Max", "Min", *(["L2", "SumSquare", "Prod", "LogSumExp"] if of == F else [])])
        return f"{name}{kind} of {dims} over {axes}", lambda: reduce("Reduce" + kind, dims, axes, of)

    def transpose(self):
        dims, _ = self.dims(2, 5)
        order = self.random.sample(range(len(dims)), len(dims))
        of, name = self.type_of(I, U8, H)
        return order != sorted(order) and (f"{name}{dims} by {order}", lambda: transpose(dims, order, of))

    def softmax(self):
        dims, axis = self.dims(1, 4)
        kind = self.pick(["Softmax", "Softmax", "LogSoftmax"])
        of, name = self.type_of(H)
        return f"{name}{kind} {dims} over {axis}", lambda: softmax(dims, axis, kind, of)

    def norm(self):
        dims, _ = self.dims(2, 4)
        return f"layer norm {dims}", lambda: layer_norm(dims)

    def gather(self):
        dims, axis = self.dims(1, 3)
        count = self.size(1, 2000)
        return math.prod(dims) // dims[axis] * count < 1e6 * self.scale and (f"{count} of {dims} over {axis}", lambda: gather(dims, axis, count))

    def elements(self):
        dims, axis = self.dims(1, 3)
        count = self.size(1, 500)
        return math.prod(dims) // dims[axis] * count < 1e6 * self.scale and (f"{count} of {dims} over {axis}", lambda: gather_elements(dims, axis, count))

    def binary(self):
        dims, start = self.dims(2, 4)
        other = [size if not self.one_in(3) else 1 for size in dims][start if self.one_in(3) else 0:]
        of, name = self.type_of(I, I32, H)
        kind = self.pick(["Add", "Mul", "Sub", "Max", "Min", "Less", "Equal", *(["Div", "Pow"] if of == F else [])])
        return f"{name}{kind} {dims} {other}", lambda: binary(kind, dims, other, B if kind in ("Less", "Equal") else of, of)

    def unary(self):
        kind = self.pick("Relu Sigmoid Tanh Exp Log Sqrt Erf Gelu HardSwish Softplus Elu Abs Floor Reciprocal Sin Selu Mish".split())
        size = self.size(10, 2 * self.largest)
        return f"{kind} {size}", lambda: unary(kind, [size], 20)

    def where(self):
        dims, _ = self.dims(1, 4)
        mask = [1 if self.one_in(3) else size for size in dims]
        return f"mask {mask} of {dims}", lambda: where(mask, dims)

    def expand(self):
        dims, _ = self.dims(1, 4)
        given = [1 if self.one_in(2) else size for size in dims]
        return f"{given} to {dims}", lambda: expand(given, dims)

    def concat(self):
        dims, axis = self.dims(1, 4)
        parts = [[*dims[:axis], self.size(1, dims[axis]), *dims[axis + 1:]] for _ in range(self.random.randint(2, 5))]
        return f"{parts} over {axis}", lambda: concat(parts, axis)

    def split(self):
        dims, axis = self.dims(1, 4)
        count = self.random.randint(2, 4)
        dims[axis] = max(1, dims[axis] // count) * count
        return f"{dims} over {axis} in {count}", lambda: split(dims, axis, count)

    def slice(self):
        dims, _ = self.dims(1, 4)
        begin = [self.random.randrange(size) for size in dims]
        end = [self.random.randint(first + 1, size) for first, size in zip(begin, dims)]
        step = [self.pick([1, 1, 2, 3]) for _ in dims]
        return f"{begin} to {end} by {step} of {dims}", lambda: slice_of(dims, begin, end, step)

    def top(self):
        dims, axis = self.dims(1, 3)
        count = self.size(1, dims[axis])
        of, name = self.type_of(I32, I)
        return f"{name}{count} of {dims} over {axis}", lambda: top_k(dims, count, axis, of)

    def argmax(self):
        dims, axis = self.dims(1, 3)
        of, name = self.type_of(I32, I)
        return f"{name}{dims} over {axis}", lambda: arg_max(dims, axis, of)

    def running(self):
        dims, axis = self.dims(1, 3)
        of, name = self.type_of(I32, I)
        return f"{name}sum of {dims} over {axis}", lambda: cumulative_sum(dims, axis, of)


GROUPS = [name for name in vars(Draw) if not name.startswith("_") and name not in ("size", "dims", "type_of")]


def problems(count, seed, largest=LARGEST):
    """As op_models.PROBLEMS: (group, name, make), the groups in turn."""
    draw, found = Draw(seed, largest), []
    while len(found) < count:
        group = GROUPS[len(found) % len(GROUPS)]
        problem = getattr(draw, group)()
        if problem:
            found.append((group, *problem))
    return found
