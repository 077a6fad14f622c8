# SPDX-License-Identifier: Apache-2.0
"""Converters of operators that move data: shapes, joining, cutting, indexing."""
import torch
from torch import fx

from ._lowering import Unsupported, as_int, converts, expr_of, is_static

LAST = 2**63 - 1


@converts("aten.view", "aten._unsafe_view", "aten.reshape", "aten._reshape_alias", "aten.view_copy", view=True)
def view(c, n, x, *rest):
    if rest and isinstance(rest[0], torch.dtype):
        raise Unsupported("reads elements as another type")
    return reshaped(c, c.x(x), c.shape(n))


def reshaped(c, x, shape):
    unknown = [i for i, s in enumerate(shape) if as_int(s) is None]
    if unknown and 0 not in [as_int(s) for s in shape]:
        # The size with the longest expression is left to the other sizes.
        free = max(unknown, key=lambda i: expr_of(shape[i]).count_ops())
        shape = [-1 if i == free else s for i, s in enumerate(shape)]
    return c.op("Reshape", x, c.ints(shape), allowzero=1 if 0 in [as_int(s) for s in shape] else None)


@converts("aten.squeeze", "aten.unsqueeze", view=True)
def view_axes(c, n, x, *_):
    return reshaped(c, c.x(x), c.shape(n))


@converts("aten.expand", "aten.expand_copy", view=True)
def expand(c, n, x, *_):
    return c.op("Expand", c.x(x), c.ints(c.shape(n)))


@converts("aten.permute", "aten.permute_copy", view=True)
def permute(c, n, x, dims):
    return c.op("Transpose", c.x(x), perm=[c.dim(x, d) for d in dims])


@converts("aten.transpose.int", view=True)
def transpose(c, n, x, a, b):
    perm = list(range(c.rank(x)))
    if perm:
        a, b = c.dim(x, a), c.dim(x, b)
        perm[a], perm[b] = perm[b], perm[a]
    return c.op("Transpose", c.x(x), perm=perm)


@converts("aten.t", view=True)
def t(c, n, x):
    return c.op("Transpose", c.x(x), perm=list(reversed(range(c.rank(x)))))


@converts("aten.as_strided", view=True)
def as_strided(c, n, x, size, stride, offset=None):
    """Only where it says what the tensor's strides are already; torch's decompositions end with such."""
    have = c.meta(x)
    if not is_static(size) or not is_static(have.shape) or offset not in (None, 0) or have.storage_offset() != 0:
        raise Unsupported("reads memory by strides")
    if list(size) != list(have.shape) or any(a != b and d != 1 for a, b, d in zip(stride, have.stride(), size)):
        raise Unsupported("reads memory by strides")
    return c.op("Identity", c.x(x))


@converts("aten.slice.Tensor", "aten.slice_copy", view=True)
def slice_(c, n, x, dim=0, start=None, end=None, step=1):
    start, end = (0 if start is None else start), (LAST if end is None else end)
    return c.op("Slice", c.x(x), c.ints([start]), c.ints([end]), c.ints([c.dim(x, dim)]), c.ints([step]))


@converts("aten.select.int", "aten.select_copy", view=True)
def select(c, n, x, dim, index):
    return c.op("Gather", c.x(x), c.x(index, torch.int64), axis=c.dim(x, dim))


@converts("aten.slice_scatter")
def slice_scatter(c, n, x, source, dim=0, start=None, end=None, step=1):
    dim = c.dim(x, dim)
    size = c.need_ints("the slice", [c.shape(x)[dim]])[0]
    start, end, step = c.need_ints("the slice", [0 if start is None else start, size if end is None else end, step])
    rows = torch.arange(size)[start:end:step].reshape([-1] + [1] * (c.rank(x) - dim - 1))
    return c.op("ScatterElements", c.x(x), c.op("Expand", c.tensor(rows), c.ints(c.shape(source))),
                c.x(source, c.dtype(n)), axis=dim)


@converts("aten.flip")
def flip(c, n, x, dims):
    if not dims or not c.rank(x):
        return c.op("Identity", c.x(x))
    axes = [c.dim(x, d) for d in dims]
    return c.op("Slice", c.x(x), c.ints([-1] * len(axes)), c.ints([-LAST] * len(axes)), c.ints(axes), c.ints([-1] * len(axes)))


@converts("aten.cat")
def cat(c, n, tensors, dim=0):
    dtype = c.dtype(n)
    kept = [t for t in tensors if c.rank(t) == c.rank(n)]           # torch ignores empty tensors of rank 1
    return c.op("Concat", *[c.x(t, dtype) for t in kept], axis=c.dim(n, dim))


