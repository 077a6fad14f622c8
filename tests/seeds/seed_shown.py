# SPDX-License-Identifier: Apache-2.0
"""Diagrams and listings of the seeds: what each shows is looked up in what sinter does."""
import json
import pathlib
import re

# block: what is checked
TEXT = {
    "0_00": "ONNX to engine file to results, each stage by its command",
    "0_04": "scales of a calibration cache are threshold / 127; 8-bit numbers of QuantizeLinear are as the formula has them",
    "2_00": "the model, the engine and a run of it",
    "2_06": "the file's models and tensor names serve a build and a run",
    "2_07": "the report names merged layers, chosen kernels and types",
    "2_08": "an image is resized by one model, and its result is the input of an engine",
    "2_09": "weights in fp16 need half, in int8 a quarter of the bytes; errors are in that order",
    "3_00": "each box has a header or a module of sinter",
    "3_01": "the umbrella header includes all others, each of which compiles alone",
    "3_08": "the steps in this order, by the names of C++ (seeds.cpp)",
    "3_09": "the steps in this order, by the names of C++ (seeds.cpp)",
    "3_10": "the steps in this order, by the names of C++ (seeds.cpp)",
    "3_11": "two inputs, run as one batch, give the results of two runs",
    "4_09": "each number of the listing is in sinter's JSON reports",
}
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(number, text, folder, sinter):
    return globals()[f"show_{number}"](text, folder, sinter)


def build(sinter, folder, *options, model="model.onnx", out="model.engine"):
    return sinter("build", model, "-o", out, "--tune", "off", *options, folder=folder)


def output_of(sinter, folder, model, *options):
    """The numbers of the output of a run."""
    import onnx_bytes as ob
    ob.state[0] = 5
    ob.write_npy(folder / "in.npy", [1, 3, 224, 224], ob.numbers(3 * 224 * 224))
    sinter("run", model, "--input", f"input={folder / 'in.npy'}", "--output-names", "--output-dir", folder / "saved", *options, folder=folder)
    return read_npy(folder / "saved" / "output.npy")


def read_npy(path):
    import struct
    data = path.read_bytes()
    at = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - at) // 4}f", data[at:]))


def json_of(sinter, folder, model="model.engine", *options):
    return json.loads(sinter("inspect", model, "--json", *options, folder=folder))["engine"]


def show_0_00(text, folder, sinter):
    assert text.index("ONNX Export") < text.index("Builder") < text.index(".engine file") < text.index("Runtime")
    build(sinter, folder)
    assert len(output_of(sinter, folder, "model.engine")) == 4


def show_2_00(text, folder, sinter):
    assert text.index("model.onnx") < text.index("TRT Engine")
    build(sinter, folder)
    assert len(output_of(sinter, folder, "model.engine")) == 4


def show_0_04(text, folder, sinter):
    import struct
    assert "scale = 127 / threshold" in text and "round(fp32_value × scale)" in text
    import onnx_bytes as ob
    ob.write_npy(folder / "in.npy", [1, 3, 224, 224], ob.numbers(3 * 224 * 224, 0.7))
    sinter("calibrate", "model.onnx", "--data", f"input={folder / 'in.npy'}", "--method", "minmax", "-o", "new.cache", folder=folder)
    scale = struct.unpack(">f", bytes.fromhex(re.search(r"^input: (\w+)", (folder / "new.cache").read_text(), re.M).group(1)))[0]
    threshold = max(map(abs, read_npy(folder / "in.npy")))
    assert abs(1 / scale - 127 / threshold) < 1e-3 * 127 / threshold


def show_2_06(text, folder, sinter):
    found = dict(re.findall(r"^\s+(\w+): (.+)$", text, re.M))
    names = {k: json.loads(v) for k, v in found.items() if v.startswith(("[", '"'))}
    model, engine = (folder / pathlib.Path(names[k]).name for k in ("model_file_path", "engine_file_path"))
    (folder / "model.onnx").rename(model)
    build(sinter, folder, model=model, out=engine)
    seen = [v["name"] for v in json_of(sinter, folder, engine)["io"]]
    assert seen == names["input_binding_names"] + names["output_binding_names"], seen


def write_product(folder):
    """product.onnx: a product of 256 x 256, whose weights decide the size of an engine."""
    import onnx_bytes as ob
    graph = ob.node("MatMul", ["x", "w"], "output") + ob.tensor("w", ob.FLOAT, [256, 256], ob.numbers(65536, 0.1))
    ob.write_model(folder / "product.onnx", graph + ob.data(11, ob.value("x", [8, 256])) + ob.data(12, ob.value("output", [8, 256])))


def show_2_07(text, folder, sinter):
    assert all(word in text for word in ("Fusion", "Auto-Tune", "Calib"))
    sinter("build", "model.onnx", "-o", "model.engine", "--tune", "fast", folder=folder)
    steps = json_of(sinter, folder)["profiles"][0]["steps"]
    assert any("conv" in s["problem"] and "relu" in s["problem"] for s in steps), steps
    assert all(s["kernel"] for s in steps)
    write_product(folder)
    build(sinter, folder, "--allow", "int8", "--lower", "always", "--budget", "1", model="product.onnx")
    assert any("i8" in s["problem"] for s in json_of(sinter, folder)["profiles"][0]["steps"])


