# SPDX-License-Identifier: Apache-2.0
"""Plugins of sinter.tensorrt: classes of versions 2 and 3, creators, the module tensorrt.plugin; scripts that are wrong."""
import random
import subprocess
import sys
from typing import List, Tuple

import rig

import numpy as np
import sinter.tensorrt as trt
import sinter.tensorrt.plugin as trtp
from onnx_bytes import data, num
from random_models import model, node, value
from sinter._host_device import device

X = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype("f4")


class Log(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.lines = []

    def log(self, severity, msg):
        if severity <= trt.Logger.ERROR:
            self.lines.append(msg)


def pad_model(kind, shape=("N", 3, 4, 5), pads=(2, 3, 1, 1)):
    attribute = data(5, data(1, "pads") + b"".join(num(8, v) for v in pads) + num(20, 7))
    return model(data(2, "g") + data(11, value("x", "f32", list(shape))) + data(12, value("y", "f32", [])) +
                 node(kind, ["x"], ["y"], attribute))


def execute(engine, *arrays):
    """The outputs; device pointers are host pointers."""
    context = engine.create_execution_context()
    held, outputs = [], []
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    inputs = [n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
    for name, array in zip(inputs, arrays):
        held.append(np.ascontiguousarray(array))
        assert context.set_input_shape(name, array.shape)
        context.set_tensor_address(name, held[-1].ctypes.data)
    for name in names:
        if name not in inputs:
            outputs.append(np.zeros(tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name))))
            context.set_tensor_address(name, outputs[-1].ctypes.data)
    return outputs if context.execute_async_v3(0) else None


def at(address, desc):
    """Memory of the device as an array: on the CPU it is the host's."""
    import ctypes
    dtype = np.dtype(trt.nptype(desc.type))
    count = trt.volume(desc.dims)
    raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(raw, dtype).reshape(tuple(desc.dims))


def engine_of(network, log=None, profile=((1, 3, 4, 5), (2, 3, 4, 5), (3, 3, 4, 5)), name="x"):
    builder = network.builder
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    if profile:
        ranges = builder.create_optimization_profile()
        ranges.set_shape(name, *profile)
        config.add_optimization_profile(ranges)
    plan = builder.build_serialized_network(network, config)
    return None if plan is None else trt.Runtime(builder.logger).deserialize_cuda_engine(plan)


def new_network(log=None):
    return trt.Builder(log or trt.Logger(trt.Logger.INTERNAL_ERROR)).create_network(0)


# ---- version 2 ----