def split(c, x, sizes, dim):
    sizes = c.need_ints("a part's size", sizes)
    if len(sizes) == 1:
        return [c.op("Identity", c.x(x))]
    return c.op("Split", c.x(x), c.ints(sizes), axis=c.dim(x, dim), results=len(sizes))


@converts("aten.split_with_sizes", view=True)
def split_with_sizes(c, n, x, sizes, dim=0):
    return split(c, x, sizes, dim)


@converts("aten.split.Tensor", view=True)
def split_tensor(c, n, x, size, dim=0):
    return split(c, x, [v.shape[c.dim(x, dim)] for v in n.meta["val"]], dim)


@converts("aten.unbind.int", view=True)
def unbind(c, n, x, dim=0):
    return [c.op("Gather", c.x(x), c.scalar(i, torch.int64), axis=c.dim(x, dim)) for i in range(len(n.meta["val"]))]


@converts("aten.repeat")
def repeat(c, n, x, repeats):
    shape = [1] * (len(repeats) - c.rank(x)) + c.shape(x)
    return c.op("Tile", reshaped(c, c.x(x), shape), c.ints(repeats)) if repeats else c.op("Identity", c.x(x))


@converts("aten.tril", "aten.triu")
def triangle(c, n, x, diagonal=0):
    return c.op("Trilu", c.x(x), c.x(diagonal, torch.int64), upper=int(n.target.overloadpacket.__name__ == "triu"))


@converts("aten.diagonal", "aten.diagonal_copy")
def diagonal(c, n, x, offset=0, dim1=0, dim2=1):
    a, b = c.dim(x, dim1), c.dim(x, dim2)
    sizes = c.need_ints("a diagonal", [c.shape(x)[a], c.shape(x)[b]])
    others = [i for i in range(c.rank(x)) if i not in (a, b)]
    found = c.op("Transpose", c.x(x), perm=[a, b] + others)
    rows = torch.arange(max(min(sizes[0] + min(offset, 0), sizes[1] - max(offset, 0)), 0))
    index = torch.stack([rows - min(offset, 0), rows + max(offset, 0)], 1)
    found = c.op("GatherND", found, c.tensor(index))
    return c.op("Transpose", found, perm=list(range(1, c.rank(n))) + [0])


# ---- padding ----

