# SPDX-License-Identifier: Apache-2.0
"""Loops and conditionals of networks."""
from ._network import ILayer, logged, tensor_of


class Part:
    """A loop or a conditional of a network."""

    def __init__(self, network, part):
        self.network, self.part = network, part

    # A model's Loop, Scan or If that stays an operator has no part, and so no name.
    name = property(lambda self: "" if self.part is None else self.part.name, lambda self, name: setattr(self.part, "name", name))

    def _layer(self, layer):
        return self.network._add_named(layer)

    def __eq__(self, other):
        return type(other) is type(self) and self.part == other.part

    def __hash__(self):
        return hash(self.part)


class ILoop(Part):
    """A loop: it repeats the layers that depend on its recurrences and iterators."""

    def add_trip_limit(self, tensor, kind):
        return self._layer(self.part.add_trip_limit(tensor_of(tensor, "add_trip_limit", "tensor"), kind))

    def add_recurrence(self, initial_value):
        return self._layer(self.part.add_recurrence(tensor_of(initial_value, "add_recurrence", "initial_value")))

    def add_iterator(self, tensor, axis=0, reverse=False):
        return self._layer(self.part.add_iterator(tensor_of(tensor, "add_iterator", "tensor"), axis, reverse))

    def add_loop_output(self, tensor, kind, axis=0):
        return self._layer(self.part.add_output(tensor_of(tensor, "add_loop_output", "tensor"), kind, axis))


class IIfConditional(Part):
    """Two branches, of which one runs."""

    def set_condition(self, condition):
        return self._layer(self.part.set_condition(tensor_of(condition, "set_condition", "condition")))

    def add_input(self, input):
        return self._layer(self.part.add_input(tensor_of(input, "add_input", "input")))

    def add_output(self, true_subgraph_output, false_subgraph_output):
        return self._layer(self.part.add_output(tensor_of(true_subgraph_output, "add_output", "true_subgraph_output"),
                                                tensor_of(false_subgraph_output, "add_output", "false_subgraph_output")))


for _kind, _names in ((ILoop, "add_trip_limit add_recurrence add_iterator add_loop_output"), (IIfConditional, "set_condition add_input add_output")):
    for _name in _names.split():
        setattr(_kind, _name, logged(getattr(_kind, _name), lambda self: self.network))


class ILoopBoundaryLayer(ILayer):
    """A layer at the border of a loop."""
    loop = property(lambda self: ILoop(self.network, self.layer.loop))


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the border of a conditional."""
    conditional = property(lambda self: IIfConditional(self.network, self.layer.conditional))


BOUNDARY = dict.fromkeys(("trip_limit", "recurrence", "iterator", "loop_output"), ILoopBoundaryLayer)
BOUNDARY.update(dict.fromkeys(("condition", "conditional_input", "conditional_output"), IIfConditionalBoundaryLayer))
