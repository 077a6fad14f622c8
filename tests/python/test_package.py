# SPDX-License-Identifier: Apache-2.0
"""The package's calls: builds and their options, engines, contexts, states, refits, reports, errors, callbacks."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import rig
import sinter
from onnx_bytes import data, num
from random_models import initializer, integer, model, node, value

SEVEN = np.load(rig.SEVEN)
ANY_N = {"N": (1, 1, 8)}


def digits(**options):
    return sinter.build(rig.DIGITS, profiles=ANY_N, tune="off", **options)


def add_model(weight):
    """y = x + w, x[N,4]."""
    return model(data(2, "g") + data(11, value("x", "f32", ["N", 4])) + data(12, value("y", "f32", ["N", 4])) +
                 initializer("w", weight) + node("Add", ["x", "w"], ["y"]))


def cache_model():
    """y = present = past with new rows of x appended."""
    return model(data(2, "g") + data(11, value("x", "f32", [1, "S", 4])) + data(11, value("past", "f32", [1, "P", 4])) +
                 data(12, value("y", "f32", [1, "S", 4])) + data(12, value("present", "f32", [1, "T", 4])) +
                 node("Concat", ["past", "x"], ["present"], integer("axis", 1)) + node("Relu", ["x"], ["y"]))


def test_files_bytes_and_plans_are_one():
    plan = digits()
    path = rig.FOLDER / "digits.sinter"
    plan.save(path)
    assert path.read_bytes() == bytes(plan) == bytes(plan.view) and len(plan) == path.stat().st_size
    report = sinter.build_save(rig.DIGITS, rig.FOLDER / "saved.sinter", profiles=ANY_N, tune="off")
    assert (rig.FOLDER / "saved.sinter").read_bytes() == bytes(plan) and report["size"] == len(plan)
    assert sinter.build(rig.DIGITS.read_bytes(), profiles=ANY_N, tune="off").load().inputs == plan.load().inputs
    results = [sinter.load(source).context().run({"image": SEVEN})["scores"]
               for source in (path, str(path), plan, bytes(plan), bytearray(bytes(plan)), memoryview(bytes(plan)))]
    assert all(np.array_equal(r, results[0]) for r in results) and results[0].argmax() == 7
    engine = sinter.load(path)
    engine.save(rig.FOLDER / "again.sinter")
    assert (rig.FOLDER / "again.sinter").read_bytes() == bytes(plan)
    rig.raises(sinter.InvalidArgument, plan.save, rig.FOLDER)
    assert plan.report["total_s"] > 0 and plan.report["cache_warning"] == ""


def test_profiles():
    plan = sinter.build(rig.DIGITS, profiles=[{"N": 1}, {"N": (2, 4, 8)}, {"image": ((9, 1, 28, 28),) * 3}], tune="off")
    engine = plan.load()
    assert engine.profile_count == 3
    assert [engine.io(p)[0].min[0] for p in range(3)] == [1, 2, 9] and engine.io(1)[0].max == (8, 1, 28, 28)
    assert engine.inputs[0].shape == (-1, 1, 28, 28) and engine.inputs[0].dim_text == ("N", "1", "28", "28")
    batch = np.repeat(SEVEN, 4, axis=0)
    assert engine.context(profile=1).run(image=batch)["scores"].argmax(1).tolist() == [7] * 4
    rig.raises(sinter.InvalidArgument, engine.context, says="profile", profile=3)
    rig.raises(sinter.InvalidArgument, engine.context().run, {"image": batch}, says="permits 1")
    rig.raises(ValueError, sinter.build, rig.DIGITS, says="no named size 'B'", profiles={"B": 1})
    rig.raises(ValueError, sinter.build, rig.DIGITS, says="rank is 4", profiles={"image": (1, 2)})


def test_text():
    """Text goes in as it is; a profile need not know how wide it is."""
    def text(name, dims):
        sizes = b"".join(data(1, num(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
        return data(11, data(1, name) + data(2, data(1, num(1, 8) + data(2, sizes))))
    same = model(data(2, "g") + text("x", ["N", 2]) + text("y", [2]) + data(12, value("same", "bool", ["N", 2])) +
                 node("Equal", ["x", "y"], ["same"]))
    x, y = np.array([["a", "long"], ["ä", "longer"], ["", "long"]], object), ["ä", "long"]
    wanted = [[False, True], [True, False], [False, True]]
    for profiles in ({"N": (1, 2, 3)}, {"x": ((1, 2), (2, 2), (3, 2))}, [{"x": (1, 2)}, {"x": ((2, 2), (3, 2), (3, 2))}],
                     {"x": ((1, 2, 1), (2, 2, 4), (3, 2, 6)), "y": (2, 8)}):
        engine = sinter.build(same, profiles=profiles, tune="off").load()
        assert engine.context(profile=engine.profile_count - 1).run(x=x, y=y)["same"].tolist() == wanted
        assert engine.inputs[0].max[2] == (6 if "y" in profiles else 256)
    for array in (x.astype("U"), np.char.encode(x.astype("U"), "utf-8")):
        assert sinter.build(same, profiles={"N": (1, 2, 3)}).load().context().run(x=array, y=y)["same"].tolist() == wanted
    rig.raises(ValueError, sinter.build, same, says="rank is 3", profiles={"x": (1,)})


def test_maps():
    """A map goes in as a dict, or as its keys and values."""
    def taken(kind, op, attrs, given, result="f32"):
        entry = data(1, "x") + data(2, data(5, num(1, kind) + data(2, data(1, num(1, 1)))))
        words = data(1, data(1, "x") + data(2, "y") + data(4, op) + data(7, "ai.onnx.ml") + attrs)
        made = num(1, 8) + data(7, data(2, "g") + data(11, entry) + data(12, value("y", result, [1, "M"])) + words)
        engine = sinter.build(made + data(8, num(2, 17)) + data(8, data(1, "ai.onnx.ml") + num(2, 3)), tune="off").load()
        assert [io.name for io in engine.inputs] == ["x.keys", "x.values"]
        return engine.context().run({"x": given})["y"].tolist()

    def attribute(name, field, kind, items):
        return data(5, data(1, name) + b"".join(data(field, i) if isinstance(i, str) else num(field, i) for i in items) + num(20, kind))
    words, integers = attribute("string_vocabulary", 9, 8, ["b", "a", "long"]), attribute("int64_vocabulary", 8, 7, [5, -2])
    assert taken(8, "DictVectorizer", words, {"a": 2, "b": 3.5, "z": 9}) == [[3.5, 2, 0]]
    assert taken(8, "DictVectorizer", words, {"long": 2}) == [[0, 0, 2]]
    assert taken(7, "DictVectorizer", integers, {7: 1, -2: 4, 5: 0.5}) == [[0.5, 4]]
    assert taken(7, "CastMap", b"", {7: 1, -2: 4, 5: 0.5}) == [[4, 0.5, 1]]
    sparse = data(5, data(1, "map_form") + data(4, "SPARSE") + num(20, 3)) + data(5, data(1, "max_map") + num(3, 4) + num(20, 2)) + \
        data(5, data(1, "cast_to") + data(4, "TO_INT64") + num(20, 3))
    assert taken(7, "CastMap", sparse, {7: 1, 2: 4.5, 0: 9}, "i64") == [[9, 0, 4, 0]]
    rig.raises(sinter.Unsupported, taken, 7, "CastMap", data(5, data(1, "cast_to") + data(4, "TO_STRING") + num(20, 3)), {1: 1})


def test_options():
    rig.raises(TypeError, digits, says="no option 'tone'", tone="off")
    rig.raises(sinter.InvalidArgument, sinter.build, rig.DIGITS, says="off|fast|full", tune="slow")
    for allow in ("fp16,bf16", ["fp16", "bf16"], 3):
        digits(allow=allow, lower="always")
    assert "refittable" in sinter.build.__doc__ and "trust_code" in sinter.load.__doc__ and "timing" in sinter.Context.__doc__
    rig.raises(sinter.NoMemory, digits, limits={"memory_max": 70000})
    rig.raises(TypeError, digits, says="no limit", limits={"memory": 1})
    cache = rig.FOLDER / "timings.txt"
    first = sinter.build(rig.DIGITS, tune="full", timing_cache=cache)   # fast need not measure so small a model
    assert first.report["measured"] > 0
    assert sinter.build(rig.DIGITS, tune="full", timing_cache=cache, cache_only=True).report["measured"] == 0


def test_values_samples_and_equal():
    reshape = model(data(2, "g") + data(11, value("x", "f32", [2, 3])) + data(11, value("s", "i64", [2])) +
                    data(12, value("y", "f32", ["a", "b"])) + node("Reshape", ["x", "s"], ["y"]))
    engine = sinter.build(reshape, values={"s": np.array([3, 2])}, tune="off").load()
    assert engine.outputs[0].shape == (3, 2)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert np.array_equal(engine.context().run(x=x, s=np.array([3, 2]))["y"], x.reshape(3, 2))
    rig.raises(sinter.Error, engine.context().run, x=x, s=np.array([2, 3]))
    plan = digits(allow="int8", samples=[{"image": SEVEN}, {"image": SEVEN * 0.5}])
    assert plan.load().context().run(image=SEVEN)["scores"].argmax() == 7


def test_state():
    engine = sinter.build(cache_model(), state={"past": "present"}, capacity=8, profiles={"S": (1, 1, 4)},
                          tune="off").load()
    assert [i.name for i in engine.inputs] == ["x"]
    context = engine.context()
    assert context.state.capacity == 8 and context.state.rows == 0
    for length in (1, 4, 2):
        context.run(x=np.ones((1, length, 4), "f4"))
    assert context.state.rows == 7
    rig.raises(sinter.InvalidArgument, context.run, x=np.ones((1, 2, 4), "f4"))
    context.set_rows(3)
    assert context.state.rows == 3
    context.reset_state()
    assert context.state.rows == 0 and context.state.bytes > 0
    rig.raises(sinter.InvalidArgument, context.set_rows, 9)


def test_refit():
    first, second = np.arange(4, dtype="f4"), np.arange(4, dtype="f4") * 10
    plan = sinter.build(add_model(first), profiles=ANY_N, tune="off", refittable=True)
    engine = plan.load()
    assert [(w.name, w.dtype, w.size, w.is_fixed) for w in engine.weights()] == [("w", sinter.Dtype.F32, 16, False)]
    x = np.ones((2, 4), "f4")
    assert np.array_equal(engine.refit({"w": second}).load().context().run([x])["y"], x + second)
    assert np.array_equal(engine.context().run([x])["y"], x + first)
    path = rig.FOLDER / "second.onnx"
    path.write_bytes(add_model(second))
    stripped = engine.strip()
    assert np.array_equal(sinter.load(stripped, no_device=True).refit(path).load().context().run([x])["y"], x + second)
    rig.raises(sinter.InvalidArgument, engine.refit, {"v": second}, says="v")
    rig.raises(sinter.InvalidArgument, engine.refit, {"w": second[:3]}, says="w")


def test_errors():
    failure = rig.raises(sinter.FileError, sinter.load, "/nowhere.sinter")
    assert isinstance(failure, OSError) and failure.status == sinter.Status.IO
    failure = rig.raises(sinter.InvalidModel, sinter.build, b"no model at all")
    assert failure.causes and all(len(c) == 2 for c in failure.causes) and isinstance(failure, ValueError)
    assert failure.causes[0][1].endswith(tuple("0123456789"))
    unknown = model(data(2, "g") + data(11, value("x", "f32", [1])) + data(12, value("y", "f32", [1])) + node("Frobnicate", ["x"], ["y"]))
    rig.raises(sinter.Unsupported, sinter.build, unknown, says="Frobnicate")
    rig.raises(sinter.InvalidModel, sinter.load, bytes(digits())[:1000])
    for begin, words in ((b"ftrt", "an engine of TensorRT"), (b"PK\3\4", "export the model to ONNX"), (b"\x20\0\0\0{", "JSON"),
                         (rig.DIGITS.read_bytes(), "an ONNX model: build an engine"), (b"any", "the engine's mark")):
        rig.raises(sinter.InvalidModel, sinter.load, begin + bytes(200), says=words)
    context = digits().load().context()
    rig.raises(sinter.InvalidArgument, context.run, says="image")
    rig.raises(KeyError, context.run, {"picture": SEVEN}, says="picture")
    rig.raises(KeyError, context.run, {"image": SEVEN}, {"score": SEVEN}, says="score")
    rig.raises(TypeError, context.run, {"image": SEVEN.astype("f8")}, says="f64")
    rig.raises(TypeError, context.run, {"image": "seven"}, says="str")
    rig.raises(TypeError, context.run, [SEVEN, SEVEN], says="2 inputs")
    rig.raises(sinter.InvalidArgument, context.run, {"image": SEVEN}, {"scores": np.zeros(3, "f4")})
    rig.raises(ValueError, context.run, {"image": SEVEN}, {"scores": np.zeros((10, 2), "f4")[:, 0]}, says="row-major")
    rig.raises(TypeError, context.run, {"image": SEVEN}, {"scores": np.zeros(10, "f8")}, says="f64")
    assert context.run({"image": SEVEN}, {})["scores"].argmax() == 7          # and it can be used again
    context.close()
    rig.raises(ValueError, context.run, says="closed")


def test_callbacks():
    phases, stages, lines = set(), [], []
    digits(progress=lambda phase, done: phases.add(phase), stage=lambda name, text: stages.append((name, text)),
           log=lambda topic, line: lines.append((topic, line)), log_topics="opt,plan")
    assert phases and len(stages) > 5 and "conv" in stages[0][1] and {t for t, _ in lines} <= {"opt", "plan"} and lines
    rig.raises(sinter.Cancelled, digits, progress=lambda phase, done: True)

    def interrupt(phase, done):
        raise KeyboardInterrupt
    rig.raises(KeyboardInterrupt, digits, progress=interrupt)
    rig.raises(ZeroDivisionError, digits, stage=lambda name, text: 1 / 0)
    rig.raises(sinter.InvalidArgument, digits, log=print, log_topics="nonsense")


def test_outputs_of_the_caller():
    engine = digits().load()
    context, batch = engine.context(), np.repeat(SEVEN, 2, axis=0)
    room = np.zeros((8, 10), "f4")
    found = context.run({"image": batch}, {"scores": room})["scores"]
    assert found.shape == (2, 10) and np.shares_memory(found, room) and (room[:2] == found).all() and not room[2:].any()
    context.set_output("scores", room)
    assert np.shares_memory(context.run()["scores"], room)                      # stays set
    assert not np.shares_memory(context.run(outputs={})["scores"], room)        # until it is said otherwise
    mine = sinter.Tensor(bytearray(80), "f32", (2, 10))
    assert context.run(outputs={"scores": mine})["scores"] is mine
    assert np.array_equal(mine.numpy(), found)
    inner = context.output("scores")
    assert inner.shape == (2, 10)


def test_tensors():
    a = np.arange(6, dtype="i4").reshape(2, 3)
    t = sinter.Tensor(a)
    assert t.shape == (2, 3) and t.dtype == sinter.Dtype.I32 and len(t) == 2 and t.nbytes == 24 and t.ndim == 2
    assert np.shares_memory(t.numpy(), a) and np.shares_memory(np.from_dlpack(t), a) and np.shares_memory(np.asarray(t), a)
    assert t.memoryview().tolist() == a.tolist() and t.tobytes() == a.tobytes()
    t.copy_from(a * 2)
    assert a[1, 2] == 10
    half = sinter.Tensor(np.array([0x3f80, 0x4000], "u2"), "bf16")
    assert half.dtype == sinter.Dtype.BF16 and half.numpy().dtype == np.uint16
    four = sinter.Tensor(np.array([0x21, 0x03], "u1"), "i4", (3,))
    assert four.nbytes == 2 and four.numpy().tolist() == [0x21, 3]
    rig.raises(TypeError, sinter.Tensor, a, "f32")
    rig.raises(ValueError, sinter.Tensor, bytes(3), "f32", (2,))
    rig.raises(TypeError, sinter.Tensor, np.array(["a"]))
    assert sinter.Tensor(np.array(3.0)).shape == () and sinter.Tensor([1.0, 2.0], "f32").numpy().tolist() == [1, 2]
    address = sinter.Tensor(a.ctypes.data, "i32", (6,))
    assert address.numpy().tolist() == a.reshape(-1).tolist()
    rig.raises(AttributeError, lambda: t.__cuda_array_interface__)
    sinter.write(rig.FOLDER / "t.npy", t)
    assert np.array_equal(np.load(rig.FOLDER / "t.npy"), a) and np.array_equal(sinter.read(rig.FOLDER / "t.npy").numpy(), a)
    engine = digits().load()
    for place in ("device", "pinned", "host"):
        moved = engine.put(SEVEN, place)
        assert np.array_equal(moved.numpy(), SEVEN) and moved.data % 64 == 0
        assert engine.context().run(image=moved)["scores"].argmax() == 7
    assert not engine.empty((3,), "f16").numpy().any()


def test_lifetimes():
    """Nothing is freed too early, and nothing stays."""
    engine = digits().load()
    context = engine.context()
    context.set_input("image", SEVEN.copy())                # the context keeps the array
    gc.collect()
    inner = context.output
    assert context.run()["scores"].argmax() == 7
    result = inner("scores")
    del engine, context, inner
    gc.collect()
    assert result.numpy().argmax() == 7                     # a result keeps its context
    held = weakref.ref(result.owner)
    del result
    gc.collect()
    assert held() is None
    shared = np.from_dlpack(sinter.Tensor(np.ones(1000, "f4")))
    gc.collect()
    assert shared.sum() == 1000
    from sinter import _dlpack
    del shared
    sinter.Tensor(np.ones(3)).__dlpack__()                  # a capsule that nobody takes
    gc.collect()
    assert not _dlpack.exported
    view = digits().view
    gc.collect()
    assert len(sinter.load(view).inputs) == 1
    memory = sinter.Tensor(np.zeros(4)).numpy()
    gc.collect()
    assert memory.sum() == 0


def test_times_and_reports():
    engine = digits().load()
    context = engine.context(timing=True, phases=True)
    rig.raises(sinter.InvalidArgument, lambda: context.run_time)
    for _ in range(3):
        context.run(image=SEVEN)
    assert context.steps and all(s.runs >= 3 and s.total_ns >= s.min_ns for s in context.steps)
    assert context.run_time.compute_ns > 0 and context.memory > 0
    assert engine.inspect() == rig_inspect(engine)
    assert engine.info == engine.inspect("dict") and engine.info["io"][0]["name"] == "image"
    assert "<table>" in engine._repr_html_() and "image" in repr(engine) and "cpu_conv" in engine._repr_html_()
    assert sinter.machine() and sinter.operators()
    assert [(i.name, i.dim_names[0]) for i in sinter.model_inputs(rig.DIGITS)] == [("image", "N"), ("scores", "N")]
    assert sinter.model_inputs(rig.DIGITS.read_bytes()) == sinter.model_inputs(rig.DIGITS)


def rig_inspect(engine):
    path = rig.FOLDER / "inspected.sinter"
    engine.save(path)
    return rig.command("inspect", path)


def test_eight_at_once():
    """Contexts of eight threads, and one context that they share, give what one thread gets."""
    engine = digits().load(threads=1)
    rng = np.random.default_rng(3)
    images = [rng.random((1 + i % 8, 1, 28, 28), "f4") for i in range(8)]
    wanted = [engine.context().run(image=image)["scores"] for image in images]
    shared, failures = engine.context(), []

    def work(index):
        try:
            mine = engine.context()
            for _ in range(20):
                assert np.array_equal(mine.run(image=images[index])["scores"], wanted[index])
                assert np.array_equal(shared.run(image=images[index])["scores"], wanted[index])
            futures = [mine.run_async(image=image) for image in images]
            assert all(np.array_equal(f.result()["scores"], w) for f, w in zip(futures, wanted))
            sinter.build(rig.DIGITS, tune="off")
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_without_numpy():
    program = """