def pads_of(c, x, pad):
    """ONNX's pads, begins then ends, of torch's, which begin with the last axis."""
    rank = c.rank(x)
    if 0 in c.shape(x):
        raise Unsupported("an axis is empty")
    begin, end = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        begin[rank - 1 - i], end[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return c.ints(begin + end)


@converts("aten.constant_pad_nd")
def constant_pad(c, n, x, pad, value=0):
    return c.op("Pad", c.x(x), pads_of(c, x, pad), c.x(value, c.dtype(n)))


@converts("aten.reflection_pad1d", "aten.reflection_pad2d", "aten.reflection_pad3d")
def reflection_pad(c, n, x, pad):
    if min(c.need_ints("the padding", pad)) < 0:
        raise Unsupported("negative padding")
    return c.op("Pad", c.x(x), pads_of(c, x, pad), mode="reflect")


@converts("aten.replication_pad1d", "aten.replication_pad2d", "aten.replication_pad3d")
def replication_pad(c, n, x, pad):
    if min(c.need_ints("the padding", pad)) < 0:
        raise Unsupported("negative padding")
    return c.op("Pad", c.x(x), pads_of(c, x, pad), mode="edge")


# ---- indexing ----

@converts("aten.embedding")
def embedding(c, n, weight, index, *_):
    return c.op("Gather", c.x(weight), c.x(index, torch.int64), axis=0)


@converts("aten.index_select")
def index_select(c, n, x, dim, index):
    if not c.rank(x):
        return c.op("Identity", c.x(x))
    index = c.x(index, torch.int64) if c.rank(index) else c.op("Unsqueeze", c.x(index, torch.int64), c.ints([0]))
    return c.op("Gather", c.x(x), index, axis=c.dim(x, dim))


def is_one_index(indices):
    return sum(i is not None for i in indices) == 1


class Indexing:
    """x[indices]: the indexed axes first, and the indices as one tensor [broadcast..., count]."""

    def __init__(self, c, x, indices):
        if any(i is not None and c.dtype(i) in (torch.bool, torch.uint8) for i in indices):
            raise Unsupported("a mask as index: data decide the size")
        axes = [i for i, index in enumerate(indices) if index is not None]
        if not axes:
            raise Unsupported("nothing is indexed")
        self.perm = axes + [i for i in range(c.rank(x)) if i not in axes]
        tensors = [indices[i] for i in axes]
        self.shape = list(torch.broadcast_shapes(*[c.meta(t).shape for t in tensors]))
        # The broadcast axes stand where the indexed ones stood, or first if those are not neighbours.
        self.place = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
        self.rest = [c.shape(x)[i] for i in self.perm[len(axes):]]
        parts = []
        for tensor in tensors:
            found = c.x(tensor, torch.int64)
            if c.shape(tensor) != self.shape:
                found = c.op("Expand", found, c.ints(self.shape))
            parts.append(c.op("Unsqueeze", found, c.ints([len(self.shape)])))
        self.index = c.op("Concat", *parts, axis=len(self.shape)) if len(parts) > 1 else parts[0]

    def order(self):
        """The permutation from [broadcast..., rest...] to the result's order."""
        first, rank = len(self.shape), len(self.shape) + len(self.rest)
        rest = list(range(first, rank))
        return rest[:self.place] + list(range(first)) + rest[self.place:]


@converts("aten.index.Tensor", "aten._unsafe_index")
def index(c, n, x, indices):
    if is_one_index(indices):
        axis = [i for i, index in enumerate(indices) if index is not None][0]
        if c.dtype(indices[axis]) not in (torch.bool, torch.uint8):
            return c.op("Gather", c.x(x), c.x(indices[axis], torch.int64), axis=axis)
    found = Indexing(c, x, indices)
    data = c.op("Transpose", c.x(x), perm=found.perm)
    return c.op("Transpose", c.op("GatherND", data, found.index), perm=found.order())


@converts("aten.index_put", "aten._unsafe_index_put")
def index_put(c, n, x, indices, values, accumulate=False):
    if accumulate and c.dtype(n) == torch.bool:
        raise Unsupported("sums of bool")
    found = Indexing(c, x, indices)
    order = found.order()
    sizes = found.shape + found.rest
    values = c.op("Expand", c.x(values, c.dtype(n)), c.ints([sizes[i] for i in order]))
    values = c.op("Transpose", values, perm=inverse(order))
    made = c.op("ScatterND", c.op("Transpose", c.x(x), perm=found.perm), found.index, values,
                reduction="add" if accumulate else None)
    return c.op("Transpose", made, perm=inverse(found.perm))


def inverse(perm):
    return [perm.index(i) for i in range(len(perm))]


def cut(c, x, name, shape, except_dim=None):
    """The first elements of each axis, as many as `shape` says."""
    axes = [i for i, (have, want) in enumerate(zip(c.shape(x), shape)) if i != except_dim and have != want]
    if not axes:
        return name
    return c.op("Slice", name, c.ints([0] * len(axes)), c.ints([shape[i] for i in axes]), c.ints(axes))


def not_scalars(c, *nodes):
    if any(isinstance(n, fx.Node) and not c.rank(n) for n in nodes):
        raise Unsupported("tensors without axes")


@converts("aten.gather")
def gather(c, n, x, dim, index, sparse_grad=False):
    not_scalars(c, x, index)
    dim = c.dim(x, dim)
    data = cut(c, x, c.x(x), c.shape(index), dim)
    return c.op("GatherElements", data, c.x(index, torch.int64), axis=dim)


REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def scattered(c, n, x, dim, index, source, reduction=None):
    not_scalars(c, x, index, source)
    if reduction is not None and (reduction not in REDUCTIONS or c.dtype(n) == torch.bool):
        raise Unsupported(f"reduction {reduction} of {c.dtype(n)}")
    if isinstance(source, fx.Node):
        updates = cut(c, source, c.x(source, c.dtype(n)), c.shape(index))
    else:
        updates = c.op("Expand", c.x(source, c.dtype(n)), c.ints(c.shape(index)))
    return c.op("ScatterElements", c.x(x), c.x(index, torch.int64), updates, axis=c.dim(x, dim),
                reduction=REDUCTIONS.get(reduction))


@converts("aten.scatter.src", "aten.scatter.value")
def scatter(c, n, x, dim, index, source):
    return scattered(c, n, x, dim, index, source)


@converts("aten.scatter_add")
def scatter_add(c, n, x, dim, index, source):
    return scattered(c, n, x, dim, index, source, "add")


@converts("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_with(c, n, x, dim, index, source, reduce):
    return scattered(c, n, x, dim, index, source, reduce)


@converts("aten.scatter_reduce")
def scatter_reduce(c, n, x, dim, index, source, reduce, include_self=True):
    if not include_self:
        raise Unsupported("include_self is False")
    return scattered(c, n, x, dim, index, source, reduce)

