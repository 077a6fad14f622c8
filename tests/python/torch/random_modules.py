# SPDX-License-Identifier: Apache-2.0
"""Random, seeded torch modules: operators of all kinds on tensors of random ranks, sizes and element types, views, broadcasting,
several outputs (tensors, numbers, None, the same tensor twice), inputs written in place. Every seed is a program that eager
PyTorch runs; what engines make of it is compared with that."""
import random

import torch

DTYPES = [torch.float32, torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32,
          torch.uint8, torch.bool]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def is_float(x):
    return x.dtype.is_floating_point


def numbers(x):
    """The tensor as numbers that every operator takes: bool as uint8."""
    return x.to(torch.int32) if x.dtype == torch.bool else x


class Step:
    """One operator with fixed choices, so that each run does the same."""

    def __init__(self, rng):
        self.rng, self.choice, self.a, self.b, self.n = rng, rng.choice(STEPS), rng.random(), rng.random(), rng.randrange(8)

    def __call__(self, pool):
        x, y = pool[int(self.a * len(pool))], pool[int(self.b * len(pool))]
        return self.choice(self, x, y)


def unary(s, x, y):
    f = [torch.relu, torch.neg, torch.abs, lambda t: t * 2 - 1, torch.square, lambda t: t.clamp(-1, 2), torch.sign,
         lambda t: 3 - t][s.n]
    return f(numbers(x).to(torch.int32) if x.dtype == torch.uint8 else numbers(x))


def smooth(s, x, y):
    f = [torch.sigmoid, torch.tanh, lambda t: torch.exp(-t.abs()), torch.nn.functional.gelu, torch.nn.functional.silu,
         lambda t: torch.sqrt(t.abs() + 1), lambda t: torch.log(t.abs() + 1), torch.nn.functional.softplus][s.n]
    return f(x if is_float(x) else x.float())


def binary(s, x, y):
    f = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda a, b: torch.where(a > b, a, b),
         lambda a, b: a / (b.abs() + 1), lambda a, b: torch.remainder(a, b.abs() + 3)][s.n]
    x, y = numbers(x), numbers(y)
    if s.n in (3, 4):
        y = y.to(x.dtype)
    return f(x, fitting(x, y))


def fitting(x, y):
    """y with a shape that broadcasts with x's."""
    while y.dim() > x.dim():
        y = y.select(0, 0)
    for axis in range(1, y.dim() + 1):
        if y.shape[-axis] != x.shape[-axis]:
            y = y.narrow(-axis, 0, 1)
    return y


def compare(s, x, y):
    f = [torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne][s.n % 6]
    return f(numbers(x), fitting(x, numbers(y)))


def logical(s, x, y):
    f = [torch.logical_and, torch.logical_or, torch.logical_xor, lambda a, b: torch.logical_not(a)][s.n % 4]
    return f(x, fitting(x, y))


def reduce(s, x, y):
    if not x.dim():
        return x + 1
    dim, keep = s.n % x.dim(), s.n > 3
    f = [lambda t: t.sum(dim, keepdim=keep), lambda t: t.float().mean(dim, keepdim=keep), lambda t: t.amax(dim, keepdim=keep),
         lambda t: t.amin(dim, keepdim=keep), lambda t: t.any(dim, keepdim=keep), lambda t: t.float().var(dim, correction=0),
         lambda t: t.max(dim)[0], lambda t: t.float().cumsum(dim)][s.n]
    return f(numbers(x))


