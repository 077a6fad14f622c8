# SPDX-License-Identifier: Apache-2.0
"""Random, seeded ONNX models with their inputs: element types, ranks, free sizes and several outputs, for the tests of the
Python package. What the operators compute is judged elsewhere; here models differ in what crosses the interface."""
import random

import numpy as np
from onnx_bytes import data, ints, num

# name: (ONNX's number, the NumPy type in which sinter shows it)
TYPES = {"f32": (1, "f4"), "u8": (2, "u1"), "i8": (3, "i1"), "u16": (4, "u2"), "i16": (5, "i2"), "i32": (6, "i4"),
         "i64": (7, "i8"), "bool": (9, "?"), "f16": (10, "f2"), "f64": (11, "f8"), "u32": (12, "u4"), "u64": (13, "u8"),
         "bf16": (16, "u2"), "f8e4m3fn": (17, "u1"), "f8e5m2": (19, "u1")}


def value(name, dtype, dims):
    sizes = b"".join(data(1, num(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, num(1, TYPES[dtype][0]) + data(2, sizes)))


def initializer(name, array, dtype="f32"):
    return data(5, b"".join(num(1, d) for d in array.shape) + num(2, TYPES[dtype][0]) + data(8, name) + data(9, array.tobytes()))


def node(op, ins, outs, attrs=b""):
    return data(1, b"".join(data(1, i) for i in ins) + b"".join(data(2, o) for o in outs) + data(3, outs[0]) + data(4, op) + attrs)


def integer(name, n):
    return data(5, data(1, name) + num(3, n) + num(20, 2))


def model(graph, opset=19):
    return num(1, 9) + data(7, graph) + data(8, num(2, opset))


def random_array(rng, dtype, shape):
    """Numbers that every type holds without surprises: no NaN, no infinity, no overflow in a cast."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype("?")
    small = rng.integers(0, 8, shape)
    if dtype == "bf16":
        return (small.astype("f4").view("u4") >> 16).astype("u2")
    if dtype == "f8e4m3fn":
        return np.array([0x00, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e], "u1")[small]
    if dtype == "f8e5m2":
        return np.array([0x00, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47], "u1")[small]
    if TYPES[dtype][1][0] == "f":
        return (small + rng.integers(0, 4, shape) / 4).astype(TYPES[dtype][1])
    return small.astype(TYPES[dtype][1])


def pb(array, dtype):
    """A serialised TensorProto."""
    return b"".join(num(1, d) for d in array.shape) + num(2, TYPES[dtype][0]) + data(9, array.tobytes())


def sliced(choose, dims):
    """[start, end, axis, step] of a part of an axis, and the sizes behind it; None: no axis has a fixed size, or the part is empty."""
    fixed = [k for k, d in enumerate(dims) if isinstance(d, int)]
    if not fixed:
        return None
    axis, start, end, step = choose.choice(fixed), choose.randint(-6, 6), choose.choice([-9, -1, 0, 2, 9, 2**63 - 1]), choose.choice([1, 1, 2, -1, -2])
    if step < 0 and end > dims[axis]:
        end = -2**63                                        # to the front
    size = len(range(dims[axis])[start:end:step])
    return ([start, end, choose.choice([axis, axis - len(dims)]), step], dims[:axis] + [size] + dims[axis + 1:]) if size else None


def resized(choose, dims):
    """Scales of all axes, and the sizes behind them; free axes stay. None: there are no axes, or nothing would be left."""
    scales = [choose.choice([1, 1, 2, 1.5, 0.5]) if isinstance(d, int) else 1 for d in dims]
    made = [int(d * s) if isinstance(d, int) else d for d, s in zip(dims, scales)]
    return (scales, made) if dims and 0 not in made else None


class RandomModel:
    """`bytes`: the model; `inputs`: name -> (dtype, dims); `outputs`: name -> dtype; free dims are called N and M."""

    def __init__(self, seed):
        choose = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        graph, self.inputs, self.outputs, self.floats = b"", {}, {}, []
        for i in range(choose.randint(1, 4)):
            name = choose.choice(["x", "input.", "a/b:", "ü"]) + str(i)
            dtype = choose.choice(list(TYPES))
            dims = [choose.choice([1, 2, 3, 5, "N", "M"]) for _ in range(choose.randint(0, 4))]
            self.inputs[name] = (dtype, dims)
            graph += data(11, value(name, dtype, dims))
            # As f32, something is computed; then it leaves in several types.
            graph += node("Cast", [name], [f"f{i}"], integer("to", 1))
            last = f"f{i}"
            for step in range(choose.randint(0, 4)):
                made = f"v{i}_{step}"
                op = choose.choice(["Relu", "Sigmoid", "Add", "Mul", "Transpose", "Abs", "Unsqueeze", "Slice", "Resize"])
                cut, grown = sliced(choose, dims), resized(choose, dims)
                if op in ("Add", "Mul"):
                    weight = f"w{i}_{step}"
                    graph += initializer(weight, np.array(self.rng.random(), "f4"))
                    graph += node(op, [last, weight], [made])
                elif op == "Transpose":
                    dims = dims[::-1]
                    graph += node(op, [last], [made], ints("perm", range(len(dims) - 1, -1, -1)))
                elif op == "Unsqueeze" and len(dims) < 6:
                    graph += initializer(f"axes{i}_{step}", np.array([0], "i8"), "i64")
                    graph += node(op, [last, f"axes{i}_{step}"], [made])
                    dims = [1] + dims
                elif op == "Slice" and cut:
                    lists, dims = cut
                    graph += b"".join(initializer(f"{made}_{k}", np.array([n], "i8"), "i64") for k, n in enumerate(lists))
                    graph += node(op, [last] + [f"{made}_{k}" for k in range(4)], [made])
                elif op == "Resize" and grown:
                    scales, dims = grown
                    graph += initializer(f"{made}_scales", np.array(scales, "f4"))
                    graph += node(op, [last, "", f"{made}_scales"], [made])
                else:
                    graph += node("Neg" if op in ("Unsqueeze", "Slice", "Resize") else op, [last], [made])
                last = made
            self.floats.append((last, dims))
            for k in range(choose.randint(1, 2)):
                out, dtype = f"out{i}_{k}", choose.choice(list(TYPES))
                graph += node("Abs", [last], [f"abs_{out}"]) + node("Cast", [f"abs_{out}"], [out], integer("to", TYPES[dtype][0]))
                self.outputs[out] = dtype
                graph += data(12, value(out, dtype, dims))
        self.bytes = model(data(2, "random") + graph)
        self.has = {d for _, dims in self.inputs.values() for d in dims if isinstance(d, str)}

    def arrays(self, sizes):
        """name -> array of each input, with these sizes for N and M."""
        return {name: np.asarray(random_array(self.rng, dtype, [sizes.get(d, d) for d in dims]))
                for name, (dtype, dims) in self.inputs.items()}

    def write_inputs(self, folder, arrays):
        """Files of the inputs, as the command takes them: arguments of `sinter run`."""
        arguments = []
        for i, (name, array) in enumerate(arrays.items()):
            path = folder / f"input_{i}.pb"
            path.write_bytes(pb(array, self.inputs[name][0]))
            arguments += ["--input", f"{name}={path}"]
        return arguments


def widened(array, dtype):
    """What the command writes into .npy files: bf16 and 8-bit floats as f32."""
    if dtype == "bf16":
        return np.asarray(array.astype("u4") << np.uint32(16), "u4").view("f4")
    if dtype in ("f8e4m3fn", "f8e5m2"):
        return np.array([f8_value(int(b), dtype) for b in array.reshape(-1)], "f4").reshape(array.shape)
    return array


def f8_value(b, dtype):
    bits, bias = (3, 7) if dtype == "f8e4m3fn" else (2, 15)
    exponent, mantissa = b >> bits & (1 << 7 - bits) - 1, b & (1 << bits) - 1
    top = (1 << 7 - bits) - 1
    if exponent == top and (dtype == "f8e5m2" or mantissa == 7):
        number = float("inf") if dtype == "f8e5m2" and mantissa == 0 else float("nan")
    elif exponent == 0:
        number = mantissa / (1 << bits) * 2.0 ** (1 - bias)
    else:
        number = (1 + mantissa / (1 << bits)) * 2.0 ** (exponent - bias)
    return -number if b & 128 else number


