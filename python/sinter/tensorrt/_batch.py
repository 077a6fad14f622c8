# SPDX-License-Identifier: Apache-2.0
"""Networks with an implicit batch, as versions 5 to 8 had them: axis 0 of every tensor is the batch, which scripts do not see. So
sizes, axes and masks that scripts give and get are those behind it."""
from .._dtype import numpy
from ._core import NotAvailable

AXES = {("concatenation", "axis"), ("quantize", "axis"), ("dequantize", "axis"), ("scale", "channel_axis"), ("gather", "axis")}
MASKS = {("reduce", "axes"), ("topk", "axes"), ("softmax", "axes"), ("normalization", "axes")}
PERMUTATIONS = {("shuffle", "first_transpose"), ("shuffle", "second_transpose")}
IN_FRONT = {("shuffle", "reshape"): 0, ("resize", "scales"): 1, ("constant", "shape"): 1}       # the batch's entry in a list
REFUSED = ("shape", "fill", "einsum", "squeeze", "unsqueeze", "nms", "non_zero", "scatter", "one_hot", "cumulative")
WINDOWS = {"convolution": "kernel_size", "deconvolution": "kernel_size", "pooling": "window_size"}
ANY_RANK = ("activation", "unary", "scale")


def is_one_axis_short(kind, tensors, parameters):
    """Has the input of a window [C, H, W], no batch?"""
    return len(tensors[0].shape) == len(tuple(parameters[WINDOWS[kind]])) + 1


def given(kind, parameter, value):
    """The value of a parameter for the network."""
    key = kind, parameter
    if key in AXES:
        return value + 1 if value >= 0 else value
    if key in MASKS:
        return int(value) << 1
    if key in PERMUTATIONS:
        return [0] + [p + 1 for p in value]
    return [IN_FRONT[key], *value] if key in IN_FRONT and len(value) else value


def shown(kind, parameter, value):
    """The value of a parameter as scripts see it."""
    key = kind, parameter
    if key in AXES:
        return value - 1 if value > 0 else value
    if key in MASKS:
        return value >> 1
    if key in PERMUTATIONS:
        return [p - 1 for p in value[1:]]
    return value[1:] if key in IN_FRONT else value


def batch_and(net, tensor, sizes):
    """A tensor of sizes: the batch of `tensor`, then these."""
    whole = net.add_op("Shape", tensor, end=1).output
    return net.add_op("Concat", whole, net.add_constant(numpy().array(sizes, numpy().int64)), axis=0).output


def of_one_batch(net, tensors):
    """The operands of a concatenation: constants are the same for each item of the batch."""
    whole = next((t for t in tensors if t.shape[0] != 1), None)
    if whole is None:
        return tensors
    return [net.add_op("Expand", t, batch_and(net, whole, t.shape[1:])).output if t.shape[0] == 1 else t for t in tensors]


def of_gather(net, data, indices, parameters):
    """The operands and parameters of a gather: constants have no batch, and indices with a batch are those of its items."""
    def flat(tensor):
        return net.add("shuffle", tensor, reshape=tuple(tensor.shape[1:])).output
    if data.shape[0] == 1:
        if parameters["axis"] != 1:
            raise NotAvailable("add_gather from a constant along an axis that is not 0, in a network with an implicit batch, is not available")
        return [flat(data), indices], dict(parameters, axis=0)
    if indices.shape[0] == 1:
        return [data, flat(indices)], parameters
    return [data, indices], dict(parameters, num_elementwise_dims=1)


def refuse(kind):
    raise NotAvailable(f"add_{kind} in a network with an implicit batch is not available: make it with EXPLICIT_BATCH")


def prepared(net, kind, tensors, parameters):
    """(tensors, parameters) of a layer that a script adds."""
    if kind in REFUSED:
        refuse(kind)
    if kind == "gather" and "axis" not in parameters:
        refuse("gather_v2")
    parameters = {name: given(kind, name, value) for name, value in parameters.items()}
    if kind == "gather":
        tensors, parameters = of_gather(net, *tensors, parameters)
    elif kind == "concatenation":
        tensors = of_one_batch(net, tensors)
    elif kind == "slice":
        parameters["axes"] = tuple(range(1, len(tensors[0].shape)))
    elif kind == "softmax":
        parameters["axes"] = 2 << max(0, len(tensors[0].shape) - 4)
    return tensors, parameters
