# SPDX-License-Identifier: Apache-2.0
"""More scripts in the style of samples, posts and repositories, run with their imports as they are. Scripts that need packages that
are not installed (onnx, PyTorch, Polygraphy) are not run."""
import importlib.util
import os
import subprocess
import sys

import rig

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"


def run(name, *arguments, needs=()):
    missing = [package for package in needs if getattr(importlib.util.find_spec(package), "origin", None) is None]
    if missing:
        print(f"not run: {name} needs {', '.join(missing)}")
        return
    script = rig.ROOT / "tests" / "python" / "scripts" / name
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "sinter.shim", str(script)] + [str(a) for a in arguments],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def test_common_buffers():
    run("common_buffers.py", rig.DIGITS, rig.SEVEN)


def test_engine_builder():
    run("engine_builder.py", rig.DIGITS, rig.SEVEN, rig.FOLDER)


def test_engine_explorer():
    run("engine_explorer.py", rig.DIGITS, rig.SEVEN)


def test_graph_streams():
    run("graph_streams.py", rig.DIGITS, rig.SEVEN)


def test_debug_tensors():
    run("debug_tensors.py", rig.DIGITS, rig.SEVEN)


def test_wts_resnet():
    run("wts_resnet.py", rig.FOLDER / "resnet")


def test_bert_builder():
    run("bert_builder.py")


def test_shape_tensors():
    run("shape_tensors.py")


def test_listener_copies():
    run("listener_copies.py")


def test_pycuda_calls():
    run("pycuda_calls.py")


def test_libcudart_calls():
    run("libcudart_calls.py")


def test_torch_backend():
    run("torch_backend.py", rig.DIGITS, rig.SEVEN, rig.FOLDER / "torch.engine", needs=["torch"])
    run("torch_backend.py", rig.DIGITS, rig.SEVEN, rig.FOLDER / "torch.engine", "--names", needs=["torch"])


def test_torch_tensorrt():
    run("torch_tensorrt_calls.py", rig.FOLDER / "torch.model", needs=["torch"])


def test_onnx_tensorrt():
    run("onnx_tensorrt.py", rig.DIGITS, rig.SEVEN, needs=["onnx"])


def test_polygraphy_runner():
    run("polygraphy_runner.py", rig.DIGITS, rig.SEVEN, rig.FOLDER, needs=["polygraphy", "onnx"])


rig.main(__name__)