class Pad2(trt.IPluginV2DynamicExt):
    plugin_type, plugin_version, plugin_namespace, num_outputs = "PadTwo", "1", "mine", 1
    alive = 0

    def __init__(self, pads):
        trt.IPluginV2DynamicExt.__init__(self)
        self.pads, self.started = list(pads), False

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, output_index, inputs, builder):
        dims = trt.DimsExprs(inputs[0])
        for i in range(len(self.pads) // 2):
            total = builder.operation(trt.DimensionOperation.SUM, builder.constant(self.pads[2 * i]), builder.constant(self.pads[2 * i + 1]))
            dims[-1 - i] = builder.operation(trt.DimensionOperation.SUM, dims[-1 - i], total)
        return dims

    def serialize(self):
        return bytes(self.pads)

    def configure_plugin(self, inp, out):
        assert isinstance(inp[0], trt.DynamicPluginTensorDesc) and len(inp) == len(out) == 1

    def initialize(self):
        Pad2.alive += 1
        self.started = True

    def terminate(self):
        Pad2.alive -= 1

    def get_workspace_size(self, inp, out):
        return trt.volume(out[0].dims) * 4

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].format == trt.TensorFormat.LINEAR and in_out[pos].type == trt.DataType.FLOAT

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        assert self.started and workspace
        x = at(inputs[0], input_desc[0])
        widths = [(0, 0)] * x.ndim
        for i in range(len(self.pads) // 2):
            widths[-1 - i] = self.pads[2 * i], self.pads[2 * i + 1]
        at(outputs[0], output_desc[0])[...] = np.pad(x, widths, "wrap")
        return 0

    def clone(self):
        return Pad2(self.pads)


class Pad2Creator(trt.IPluginCreator):
    def __init__(self):
        trt.IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "PadTwo", "1", "mine"
        self.field_names = trt.PluginFieldCollection([trt.PluginField("pads", None, trt.PluginFieldType.INT32)])
        self.restored, self.named = 0, set()

    def create_plugin(self, name, fc):
        self.named.add(name)
        return Pad2([int(p) for p in fc[0].data])

    def deserialize_plugin(self, name, serialized):
        self.restored += 1
        self.named.add(name)
        return Pad2(serialized)


def test_fields_are_arrays():
    """As upstream shows them: arrays with one axis, whatever was given."""
    kinds = trt.PluginFieldType
    for given, kind, dtype, wanted in ((np.array(1.5, "f4"), kinds.FLOAT32, "f4", [1.5]), (2, kinds.INT32, "i4", [2]),
                                       ([1, 2], kinds.INT64, "i8", [1, 2]), ((0.5,), kinds.FLOAT64, "f8", [0.5]),
                                       (np.zeros((2, 2), "f2"), kinds.FLOAT16, "f2", [0] * 4), (np.array([]), kinds.CHAR, "i1", []),
                                       ("ab", kinds.CHAR, "i1", [97, 98]), (b"ab", kinds.CHAR, "i1", [97, 98])):
        field = trt.PluginField("f", given, kind)
        assert field.data.dtype == dtype and field.data.tolist() == wanted and field.size == len(wanted), (given, field.data)
    assert trt.PluginField("f", b"ab", kinds.CHAR).data.tobytes().decode() == "ab"
    assert trt.PluginField("f", None, kinds.INT32).data is None and trt.PluginField("f", b"ab", kinds.UNKNOWN).data == b"ab"


class Named(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """Adds 1, times what comparisons of its sizes say: [rows < columns, rows == columns, 1] for rows and columns that a run has."""

    def __init__(self, text):
        for kind in Named.__bases__:
            kind.__init__(self)
        self.text, self.num_outputs, self.plugin_name, self.plugin_version, self.plugin_namespace = text, 1, "Named", "1", ""

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, builder):
        dims, (rows, columns) = trt.DimsExprs(3), inputs[0]
        one, plus = builder.constant(1), trt.DimensionOperation.SUM
        dims[0] = builder.operation(plus, builder.operation(trt.DimensionOperation.LESS, rows, columns), one)
        dims[1] = builder.operation(plus, builder.operation(trt.DimensionOperation.EQUAL, rows, columns), one)
        dims[2] = one
        return [dims]

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([trt.PluginField("text", self.text.encode(), trt.PluginFieldType.CHAR)])

    def configure_plugin(self, inp, out):
        pass

    def on_shape_change(self, inp, out):
        pass

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.type == trt.float32 and in_out[pos].desc.format == trt.TensorFormat.LINEAR

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        at(outputs[0], output_desc[0])[...] = len(self.text)

    def attach_to_context(self, context):
        assert context.gpu_allocator is None and context.error_recorder is None
        return self.clone()

    def set_tactic(self, tactic):
        pass

    def clone(self):
        return Named(self.text)


class NamedCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "Named", "1", ""
        self.field_names = trt.PluginFieldCollection([trt.PluginField("text", np.array([]), trt.PluginFieldType.CHAR)])

    def create_plugin(self, name, fc, phase):
        (field,) = [f for f in fc if f.name == "text"]
        return Named((field.data[:-1] if field.data[-1] == 0 else field.data).tobytes().decode("utf-8"))


def test_texts_and_compared_sizes():
    creator, registry = NamedCreator(), trt.get_plugin_registry()
    assert registry.register_creator(creator, "")
    try:
        for from_call in (False, True):
            network = new_network()
            if from_call:
                x = network.add_input("x", trt.float32, (-1, -1))
                made = creator.create_plugin("n", trt.PluginFieldCollection([trt.PluginField("text", b"four\0", trt.PluginFieldType.CHAR)]),
                                             trt.TensorRTPhase.BUILD)
                network.mark_output(network.add_plugin_v3([x], [], made).get_output(0))
            else:
                text = data(5, data(1, "text") + data(4, "four") + num(20, 3))
                written = model(data(2, "g") + data(11, value("x", "f32", ["R", "C"])) + data(12, value("y", "f32", [])) +
                                node("Named", ["x"], ["y"], text))
                assert trt.OnnxParser(network, trt.Logger(trt.Logger.ERROR)).parse(written)
            engine = engine_of(network, profile=((1, 1), (2, 3), (4, 4)))
            for rows, columns in ((1, 1), (2, 3), (3, 2), (4, 4)):
                (found,) = execute(engine, np.zeros((rows, columns), "f4"))
                assert found.shape == (1 + (rows < columns), 1 + (rows == columns), 1) and (found == 4).all(), (rows, columns, found)
    finally:
        registry.deregister_creator(creator)


class Worded(Named):
    """Adds up its fields, which have the names of what functions are given."""
    NAMES = "count table values inputs outputs workspace tactic state stream self".split()

    def __init__(self, fields):
        super().__init__("")
        self.fields, self.plugin_name = fields, "Worded"

    def get_output_shapes(self, inputs, shape_inputs, builder):
        return [inputs[0]]

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([trt.PluginField(n, np.array([v], "i4")) for n, v in self.fields.items()])

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        at(outputs[0], output_desc[0])[...] = sum(self.fields.values())

    def clone(self):
        return Worded(self.fields)


class WordedCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "Worded", "1", ""
        self.field_names = trt.PluginFieldCollection([trt.PluginField(n, np.array([]), trt.PluginFieldType.INT32) for n in Worded.NAMES])

    def create_plugin(self, name, fc, phase):
        return Worded({f.name: int(f.data[0]) for f in fc})


@trtp.register("sample::worded")
def worded_desc(x: trtp.TensorDesc, count: int, table: int, values: int, inputs: int, state: int) -> trtp.TensorDesc:
    return x.like()


@trtp.impl("sample::worded")
def worded_impl(x: trtp.Tensor, count: int, table: int, values: int, inputs: int, state: int, outputs: Tuple[trtp.Tensor], stream: int) -> None:
    np.asarray(outputs[0])[...] = count + table + values + inputs + state


def test_names_of_fields():
    creator, registry = WordedCreator(), trt.get_plugin_registry()
    assert registry.register_creator(creator, "")
    try:
        network = new_network()
        x = network.add_input("x", trt.float32, (-1, 2))
        fields = trt.PluginFieldCollection([trt.PluginField(n, np.array([1 << i], "i4")) for i, n in enumerate(Worded.NAMES)])
        made = creator.create_plugin("n", fields, trt.TensorRTPhase.BUILD)
        network.mark_output(network.add_plugin_v3([x], [], made).get_output(0))
        network.mark_output(network.add_plugin(trtp.op.sample.worded(x, count=1, table=2, values=4, inputs=8, state=16)).get_output(0))
        first, second = execute(engine_of(network, profile=((1, 2), (2, 2), (3, 2))), np.zeros((3, 2), "f4"))
        assert (first == (1 << len(Worded.NAMES)) - 1).all() and (second == 31).all(), (first, second)
    finally:
        registry.deregister_creator(creator)


def test_version_2():
    creator = Pad2Creator()
    registry = trt.get_plugin_registry()
    assert registry.register_creator(creator, "mine") and not registry.register_creator(creator, "mine")
    wanted = np.pad(X, ((0, 0), (0, 0), (1, 1), (2, 3)), "wrap")
    try:
        network = new_network()
        parser = trt.OnnxParser(network, network.builder.logger)
        given = pad_model("PadTwo")
        assert parser.parse(given), parser.get_error(0)
        node = network[0].name
        assert np.array_equal(execute(engine_of(network), X)[0], wanted) and creator.restored
        assert creator.named == {node}                      # of the layer, not of the plugin
        network = new_network()
        x = network.add_input("x", trt.float32, (-1, 3, 4, 5))
        layer = network.add_plugin_v2([x], Pad2([2, 3, 1, 1]))
        assert layer.type == trt.LayerType.PLUGIN_V2 and isinstance(layer.plugin, Pad2) and isinstance(layer, trt.IPluginV2Layer)
        assert tuple(layer.get_output(0).shape) == (-1, 3, 6, 10)
        second = network.add_plugin_v2([layer.get_output(0)], Pad2([0, 1]))
        network.mark_output(second.get_output(0))
        engine = engine_of(network)
        assert np.array_equal(execute(engine, X)[0], np.pad(wanted, ((0, 0),) * 3 + ((0, 1),), "wrap"))
        del engine
        assert Pad2.alive == 0
    finally:
        assert registry.deregister_creator(creator)
    log = Log()
    network = new_network(log)
    assert not trt.OnnxParser(network, log).parse(pad_model("PadTwo")) and any("PadTwo" in line for line in log.lines)


def test_version_3_script():
    path = rig.FOLDER / "pad.onnx"
    path.write_bytes(pad_model("CircPadPlugin", ("N", 3, "H", "W")))
    script = rig.ROOT / "tests" / "python" / "scripts" / "python_plugin.py"
    done = subprocess.run([sys.executable, "-m", "sinter.shim", str(script), str(path), str(rig.FOLDER / "pad.engine")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


# ---- tensorrt.plugin ----

@trtp.register("sample::pool")
def pool_desc(x: trtp.TensorDesc, y: trtp.TensorDesc, k: int, scale: float = 2.0, mode: str = "max",
              keep: bool = False) -> Tuple[trtp.TensorDesc, trtp.TensorDesc]:
    out = x.like()
    out.shape_expr[-1] = trtp.cdiv(out.shape_expr[-1], k)
    return out, trtp.from_shape_expr((x.shape_expr.numel(), 2 * y.shape_expr[0] + 1), trt.int32)


@trtp.autotune("sample::pool")
def pool_tune(x: trtp.TensorDesc, y: trtp.TensorDesc, k: int, scale: float, mode: str, keep: bool,
              outputs: Tuple[trtp.TensorDesc, trtp.TensorDesc]) -> List[trtp.AutoTuneCombination]:
    return [trtp.AutoTuneCombination("FP32|FP16, FP32, FP32|FP16, INT32", "LINEAR, LINEAR, LINEAR, LINEAR", [5, 7])]


SEEN = set()


@trtp.impl("sample::pool")
def pool_impl(x: trtp.Tensor, y: trtp.Tensor, k: int, scale: float, mode: str, keep: bool, outputs: Tuple[trtp.Tensor, trtp.Tensor],
              stream: int, tactic: int) -> None:
    assert isinstance(keep, bool) and mode in ("max", "sum") and stream == 0
    SEEN.add(tactic)
    a, b = np.asarray(x), np.asarray(outputs[0])
    assert a.ctypes.data == x.data_ptr and device.holds(x.data_ptr, a.nbytes)
    for j in range(b.shape[-1]):
        part = a[..., j * k:(j + 1) * k]
        b[..., j] = (part.max(-1) if mode == "max" else part.sum(-1)) * scale
    np.asarray(outputs[1])[...] = 3 if keep else 4


def test_functions():
    network = new_network()
    x = network.add_input("x", trt.float32, (-1, 3, 4, 5))
    y = network.add_input("y", trt.float32, (6,))
    layer = network.add_plugin(trtp.op.sample.pool(x, y, k=2, mode="sum", keep=True))
    assert layer.num_outputs == 2 and tuple(layer.get_output(0).shape) == (-1, 3, 4, 3) and tuple(layer.get_output(1).shape) == (-1, 13)
    assert layer.get_output(1).dtype == trt.int32 and layer.type == trt.LayerType.PLUGIN_V3
    for i in range(2):
        network.mark_output(layer.get_output(i))
    first, second = execute(engine_of(network), X, np.zeros(6, "f4"))
    wanted = np.stack([X[..., :2].sum(-1), X[..., 2:4].sum(-1), X[..., 4]], -1) * 2
    assert np.allclose(first, wanted) and (second == 3).all() and second.shape == (120, 13) and SEEN <= {5, 7} and SEEN
    rig.raises(TypeError, trtp.op.sample.pool, x, y, says="k")
    rig.raises(AttributeError, lambda: trtp.op.sample.nothing, says="sample::nothing")
    rig.raises(ValueError, trtp.register("sample::pool"), pool_desc, says="registered already")
    rig.raises(ValueError, trtp.impl("sample::other"), pool_impl, says="trtp.register comes first")
    rig.raises(ValueError, trtp.register("noname"), pool_desc, says="NAMESPACE::NAME")
    rig.raises(ValueError, network.add_plugin, trtp.op.sample.pool(x, y, k=2), aot=True, says="trtp.aot_impl")
    # an integer type that autotune does not name
    log = Log()
    network = new_network(log)
    layer = network.add_plugin(trtp.op.sample.pool(network.add_input("x", trt.int32, (2, 4)), network.add_input("y", trt.float32, (6,)), k=2))
    network.mark_output(layer.get_output(0))
    assert engine_of(network, profile=None) is None and "does not take operands of the types" in log.lines[-1], log.lines


# ---- outputs that share an input's memory, functions that leave attributes out, kernels compiled ahead of time ----

@trtp.register("sample::add_")
def add_in_place(x: trtp.TensorDesc, delta: int) -> trtp.TensorDesc:
    return x.aliased()


@trtp.autotune("sample::add_")
def add_in_place_tune(x, outputs) -> List[trtp.AutoTuneCombination]:
    made = trtp.AutoTuneCombination()
    made.pos([0, 1], "FP32|FP16", "LINEAR*HWC")
    made.tactics([4, 9])
    return [trtp.AutoTuneCombination("INT8, INT8", "LINEAR"), made]


@trtp.impl("sample::add_")
def add_in_place_impl(x, delta: int, outputs, stream, tactic) -> None:
    assert tactic in (4, 9) and outputs[0].get_aliased() is x and outputs[0].data_ptr == x.data_ptr
    half = x.aliased((x.numel() // 2,))
    assert half.data_ptr == x.data_ptr and half.shape == (x.numel() // 2,)
    np.asarray(x)[...] += delta


@trtp.aot_impl("sample::add_")
def add_in_place_ahead(x: trtp.TensorDesc, delta: int, outputs, tactic: int) -> Tuple[str, str, trtp.KernelLaunchParams, trtp.SymExprs]:
    raise AssertionError("it is not called on the CPU")


class AddInPlace(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuildV2, trt.IPluginV3OneRuntime):
    def __init__(self):
        for base in (trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuildV2, trt.IPluginV3OneRuntime):
            base.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = "AddInPlace", "1", "", 2

    def get_capability_interface(self, kind):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[1], trt.int32]

    def get_output_shapes(self, inputs, shape_inputs, builder):
        return [inputs[1], trt.DimsExprs([builder.constant(1)])]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR

    def get_aliased_input(self, output_index):
        return 1 if output_index == 0 else -1

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        assert outputs[0] == inputs[1]
        at(inputs[1], input_desc[1])[...] += at(inputs[0], input_desc[0])
        at(outputs[1], output_desc[1])[...] = 5

    def clone(self):
        made = AddInPlace()
        made.__dict__.update(self.__dict__)
        return made


class AddInPlaceCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace, self.field_names = "AddInPlace", "1", "", trt.PluginFieldCollection()

    def create_plugin(self, name, fc, phase):
        return AddInPlace()


def test_outputs_that_share_memory():
    trt.get_plugin_registry().register_creator(AddInPlaceCreator(), "")
    log = Log()
    network = new_network(log)
    x = network.add_input("x", trt.float32, (2, 3, 4, 5))
    first = network.add_plugin(trtp.op.sample.add_(x, delta=3), aot=False).get_output(0)
    layer = network.add_plugin_v3([x, first], [], AddInPlace())
    for tensor in (first, layer.get_output(0), layer.get_output(1)):
        network.mark_output(tensor)
    given = X.copy()
    engine = engine_of(network, profile=None)
    assert engine is not None, log.lines
    added, both, five = execute(engine, given)
    assert np.array_equal(added, X + 3) and np.array_equal(both, X + 3 + X) and five == 5 and np.array_equal(given, X)
    takes = trtp.AutoTuneCombination("FP32|FP16, FP32|FP16", "LINEAR").takes
    assert takes([trt.float32, trt.float32]) and takes([trt.float16, trt.float16]) and not takes([trt.float16, trt.float32])
    rig.raises(ValueError, takes, [trt.float32], says="1 operands")
    rig.raises(ValueError, trtp.AutoTuneCombination("FP33").takes, [trt.float32], says="FP33")
    assert not trtp.AutoTuneCombination("FP32", "HWC").takes([trt.float32])
    shape = trtp.Shape((2, 3))
    shape[1] += 4
    assert shape.numel() == 14 and int(trtp.SymInt32(7)) == 7 and trtp.SymIntExprs.from_tuple([trtp.SymInt32(2), 3])[1] == 3


# ---- sizes that data decide ----

@trtp.register("sample::above")
def above_desc(x: trtp.TensorDesc) -> Tuple[trtp.TensorDesc, trtp.TensorDesc]:
    count = trtp.size_tensor(x.shape_expr[0] // 2, x.shape_expr[0])
    return trtp.from_shape_expr((2 * count.expr(), x.shape_expr[1]), x.dtype), count


@trtp.impl("sample::above")
def above_impl(x: trtp.Tensor, outputs: Tuple[trtp.Tensor, trtp.Tensor], stream: int) -> None:
    rows = np.asarray(x)[np.asarray(x)[:, 0] > 0]
    np.asarray(outputs[0])[:2 * len(rows)] = np.repeat(rows, 2, 0)
    np.asarray(outputs[1])[...] = len(rows)


class Above(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    plugin_name, plugin_version, plugin_namespace, num_outputs = "Above", "1", "", 2

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, types):
        return [types[0], trt.int32]

    def get_output_shapes(self, inputs, shape_inputs, builder):
        count = builder.declare_size_tensor(1, builder.operation(trt.DimensionOperation.FLOOR_DIV, inputs[0][0], builder.constant(2)), inputs[0][0])
        assert count.is_size_tensor() and not inputs[0][0].is_size_tensor()
        return [trt.DimsExprs([builder.operation(trt.DimensionOperation.PROD, count, builder.constant(2)), inputs[0][1]]), trt.DimsExprs(0)]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return True

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        x = at(inputs[0], input_desc[0])
        rows = x[x[:, 0] > 0]
        at(outputs[0], output_desc[0])[:2 * len(rows)] = np.repeat(rows, 2, 0)
        at(outputs[1], output_desc[1])[...] = len(rows)

    def clone(self):
        return Above()


class AboveCreator(trt.IPluginCreatorV3One):
    name, plugin_version, plugin_namespace = "Above", "1", ""

    def create_plugin(self, name, fc, phase):
        return Above()


class Allocator(trt.IOutputAllocator):
    def reallocate_output(self, tensor_name, memory, size, alignment):
        self.memory = device.alloc(max(size, 1))
        return self.memory

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)


def test_sizes_of_the_data():
    registry, creator = trt.get_plugin_registry(), AboveCreator()
    registry.register_creator(creator, "")
    for is_new in (False, True):
        network = new_network()
        x = network.add_input("x", trt.float32, (-1, 5))
        layer = network.add_plugin(trtp.op.sample.above(x)) if is_new else network.add_plugin_v3([x], [], Above())
        network.mark_output(layer.get_output(0))
        assert tuple(layer.get_output(0).shape) == (-1, 5)
        context = engine_of(network, profile=((1, 5), (4, 5), (9, 5))).create_execution_context()
        given, taken = np.random.default_rng(4).standard_normal((7, 5)).astype("f4"), Allocator()
        context.set_input_shape("x", given.shape)
        context.set_tensor_address("x", given.ctypes.data)
        assert context.set_output_allocator(layer.get_output(0).name, taken) and context.execute_async_v3(0)
        wanted = np.repeat(given[given[:, 0] > 0], 2, 0)
        assert taken.shape == wanted.shape and len(wanted)
        assert np.array_equal(at(taken.memory, trt.PluginTensorDesc(taken.shape)), wanted)
    registry.deregister_creator(creator)


@trtp.register("sample::across")
def across_desc(x: trtp.TensorDesc, outer: int) -> Tuple[trtp.TensorDesc, trtp.TensorDesc]:
    count = trtp.size_tensor(x.shape_expr[0] // 2, x.shape_expr[0])
    return trtp.from_shape_expr((outer, 2 * count.expr()), x.dtype), count


@trtp.impl("sample::across")
def across_impl(x: trtp.Tensor, outer: int, outputs: Tuple[trtp.Tensor, trtp.Tensor], stream: int) -> None:
    raise Odd("not run")


class Across(Above):
    plugin_name, outer = "Across", 1

    def get_output_shapes(self, inputs, shape_inputs, builder):
        return [trt.DimsExprs([builder.constant(self.outer), super().get_output_shapes(inputs, shape_inputs, builder)[0][0]]), trt.DimsExprs(0)]

    def clone(self):
        return Across()


class AcrossCreator(trt.IPluginCreatorV3One):
    name, plugin_version, plugin_namespace = "Across", "1", ""

    def create_plugin(self, name, fc, phase):
        return Across()


def test_sizes_of_the_data_inside():
    """Plugins write [2, N] without gaps, and N is known when they have: such a result would be read at wrong places."""
    registry, creator = trt.get_plugin_registry(), AcrossCreator()
    assert registry.register_creator(creator, "")
    for is_new, Across.outer, is_refused in ((False, 1, False), (False, 2, True), (True, 1, False), (True, 2, True)):
        log, text, engine = Log(), "", None
        network = new_network(log)
        try:
            x = network.add_input("x", trt.float32, (-1, 5))
            layer = network.add_plugin(trtp.op.sample.across(x, Across.outer)) if is_new else network.add_plugin_v3([x], [], Across())
            network.mark_output(layer.get_output(0))
            engine = engine_of(network, profile=((1, 5), (4, 5), (9, 5)))
        except Exception as e:
            text = str(e)
        text += "\n".join(log.lines)
        assert is_refused == ("output 0 has a size on axis 1 that the run decides" in text) and is_refused == (engine is None), (text, engine)
    registry.deregister_creator(creator)


# ---- what goes wrong ----

class Odd(Exception):
    pass


METHODS = ("get_output_datatype", "get_output_dimensions", "supports_format_combination", "get_workspace_size", "configure_plugin",
           "initialize", "enqueue", "clone", "num_outputs", "serialize")


def wrong(rng):
    """A plugin of version 2 one method of which does what it should not: (object, method, how)."""
    method = rng.choice(METHODS)
    how = rng.choice(["raises", "none", "text", "negative", "huge"])

    def bad(self, *_):
        if how == "raises":
            raise Odd("of no use")
        return {"none": None, "text": "text", "negative": -1, "huge": 2**40}[how]
    made = type("Wrong", (Pad2,), {method: bad if method != "num_outputs" else {"raises": 9, "none": None, "text": "t", "negative": -1, "huge": 2**40}[how],
                                   "clone": lambda self: type(self)(self.pads)} if method != "clone" else {"clone": bad})
    return made([1, 1]), method, how


def test_wrong_plugins():
    """Each mistake is reported and names the plugin; what does no harm runs."""
    rng, reported = random.Random(5), {}
    registry, creator = trt.get_plugin_registry(), Pad2Creator()
    assert registry.register_creator(creator, "mine")
    wanted = np.pad(X, ((0, 0),) * 3 + ((1, 1),), "wrap")
    try:
        for _ in range(100):
            plugin, method, how = wrong(rng)
            creator.deserialize_plugin = lambda name, raw, kind=type(plugin): kind(raw)
            log = Log()
            network = new_network(log)
            x = network.add_input("x", trt.float32, (-1, 3, 4, 5))
            try:
                layer = network.add_plugin_v2([x], plugin)
                network.mark_output(layer.get_output(0))
                engine = engine_of(network)
                got = None if engine is None else execute(engine, X)
            except Exception as e:                              # what add_plugin_v2 itself refuses
                log.lines.append(f"{type(e).__name__}: {e}: PadTwo")
                got = None
            if got is not None:
                reported[method, how] = "runs"
                assert np.array_equal(got[0], wanted) or (method, how) == ("enqueue", "none"), (method, how)
                continue
            text = "\n".join(log.lines)
            reported[method, how] = text
            assert "PadTwo" in text, (method, how, text)
            if how == "raises" and method != "num_outputs":
                assert "of no use" in text, (method, text)
    finally:
        registry.deregister_creator(creator)
    harmless = {key for key, text in reported.items() if text == "runs"}
    assert harmless <= {("configure_plugin", h) for h in ("none", "text", "negative", "huge")} | {
        ("initialize", "none"), ("enqueue", "none"), ("supports_format_combination", "text"),
        ("supports_format_combination", "negative"), ("supports_format_combination", "huge"), ("get_workspace_size", "none"),
        ("serialize", "none")}, harmless
    assert len(reported) > 25 and len(harmless) < len(reported) / 2


METHODS_3 = ("get_output_data_types", "get_output_shapes", "supports_format_combination", "get_workspace_size", "get_valid_tactics",
             "on_shape_change", "configure_plugin", "attach_to_context", "enqueue", "clone", "get_fields_to_serialize",
             "get_capability_interface", "num_outputs", "set_tactic")


class Quick(trt.IPluginV3, trt.IPluginV3QuickCore, trt.IPluginV3QuickBuild, trt.IPluginV3QuickRuntime):
    def __init__(self):
        for base in (trt.IPluginV3, trt.IPluginV3QuickCore, trt.IPluginV3QuickBuild, trt.IPluginV3QuickRuntime):
            base.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = "Quick", "1", ""

    def get_capability_interface(self, kind):
        return self

    def clone(self):
        return Quick()


def test_quick_classes_say_what_to_use():
    network = trt.Builder(Log()).create_network()
    rig.raises(NotImplementedError, network.add_plugin_v3, [network.add_input("x", trt.float32, (2,))], [], Quick(), says="tensorrt.plugin")


def test_wrong_plugins_of_version_3():
    """The same for version 3, of which one method misbehaves. The engine is not loaded by another process: no creator is wanted."""
    rng, met = random.Random(6), {}
    for _ in range(120):
        method, how = rng.choice(METHODS_3), rng.choice(["raises", "none", "text", "negative", "huge"])
        result = {"raises": 9, "none": None, "text": "text", "negative": -1, "huge": 2**40}[how]

        def bad(self, *_, how=how, result=result):
            if how == "raises":
                raise Odd("of no use")
            return result
        body = {method: result if method == "num_outputs" else bad}
        made = type("Wrong", (Above,), dict({"clone": lambda self: type(self)()}, **body))
        creator = type("Creator", (AboveCreator,), {"create_plugin": lambda self, name, fc, phase, kind=made: kind()})()
        assert trt.get_plugin_registry().register_creator(creator, "")
        log = Log()
        network = new_network(log)
        x = network.add_input("x", trt.float32, (7, 5))
        try:
            layer = network.add_plugin_v3([x], [], made())
            network.mark_output(layer.get_output(0))
            engine = engine_of(network, profile=None)
            context = None if engine is None else engine.create_execution_context()
            done = context is not None and context.set_output_allocator(layer.get_output(0).name, Allocator())
            given = np.ones((7, 5), "f4")
            done = done and context.set_tensor_address("x", given.ctypes.data) is not False and context.execute_async_v3(0)
        except Exception as e:
            log.lines.append(f"Above: {type(e).__name__}: {e}")
            done = False
        finally:
            trt.get_plugin_registry().deregister_creator(creator)
        text = "\n".join(log.lines)
        met[method, how] = "runs" if done else text
        assert done or "Above" in text, (method, how, text)
        assert done or how != "raises" or method == "num_outputs" or "of no use" in text, (method, text)
    # what nobody looks at, or what means the usual
    harmless = {m for (m, how), text in met.items() if text == "runs"}
    assert harmless <= {"configure_plugin", "on_shape_change", "supports_format_combination", "get_workspace_size", "get_valid_tactics", "enqueue",
                        "attach_to_context", "get_fields_to_serialize", "set_tactic"}, harmless
    assert len(met) > 40


rig.main(__name__)
