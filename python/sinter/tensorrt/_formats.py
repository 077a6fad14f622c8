# SPDX-License-Identifier: Apache-2.0
"""Formats of inputs and outputs that are not row-major: the channels lie behind the other axes (HWC), or in groups (CHW4). The engine's
input or output has the shape of its memory, and layers convert it; one more output, whose name is a mark, says which format it is."""
import contextlib
from collections import namedtuple

from .._abi import FORMATS, Dtype
from .._dtype import numpy
from ._core import Dims, NotAvailable
from ._names import TensorFormat

MARK = "[format] "
# How many channels a format keeps side by side, how many axes are behind those, and whether all channels lie behind these axes.
ROWS = {TensorFormat[name]: row for name, *row in FORMATS}


class Layout(namedtuple("Layout", "format channels")):
    """A format, and the channels of the tensor that has it."""
    lanes = property(lambda self: ROWS[self.format][0])
    behind = property(lambda self: ROWS[self.format][1])
    is_last = property(lambda self: ROWS[self.format][2])
    padded = property(lambda self: -(-self.channels // self.lanes) * self.lanes)

    def stored(self, shape):
        """The sizes in memory of a tensor of this shape."""
        front, back = tuple(shape[:-self.behind - 1]), tuple(shape[-self.behind:])
        return front + back + (self.padded,) if self.is_last else front + (self.padded // self.lanes,) + back + (self.lanes,)

    def shown(self, stored):
        """The shape of a tensor that has these sizes in memory."""
        first = len(stored) - self.behind - (1 if self.is_last else 2)
        return tuple(stored[:first]) + (self.channels,) + tuple(stored[len(stored) - 1 - self.behind:-1])

    def strides(self, stored):
        """Those of the shown axes, in elements, or in groups of channels where the format has groups."""
        first = len(stored) - self.behind - (1 if self.is_last else 2)
        if self.is_last:
            return (*stored[:first], stored[-1], *stored[first:-1])
        return tuple(s // self.lanes for s in stored[:-1])

    def text(self, name):
        return f"{MARK}{self.format.name} {self.channels} {name}"


LINEAR = Layout(TensorFormat.LINEAR, 0)


def read_mark(text):
    """(name, Layout) of a mark."""
    format, channels, name = text[len(MARK):].split(" ", 2)
    return name, Layout(TensorFormat[format], int(channels))


def layout_of(tensor, formats):
    """The Layout of a tensor that may have one of these formats; None: it is row-major."""
    allowed, shape = [f for f in TensorFormat if formats >> int(f) & 1], tuple(tensor.shape)
    if TensorFormat.LINEAR in allowed:
        return None
    for format in allowed:
        if format in ROWS and len(shape) > ROWS[format][1] and shape[-ROWS[format][1] - 1] > 0:
            return Layout(format, shape[-ROWS[format][1] - 1])
    raise NotAvailable(f"tensor '{tensor.name}' of shape {Dims(shape)} has allowed_formats {' | '.join(f.name for f in allowed) or formats}, "
                       f"where {TensorFormat.LINEAR.name} is wanted, or a format with a known number of channels before its axes")


class Maker:
    """Layers between a tensor as it lies in memory and the network's."""

    def __init__(self, net):
        self.net, self.layers = net, []

    def op(self, type, *inputs, **attributes):
        self.layers.append(self.net.add_op(type, *inputs, **attributes))
        return self.layers[-1].output

    def numbers(self, *values):
        tensor = self.net.add_constant(numpy().array(values, numpy().int64))
        self.layers.append(tensor.producer)
        return tensor

    def format(self, x, layout, rank, to_memory):
        """The network's tensor of one in memory, or the tensor in memory of one of the network, which has this rank."""
        first = len(self.net.layers)
        x = self.net.add_format(x, layout.format, rank, layout.channels, to_memory)
        self.layers += self.net.layers[first:]
        return x

    def scale(self, value, dtype):
        made = self.net.add_constant(numpy().array(value, dtype))
        self.layers.append(made.producer)
        return made

    def cast(self, x, dtype):
        if x.dtype == dtype:
            return x
        self.layers.append(self.net.add("cast", x, to_type=dtype))
        return self.layers[-1].output

    def mark(self, text):
        """An output that nobody reads: the engine keeps its name, which is the text."""
        self.layers.append(self.net.add("identity", self.numbers(0)))
        self.layers[-1].output.name = text
        self.net.mark_output(self.layers[-1].output)
        return self.layers[-1].output

    def remove(self):
        for layer in reversed(self.layers):
            self.net.remove(layer)


@contextlib.contextmanager
def said(net, texts):
    """The network with an output named for each text, for one build."""
    maker = Maker(net)
    marks = [maker.mark(text) for text in texts]
    try:
        yield
    finally:
        for tensor in marks:
            net.mark_output(tensor, False)
        maker.remove()


@contextlib.contextmanager
def stored(net, layouts, scales):
    """The network with inputs and outputs as they lie in memory, for one build. layouts: tensor -> Layout. scales: tensor -> what a unit of
    a float tensor is, whose memory has INT8."""
    maker, undo, changed = Maker(net), [], dict.fromkeys([*layouts, *scales])
    outputs = net.outputs if any(t.is_output for t in changed) else []
    try:
        for tensor in changed:
            layout = layouts.get(tensor)
            if layout is not None:
                undo.append((net.mark_output, maker.mark(layout.text(tensor.name)), False))
            if not tensor.is_input:
                continue
            shape, names = tuple(tensor.shape), tensor.dim_names
            readers = [(layer, i) for layer in net.layers for i, t in enumerate(layer.inputs) if t is not None and t.handle == tensor.handle]
            undo.append((put_shape, tensor, shape, names))
            undo.append((setattr, tensor, "dtype", tensor.dtype))
            undo.extend((layer.set_input, i, tensor) for layer, i in readers)
            shown, dtype = tensor, tensor.dtype
            if layout is not None:
                put_shape(tensor, layout.stored(shape), layout.stored(names))
            if tensor in scales:
                tensor.dtype = Dtype.I8
                shown = maker.cast(maker.op("DequantizeLinear", tensor, maker.scale(scales[tensor], "f4")), dtype)
            if layout is not None:
                shown = maker.format(shown, layout, len(shape), False)
            for layer, i in readers:
                layer.set_input(i, shown)
        for tensor in outputs:
            undo.insert(0, (net.mark_output, tensor))
            net.mark_output(tensor, False)
        for tensor in outputs:
            if tensor in changed and not tensor.is_input:
                name, rank, layout, scale = tensor.name, len(tensor.shape), layouts.get(tensor), scales.get(tensor)
                undo.append((setattr, tensor, "name", name))
                tensor.name = name + " [linear]"
                if layout is not None:
                    tensor = maker.format(tensor, layout, rank, True)
                if scale is not None:
                    tensor = maker.op("QuantizeLinear", maker.cast(tensor, Dtype.F32), maker.scale(scale, "f4"), maker.scale(0, "i1"))
                tensor.name = name
                undo.append((setattr, tensor, "name", name + " [stored]"))
            undo.append((net.mark_output, tensor, False))
            net.mark_output(tensor)
        yield
    finally:
        for call, *arguments in reversed(undo):
            call(*arguments)
        maker.remove()


def put_shape(tensor, shape, names):
    tensor.shape = shape
    for axis, name in enumerate(names):
        if isinstance(name, str):
            tensor.set_dim_name(axis, name)
