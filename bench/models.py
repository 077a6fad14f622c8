# SPDX-License-Identifier: Apache-2.0
"""Models to time: where they lie, the inputs to give them, and how close two results must be."""
import json
import math
import pathlib
import re

import numpy as np
import onnx

# The set that the project is measured by: folder -> the case whose inputs are used.
DEFAULT_SET = {
    "resnet50_ts": "test_data",
    "mobilenet_v2_ts": "test_data",
    "efficientnet_b0": "test_data",
    "vit_b_16": "test_data",
    "bert_base_ts": "test_data_1",  # 1 x 128 tokens
    "yolov5s": "test_data",
}
# The same networks with weights and activations of 8 bits, as a quantiser writes them: QuantizeLinear and DequantizeLinear.
QDQ_SET = {"resnet50_qdq": "test_data", "mobilenet_v2_qdq": "test_data", "bert_base_qdq": "test_data_1"}
SETS = {"fp32": DEFAULT_SET, "qdq": QDQ_SET, "all": {**DEFAULT_SET, **QDQ_SET}}
RELAXED = {"atol": math.inf, "nrms": 0.05}    # where both round to 16 bits, or one does
DEFAULT_TOLERANCE = {"rtol": 1e-3, "atol": 1e-5, "nrms": 1e-4}


class ModelError(Exception):
    pass


def numbered(folder, kind):
    found = {}
    for path in folder.glob(f"{kind}_*.npy"):
        match = re.fullmatch(rf"{kind}_(\d+)\.npy", path.name)
        if match:
            found[int(match[1])] = np.load(path)
    return dict(sorted(found.items()))


class Model:
    """`spec`: FOLDER, FOLDER:CASE or FILE.onnx. `shapes`: dims of free inputs, name -> list."""

    def __init__(self, spec, shapes=None):
        text, case = str(spec), None
        if not pathlib.Path(text).exists() and ":" in text:
            text, case = text.rsplit(":", 1)
        path = pathlib.Path(text)
        self.path = path / "model.onnx" if path.is_dir() else path
        if not self.path.is_file():
            raise ModelError(f"there is no {self.path}")
        self.name = path.name if path.is_dir() else path.stem
        self.case, self.expected, self.samples, self.tolerances = case, {}, {}, {}
        self.inputs = self._stored_inputs(path, case) if path.is_dir() else None
        if self.inputs is None:
            self.inputs = self._made_inputs(shapes or {})

    def _graph_inputs(self):
        graph = onnx.load(self.path, load_external_data=False).graph
        constants = {initializer.name for initializer in graph.initializer}
        return [value for value in graph.input if value.name not in constants]

    def _stored_inputs(self, path, case):
        folders = [path / case] if case else [path / "test_data", path / "test_data_set_0", path / "set_0", path]
        for folder in folders:
            arrays = numbered(folder, "input")
            if not arrays:
                continue
            self.case = folder.name
            self.expected, self.samples = numbered(folder, "output"), numbered(folder, "sample")
            if (folder / "tolerance.json").is_file():
                limits = json.loads((folder / "tolerance.json").read_text())
                self.tolerances = {int(key.rsplit("_", 1)[1]): value for key, value in limits.items()}
            names = [value.name for value in self._graph_inputs()]
            if len(names) != len(arrays):
                raise ModelError(f"{folder} has {len(arrays)} inputs, the model {len(names)}")
            return dict(zip(names, arrays.values()))
        if case:
            raise ModelError(f"there is no input_0.npy in {path / case}")
        return None

    def _made_inputs(self, shapes):
        """Seeded values: normal floats, small whole numbers. A free dim is 1 unless `shapes` says otherwise."""
        random, made = np.random.default_rng(0), {}
        for value in self._graph_inputs():
            tensor = value.type.tensor_type
            dims = shapes.get(value.name) or [dim.dim_value or 1 for dim in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            if dtype.kind == "f":
                made[value.name] = random.standard_normal(dims).astype(dtype)
            else:
                made[value.name] = random.integers(0, 2, dims).astype(dtype)
        return made

    def shapes(self):
        return {name: list(array.shape) for name, array in self.inputs.items()}

    def limit(self, output, is_relaxed=False):
        return RELAXED if is_relaxed else self.tolerances.get(output, DEFAULT_TOLERANCE)

    def stored_difference(self, output, got, is_relaxed=False):
        """Against the result stored beside the inputs, whole or as samples; None where there is none."""
        if output in self.expected:
            return difference(got, self.expected[output], self.limit(output, is_relaxed))
        if output in self.samples and got.size:
            sample = self.samples[output]
            stride = -(-got.size // sample.size)
            return difference(got.reshape(-1)[::stride], sample, self.limit(output, is_relaxed))
        return None


def difference(got, want, limit):
    """What is wrong with `got`: None, or the reason."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.size == 0:
        return None
    if want.dtype.kind not in "fc":
        apart = limit.get("codes", 0) if want.dtype.itemsize == 1 and want.dtype.kind != "b" else 0
        wrong = int((np.abs(got.astype(np.int64) - want.astype(np.int64)) > apart).sum())
        return f"{wrong} of {got.size} values differ" if wrong else None
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
        bad = ~(gap <= limit.get("atol", 0.0) + limit.get("rtol", 0.0) * np.abs(b))
        nrms = np.sqrt(np.mean(gap**2)) / max(np.sqrt(np.nanmean(b**2)), 1e-30)
    if bad.any():
        return f"{int(bad.sum())} of {got.size} values out of bounds, the largest gap is {np.nanmax(gap):.3g}"
    if not nrms <= limit.get("nrms", np.inf):
        return f"nrms {nrms:.3g}, at most {limit['nrms']:.3g}"
    return None