def show_2_08(text, folder, sinter):
    import onnx_bytes as ob
    assert text.index("Camera") < text.index("TensorRT Node") < text.index("Detection")
    sizes = ob.tensor("sizes", ob.I64, [4], [1, 3, 224, 224])
    graph = ob.node("Resize", ["camera", "", "", "sizes"], "image") + sizes
    ob.write_model(folder / "resize.onnx", graph + ob.data(11, ob.value("camera", [1, 3, 56, 56])) +
                   ob.data(12, ob.value("image", [1, 3, 224, 224])))
    ob.write_npy(folder / "camera.npy", [1, 3, 56, 56], ob.numbers(3 * 56 * 56))
    sinter("run", "resize.onnx", "--input", f"camera={folder / 'camera.npy'}", "--output-names", "--output-dir", folder / "resized", folder=folder)
    build(sinter, folder)
    sinter("run", "model.engine", "--input", f"input={folder / 'resized' / 'image.npy'}", "--output-names", "--output-dir", folder / "out", folder=folder)
    assert len(read_npy(folder / "out" / "output.npy")) == 4


def show_2_09(text, folder, sinter):
    import onnx_bytes as ob
    write_product(folder)
    ob.write_npy(folder / "x.npy", [8, 256], ob.numbers(2048))
    sizes, results = [], []
    for allow in ("", "fp16", "int8"):
        options = ("--allow", allow, "--lower", "always", "--budget", "1") if allow else ()
        # Sizes are those of a GPU, which computes with fp16; results are the CPU's.
        build(sinter, folder, *options, "--device", "cuda:sm_90a", "--no-code", model="product.onnx", out="gpu.engine")
        sizes.append(json_of(sinter, folder, "gpu.engine")["weight_bytes"])
        build(sinter, folder, *options, model="product.onnx", out=f"{allow}.engine")
        sinter("run", f"{allow}.engine", "--input", f"x={folder / 'x.npy'}", "--output-names", "--output-dir", folder / f"out{allow}", folder=folder)
        results.append(read_npy(folder / f"out{allow}" / "output.npy"))
    off = [max(abs(a - b) for a, b in zip(results[0], r)) for r in results]
    assert 0.45 < sizes[1] / sizes[0] < 0.6 and 0.2 < sizes[2] / sizes[0] < 0.35, sizes
    assert 0 == off[0] < off[1] < off[2] < 0.1, off


def show_3_00(text, folder, sinter):
    boxes = {"Python API": "python/sinter/__init__.py", "C++ Public API": "include/sinter/sinter.hpp", "Builder": "include/sinter/build.h",
             "Stream": "include/sinter/run.h", "InferenceEngine": "include/sinter/engine.h", "Converter": "include/sinter/simplify.h",
             "Memory": "src/plan/memory.c", "Graph": "src/cuda/segment.c"}
    for box, file in boxes.items():
        assert box in text, f"{box} is not in the diagram"
        assert (ROOT / file).exists() or file.startswith("src/"), f"{box}: {file} is not there"


def show_3_01(text, folder, sinter):
    assert "(umbrella)" in text
    headers = {h.name for h in (ROOT / "include/sinter").glob("*.h")} - {"sinter.h"}
    included = set(re.findall(r'#include "(\w+\.h)"', (ROOT / "include/sinter/sinter.h").read_text()))
    assert headers == included, headers ^ included


def in_order(text, folder, sinter):
    """The calls of the diagram are calls of seeds.cpp and of the compatible headers."""
    names = set(re.findall(r"\b(createInferBuilder|createNetworkV2|createParser|createBuilderConfig|buildSerializedNetwork|setTensorAddress|"
                           r"enqueueV3|cudaGraphInstantiate|cudaGraphLaunch|cudaSetDevice|beginCapture|endCapture|instantiate)\b", text))
    assert names, "no calls"
    spelled = {"beginCapture": "cudaStreamBeginCapture", "endCapture": "cudaStreamEndCapture", "instantiate": "cudaGraphInstantiate"}
    sources = "".join(f.read_text() for f in sorted((ROOT / "include/sinter/compat").rglob("*.h")))
    for name in names:
        assert spelled.get(name, name) + "(" in sources, name


show_3_08 = show_3_09 = show_3_10 = in_order


def show_3_11(text, folder, sinter):
    import onnx_bytes as ob
    import test_seeds
    assert "concatenate x1, x2" in text and "slice outputs" in text
    test_seeds.write_model(folder / "any.onnx", "N")
    one, two = ob.numbers(3 * 224 * 224), ob.numbers(3 * 224 * 224)
    results = []
    for name, batch, values in (("one", 1, one), ("two", 1, two), ("both", 2, one + two)):
        ob.write_npy(folder / f"{name}.npy", [batch, 3, 224, 224], values)
        sinter("run", "any.onnx", "--input", f"input={folder / name}.npy", "--output-names", "--output-dir", folder / f"out_{name}", folder=folder)
        results.append(read_npy(folder / f"out_{name}" / "output.npy"))
    assert max(abs(a - b) for a, b in zip(results[0] + results[1], results[2])) < 1e-5


def show_4_09(text, folder, sinter):
    listing = json.loads(text)
    assert set(listing["performance"]) == {"build_time_s", "engine_size_mb", "estimated_latency_ms"}
    build(sinter, folder)
    info = json_of(sinter, folder)
    assert info["file_bytes"] == (folder / "model.engine").stat().st_size
    assert len(info["profiles"][0]["steps"]) < 4, "layers are merged"
    bench = json.loads(sinter("bench", "model.engine", "--iterations", "3", "--warmup", "0", "--json", folder=folder))
    assert bench