def move(s, x, y):
    if not x.dim():
        return x.unsqueeze(0)
    d = s.n % x.dim()
    f = [lambda t: t.transpose(0, -1), lambda t: t.reshape(-1), lambda t: t.flip(d), lambda t: t.unsqueeze(d),
         lambda t: t.narrow(d, t.shape[d] // 2, t.shape[d] - t.shape[d] // 2), lambda t: t[..., :1].expand_as(t),
         lambda t: torch.cat([t, t.roll(1, d)], d), lambda t: torch.nn.functional.pad(t, (1, 2))][s.n]
    return f(x)


def index(s, x, y):
    if not x.dim():
        return x.expand(3)
    d = s.n % x.dim()
    last = x.shape[d] - 1
    rows = torch.tensor([0, last, -1])
    f = [lambda t: t.index_select(d, rows.remainder(t.shape[d])), lambda t: t.select(d, -1), lambda t: t[rows] if d == 0 else t[:, 0],
         lambda t: t.gather(d, torch.zeros_like(t, dtype=torch.int64)), lambda t: torch.tril(t) if t.dim() > 1 else t,
         lambda t: t.to(torch.float32).argmax(d), lambda t: t.float().sort(d)[0], lambda t: torch.stack([t, t], d)][s.n]
    return f(x)


def convert(s, x, y):
    dtype = [torch.float32, torch.float16, torch.int32, torch.int64, torch.float64, torch.bool, torch.bfloat16, torch.float32][s.n]
    if is_float(x) and not dtype.is_floating_point and dtype != torch.bool:
        x = x.clamp(-100, 100).nan_to_num()
    return x.to(dtype)


def matrix(s, x, y):
    x = x.float().clamp(-50, 50)
    if not x.dim():
        return x
    w = torch.linspace(-1, 1, x.shape[-1] * 3).reshape(x.shape[-1], 3)
    if s.n < 4 or x.dim() < 2:
        return x @ w
    if s.n < 6:
        return torch.softmax(x, -1)
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def write(s, x, y):
    """Views that are written: torch makes them functional."""
    x = x.clone()
    if x.dim() and x.shape[0] > 1:
        x[0] = x[-1]
        x.select(-1, 0).zero_()
    return x


STEPS = [unary, smooth, binary, binary, compare, logical, reduce, move, move, index, convert, matrix, write]


class RandomModule(torch.nn.Module):
    """`inputs(scale)`: fresh inputs; of a dynamic module, the first axis of all of them is 2*scale+1."""

    def __init__(self, seed, is_dynamic=False):
        super().__init__()
        rng = self.rng = random.Random(seed)
        torch.manual_seed(seed)
        self.seed, self.is_dynamic = seed, is_dynamic
        self.weight = torch.nn.Parameter(torch.randn(rng.choice([1, 3]), 4), requires_grad=False)
        self.register_buffer("count", torch.tensor([1, 2, 3, 4]))
        self.described = [(rng.choice(DTYPES), [rng.randrange(1, 5) for _ in range(rng.randrange(0, 4))] + [4], rng.randrange(3))
                          for _ in range(rng.randrange(1, 4))]
        self.steps = [Step(rng) for _ in range(rng.randrange(2, 10))]
        self.kept = [rng.random() for _ in range(rng.randrange(1, 4))]
        self.extra, self.writes_input = rng.randrange(4), rng.random() < 0.15

    def inputs(self, scale=1):
        made = []
        for dtype, shape, layout in self.described:
            shape = [2 * scale + 1] + list(shape[1:]) if self.is_dynamic and len(shape) > 1 else list(shape)
            x = torch.randn(shape[:-1] + [2 * shape[-1]]) * 3
            # Row-major, strided, or permuted memory.
            x = x[..., ::2] if layout else x[..., :shape[-1]].contiguous()
            if layout == 2 and x.dim() > 1:
                x = x.transpose(0, 1).contiguous().transpose(0, 1)
            x = x > 0 if dtype == torch.bool else x.abs() if dtype == torch.uint8 else x
            made.append(x.to(dtype))
        return made

    def forward(self, *inputs):
        pool = list(inputs) + [self.weight, self.count]
        if self.writes_input and is_float(inputs[0]):
            inputs[0].mul_(0.5)
        for step in self.steps:
            made = step(pool)
            if made.numel() <= 4096:
                pool.append(made)
        made = [pool[-1 - int(k * min(len(pool), 5))] for k in self.kept]
        extra = [None, inputs[0].shape[0], made[0], 7][self.extra]
        return made + [extra]
