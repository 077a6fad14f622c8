# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model computes from the values of small inputs of integers: random arithmetic that ends in sizes, as ONNX models and as
networks made by calls. The sizes are known before the run, as soon as the values are; NumPy says what they are."""
import os
import random

import numpy as np
import rig
from onnx_bytes import data
from random_models import TYPES, initializer, integer, model, node, value
from sinter import tensorrt as trt

COUNT = 400 if os.environ.get("SINTER_TEST_SCALE") == "full" else 40
QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)
DTYPES = {"i32": trt.int32, "i64": trt.int64}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum, "Div": np.floor_divide}


class Onnx:
    """Writes a model."""

    def __init__(self):
        self.head, self.nodes, self.count = b"", b"", 0

    def _node(self, op, ins, attrs=b""):
        self.count += 1
        self.nodes += node(op, ins, [f"t{self.count}"], attrs)
        return f"t{self.count}"

    def input(self, name, dtype, shape):
        self.head += data(11, value(name, dtype, list(shape)))
        return name

    def constant(self, array, dtype="i64"):
        self.count += 1
        self.head += initializer(f"t{self.count}", array, dtype)
        return f"t{self.count}"

    def binary(self, op, a, b):
        return self._node(op, [a, b])

    def cast(self, a, dtype):
        return self._node("Cast", [a], integer("to", TYPES[dtype][0]))

    def flat(self, a):
        return self._node("Reshape", [a, self.constant(np.array([-1]))])

    def concat(self, parts):
        return self._node("Concat", parts, integer("axis", 0))

    def gather(self, a, at):
        return self._node("Gather", [a, self.constant(np.array(at))], integer("axis", 0))

    def product(self, a):
        return self._node("ReduceProd", [a], integer("keepdims", 1))

    def larger(self, a, b):
        return self._node("Where", [self._node("Greater", [a, b]), a, b])

    def filled(self, sizes):
        return self._node("ConstantOfShape", [sizes])

    def expanded(self, x, sizes):
        return self._node("Expand", [x, sizes])

    def tiled(self, x, repeats):
        return self._node("Tile", [x, repeats])

    def sliced(self, x, ends):
        return self._node("Slice", [x, self.constant(np.array([0, 0])), ends])

    def reshaped(self, x, sizes):
        return self._node("Reshape", [x, sizes])

    def resized(self, x, sizes):
        return self._node("Resize", [x, "", "", sizes])

    def network(self, builder, y, dtype, rank):
        head = data(2, "g") + self.head + data(12, value("y", dtype, [f"d{k}" for k in range(rank)]))
        last = node("Identity", [y], ["y"])
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, QUIET)
        assert parser.parse(model(head + self.nodes + last)), [str(parser.get_error(i)) for i in range(parser.num_errors)]
        return network


class Calls:
    """Makes a network."""

    def __init__(self):
        self.builder = trt.Builder(QUIET)
        self.net = self.builder.create_network(0)

    def input(self, name, dtype, shape):
        return self.net.add_input(name, DTYPES.get(dtype, trt.float32), tuple(shape))

    def constant(self, array, dtype="i64"):
        return self.net.add_constant(array.shape, np.ascontiguousarray(array)).get_output(0)

    def binary(self, op, a, b):
        kind = {"Add": "SUM", "Sub": "SUB", "Mul": "PROD", "Min": "MIN", "Max": "MAX", "Div": "FLOOR_DIV"}[op]
        return self.net.add_elementwise(a, b, getattr(trt.ElementWiseOperation, kind)).get_output(0)

    def cast(self, a, dtype):
        return self.net.add_cast(a, DTYPES[dtype]).get_output(0)

    def flat(self, a):
        layer = self.net.add_shuffle(a)
        layer.reshape_dims = (-1,)
        return layer.get_output(0)

    def concat(self, parts):
        layer = self.net.add_concatenation(parts)
        layer.axis = 0
        return layer.get_output(0)

    def gather(self, a, at):
        return self.net.add_gather(a, self.constant(np.array(at)), 0).get_output(0)

    def product(self, a):
        return self.net.add_reduce(a, trt.ReduceOperation.PROD, 1, True).get_output(0)

    def larger(self, a, b):
        flag = self.net.add_elementwise(a, b, trt.ElementWiseOperation.GREATER).get_output(0)
        return self.net.add_select(flag, a, b).get_output(0)

    def filled(self, sizes):
        layer = self.net.add_fill((0,), trt.FillOperation.LINSPACE, trt.float32)
        layer.set_input(0, sizes)
        layer.set_input(1, self.constant(np.array(0, "f4")))
        layer.set_input(2, self.constant(np.zeros(sizes.shape[0], "f4")))
        return layer.get_output(0)

    def expanded(self, x, sizes):
        layer = self.net.add_slice(x, (0, 0), (1, 1), (0, 0))
        layer.set_input(2, sizes)
        return layer.get_output(0)

    def tiled(self, x, repeats):
        layer = self.net.add_slice(x, (0, 0), (1, 1), (1, 1))
        layer.set_input(2, self.binary("Mul", repeats, self.constant(np.array(x.shape))))
        layer.mode = trt.SampleMode.WRAP
        return layer.get_output(0)

    def sliced(self, x, ends):
        layer = self.net.add_slice(x, (0, 0), (1, 1), (1, 1))
        layer.set_input(2, ends)
        return layer.get_output(0)

    def reshaped(self, x, sizes):
        layer = self.net.add_shuffle(x)
        layer.set_input(1, sizes)
        return layer.get_output(0)

    def resized(self, x, sizes):
        layer = self.net.add_resize(x)
        layer.set_input(1, sizes)
        return layer.get_output(0)

    def network(self, builder, y, dtype, rank):
        y.name = "y"
        self.net.mark_output(y)
        return self.net


class Sizes:
    """Random arithmetic over inputs. Each list of `known` is a handle with its values for each of the sets of inputs."""

    def __init__(self, seed, form):
        self.choose, self.form, self.inputs, self.used = random.Random(seed), form, {}, set()
        self.lists, self.sets = [], 3
        for i in range(self.choose.randint(1, 3)):
            dtype, shape = self.choose.choice(["i32", "i64"]), self.choose.choice([(), (1,), (2,), (3,)])
            values = [np.array(self.choose.choices(range(1, 6), k=int(np.prod(shape))), TYPES[dtype][1]).reshape(shape) for _ in range(self.sets)]
            handle = form.input(f"n{i}", dtype, shape)
            self.inputs[f"n{i}"] = values
            handle = handle if shape else form.flat(handle)
            handle = form.cast(handle, "i64") if dtype == "i32" else handle
            self.lists.append((handle, [v.reshape(-1).astype("i8") for v in values], frozenset([f"n{i}"])))
        for _ in range(self.choose.randint(1, 6)):
            self.lists.append(self.step())

    def pick(self):
        return self.choose.choice(self.lists[-3:] + self.lists[:1])

    def constant(self, values):
        array = np.array(values, "i8")
        return self.form.constant(array), [array] * self.sets, frozenset()

    def of_length(self, count):
        """A list of so many numbers, which depends on an input."""
        a = self.pick()
        while len(a[1][0]) < count:
            b = self.pick()
            a = (self.form.concat([a[0], b[0]]), [np.concatenate(v) for v in zip(a[1], b[1])], a[2] | b[2])
        at = self.choose.sample(range(len(a[1][0])), count)
        return self.form.gather(a[0], at), [v[at] for v in a[1]], a[2]

    def step(self):
        a = self.pick()
        count = len(a[1][0])
        kind = self.choose.choice(["binary", "binary", "binary", "concat", "gather", "product", "larger", "cast"])
        if kind == "concat" and count < 6:
            b = self.pick()
            return self.form.concat([a[0], b[0]]), [np.concatenate(v) for v in zip(a[1], b[1])], a[2] | b[2]
        if kind == "gather":
            return self.of_length(self.choose.randint(1, 3))
        if kind == "product":
            return self.form.product(a[0]), [np.prod(v, keepdims=True) for v in a[1]], a[2]
        if kind == "cast":
            return self.form.cast(self.form.cast(a[0], "i32"), "i64"), a[1], a[2]
        b = self.of_length(count) if self.choose.random() < 0.5 else self.constant(self.choose.choices(range(1, 5), k=count))
        if kind == "larger":
            return self.form.larger(a[0], b[0]), [np.maximum(*v) for v in zip(a[1], b[1])], a[2] | b[2]
        op = self.choose.choice(list(BINARY))
        if op == "Div":                                     # of what is positive on both sides
            a, b = (self.clipped(x, 1, 99) for x in (a, b))
        made = self.form.binary(op, a[0], b[0]), [BINARY[op](*v) for v in zip(a[1], b[1])], a[2] | b[2]
        return self.clipped(made, -50, 50) if op == "Mul" else made

    def clipped(self, a, low, high):
        count = len(a[1][0])
        handle = self.form.binary("Max", a[0], self.form.constant(np.full(count, low)))
        return self.form.binary("Min", handle, self.form.constant(np.full(count, high))), [np.clip(v, low, high) for v in a[1]], a[2]

    def end(self):
        """The output, the shapes that it has, its rank, and the inputs that it depends on."""
        x = np.arange(24, dtype="f4").reshape(4, 6)
        kind = self.choose.choice(["filled", "expanded", "tiled", "sliced", "reshaped", "resized"])
        sizes = self.clipped(self.of_length(2), 1, 4)
        shapes = [tuple(int(n) for n in v) for v in sizes[1]]
        if kind == "filled":
            return self.form.filled(sizes[0]), shapes, sizes[2]
        if kind == "expanded":
            return self.form.expanded(self.form.constant(np.ones((1, 1), "f4"), "f32"), sizes[0]), shapes, sizes[2]
        if kind == "tiled":
            return self.form.tiled(self.form.constant(x, "f32"), sizes[0]), [(4 * a, 6 * b) for a, b in shapes], sizes[2]
        if kind == "sliced":
            return self.form.sliced(self.form.constant(x, "f32"), sizes[0]), shapes, sizes[2]
        if kind == "reshaped":                              # [n, -1] of what n divides
            n = self.clipped(self.of_length(1), 1, 4)
            rest = self.constant([-1])
            return (self.form.reshaped(self.form.constant(x, "f32"), self.form.concat([n[0], rest[0]])), [(int(v[0]), 24 // int(v[0])) for v in n[1]], n[2])
        whole = self.form.concat([self.constant([1, 1])[0], sizes[0]])
        return self.form.resized(self.form.constant(x.reshape(1, 1, 4, 6), "f32"), whole), [(1, 1, *s) for s in shapes], sizes[2]


def check(seed, form):
    sizes = Sizes(seed, form)
    y, shapes, needed = sizes.end()
    builder = getattr(form, "builder", None) or trt.Builder(QUIET)
    network = form.network(builder, y, "f32", len(shapes[0]))
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    assert engine, f"seed {seed}"
    context = engine.create_execution_context()
    held = {}
    for name in engine:
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT and name not in needed:
            assert not engine.is_shape_inference_io(name), f"seed {seed}: {name} decides a size"
    varies = len(set(shapes)) > 1
    for i, shape in enumerate(shapes):
        for name, values in sizes.inputs.items():
            if engine._find(name) is None:
                continue
            held[name] = np.array(values[i])
            if engine.is_shape_inference_io(name):
                assert engine.get_tensor_location(name) == trt.TensorLocation.HOST
            context.set_tensor_address(name, held[name].ctypes.data)
        assert not context.infer_shapes(), f"seed {seed}"
        assert tuple(context.get_tensor_shape("y")) == shape, f"seed {seed}: {tuple(context.get_tensor_shape('y'))}, wanted {shape}"
        if varies:
            assert any(engine.is_shape_inference_io(name) for name in needed), f"seed {seed}"
        found = np.full(shape, 77, "f4")
        context.set_tensor_address("y", found.ctypes.data)
        assert context.execute_async_v3(0), f"seed {seed}"
        assert 77 not in found or found.size == 0, f"seed {seed}"


def test_models():
    for seed in range(COUNT):
        check(seed, Onnx())


def test_networks():
    for seed in range(COUNT):
        check(seed, Calls())


if __name__ == "__main__":
    rig.main(__name__)