import sys
sys.modules["numpy"] = None
import array, sinter
engine = sinter.load(sys.argv[1])
image = array.array("f", open(sys.argv[2], "rb").read()[-28 * 28 * 4:])
tensor = sinter.Tensor(memoryview(image).cast("B").cast("f", (1, 1, 28, 28)))
scores = engine.context().run(image=tensor)["scores"]
assert isinstance(scores, sinter.Tensor) and scores.shape == (1, 10)
row = scores.memoryview().tolist()[0]
assert max(row) == row[7]
out = sinter.Tensor(bytearray(40), "f32", (1, 10))
assert engine.context().run({"image": tensor}, {"scores": out})["scores"] is out and out.tobytes() == scores.tobytes()
"""
    path = rig.FOLDER / "bare.sinter"
    digits().save(path)
    subprocess.run([sys.executable, "-c", program, str(path), str(rig.SEVEN)], check=True)


def test_library_is_found():
    def found(**variables):
        environment = {k: v for k, v in os.environ.items() if k != "SINTER_LIBRARY"}
        environment.update(variables)
        return subprocess.run([sys.executable, "-c", "import sinter; print(sinter.library_path)"], env=environment,
                              capture_output=True, text=True)
    assert found(SINTER_LIBRARY=str(rig.LIBRARY)).stdout.strip() == str(rig.LIBRARY)
    assert "SINTER_LIBRARY" in found(SINTER_LIBRARY="/nowhere.so").stderr
    other = next(pathlib.Path("/").glob("lib*/x86_64-linux-gnu/libm.so.6"), None)
    if other:
        assert "sinter_version" in found(SINTER_LIBRARY=str(other)).stderr
    if rig.LIBRARY.parent == rig.ROOT / "build":
        assert os.path.samefile(found().stdout.strip(), rig.LIBRARY)


def test_addresses_of_functions_stay_typed():
    from sinter import _library
    assert _library.lib.sinter_tensor_size.restype is ctypes.c_size_t
    assert pathlib.Path(sinter.__file__).with_name("py.typed").exists() and num


rig.main(__name__)
