#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of the seeds, each with its one change, and compares the results with the table in docs/seeds.md.

    test_seeds.py                  all that this machine can run; fails where a block does otherwise than EXPECTED says
    test_seeds.py 0_09 4_02        some
    test_seeds.py --markdown       prints docs/seeds.md; with SINTER_TORCH_PYTHON, a Python that has PyTorch, all of it

Blocks are in document_N.md. What they stand among is in seed_python.py, seeds.cpp and here. A test adds --duration=0 to
commands that time an engine; SINTER_TEST_SCALE=full leaves them as they are."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ.get("SINTER_SOURCE_DIR") or HERE.parents[1])
BIN = pathlib.Path(os.environ.get("SINTER_BIN") or ROOT / "build/sinter")
sys.path[:0] = [str(HERE), str(ROOT / "tests/golden"), str(ROOT / "tests/python")]
sys.dont_write_bytecode = True
import onnx_bytes as ob     # noqa: E402
import seed_python          # noqa: E402
import seed_shown           # noqa: E402

CHANGES = {"python": "`import sinter.tensorrt as trt`", "bash": "`sinter exec`", "cpp": "include path", "text": "", "yaml": "", "json": ""}
# Where the change is another one than that of its language.
CHANGED = {
    "0_03": "`defaultdict(list)`: the block's histograms are empty", "0_14": "a stream: the call needs one",
    "1_00": "`sinter quantize`; the fixture adds `--calib`, the block has no data", "1_11": "a semicolon that is missing", "1_12": "`sinter exec`, numbers for BxCxHxW",
    "4_04": "`np.dtype(…)`: a type has no item size", "0_01": "launches as calls", "0_16": "include path, a launch as a call",
    "4_05": "include path, a launch as a call", "0_06": "`shared_ptr`: a list of `unique_ptr` cannot be copied", "0_07": "none", "1_02": "", "1_08": "", "1_10": "", "0_02": "none",
    "0_12": "`import sinter.torch`", "0_13": "`import sinter.torch`, whose `save` and `load` are taken", "0_19": "`query` left out: one input was compiled", "2_01": "`import sinter.torch`",
    "2_05": "`import sinter.torch`", "0_15": "none", "0_18": "none", "1_05": "none", "0_10": "a stream: the call needs one", "0_08": "none", "0_17": "none",
    "4_01": "none", "4_02": "none", "4_03": "none", "4_06": "none",
}
# What is not run, and why.
NOT_RUN = {"1_02": "sets up a swap file: needs root", "1_08": "locks the clock: needs root and a GPU", "1_10": "starts NVIDIA's MPS: needs a GPU"}
# Blocks that fail, and the reason. A block that passes and stands here is an error, too.
EXPECTED_FAILURES = {}


def read_blocks():
    """number -> (heading, language, text)"""
    found = {}
    for file in sorted(HERE.glob("document_*.md")):
        for number, heading, language, text in re.findall(r"^(\d_\d\d): (.*?)\n\n```(\w+)\n(.*?)^```$", file.read_text(), re.S | re.M):
            found[number] = (heading, language, text)
    return found


BLOCKS = read_blocks()


def write_model(path, batch, name="input"):
    """Convolution, relu, average of each channel: [batch, 3, 224, 224] to [batch, 4]."""
    weights = ob.tensor("w", ob.FLOAT, [4, 3, 7, 7], ob.numbers(4 * 3 * 49, 0.2))
    nodes = ob.node("Conv", [name, "w"], "c", ob.ints("strides", [16, 16])) + ob.node("Relu", ["c"], "r")
    nodes += ob.node("GlobalAveragePool", ["r"], "g") + ob.node("Flatten", ["g"], "output")
    graph = nodes + weights + ob.data(11, ob.value(name, [batch, 3, 224, 224])) + ob.data(12, ob.value("output", [batch, 4]))
    ob.write_model(path, graph)


def sinter(*arguments, folder=None):
    done = subprocess.run([str(BIN), *map(str, arguments)], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise AssertionError(f"sinter {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def fixture(folder, batch=1):
    """A folder with the models, caches and stand-ins that blocks name."""
    folder.mkdir()
    for name in ("model", "resnet50", "yolov8n"):
        write_model(folder / f"{name}.onnx", batch)
    write_model(folder / "data.onnx", "N", "data")
    (folder / "broken.onnx").write_bytes(b"\x00broken")
    cache = "TRT-101600-EntropyCalibration2\ninput: 3c010a14\noutput: 3c010a14\n"
    for name in ("calibration.cache", "calibration_cache.bin"):
        (folder / name).write_text(cache)
    tools = folder / "bin"
    tools.mkdir()
    adds = "" if os.environ.get("SINTER_TEST_SCALE") == "full" else \
        "for flag in duration=0 iterations=3 warmUp=0; do\n" \
        'case " $* " in *" exec "*) [[ " $* " == *"--${flag%=*}="* ]] || set -- "$@" --$flag;; esac; done\n'
    (tools / "sinter").write_text(f"#!/bin/bash\n{adds}"
                                  'case " $* " in *" exec "*) [[ " $* " == *--onnx* || " $* " == *--loadEngine* ]] || '
                                  'set -- "$@" --onnx=data.onnx;; *" quantize "*) set -- "$@" --calib calibration.cache;; esac\n'
                                  f'exec "{BIN}" "$@"\n')
    # NVIDIA's profiler is not here: its command is run alone. Nothing is installed.
    (tools / "nsys").write_text('#!/bin/bash\nwhile [[ $# -gt 0 && $1 != sinter ]]; do shift; done\nexec "$@"\n')
    (tools / "pip3").write_text("#!/bin/bash\nexit 0\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return folder


# ---- Python ----

def python_program(number, text):
    before, behind = seed_python.PYTHON[number] if number in seed_python.PYTHON else seed_python.TORCH[number]
    is_dynamic = number in seed_python.DYNAMIC
    head = f"MODEL, DYNAMIC = 'model.onnx', {is_dynamic}\n"
    head += "import builtins\n_said = []\n_print = print\n" \
            "def print(*a, **k):\n    _said.append(' '.join(map(str, a)))\n" \
            "def PRINTED():\n    text = '\\n'.join(_said)\n    _said.clear()\n    return text\n"
    common = seed_python.COMMON if number in seed_python.PYTHON else ""
    return head + common + before + text + behind


def run_python(number, text, folder):
    """In a process of its own: a block may leave anything behind."""
    is_torch = number in seed_python.TORCH
    fixture(folder, "N" if number in seed_python.DYNAMIC else 1)
    (folder / "block.py").write_text(python_program(number, text))
    python = os.environ.get("SINTER_TORCH_PYTHON", sys.executable) if is_torch else sys.executable
    if is_torch and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        return "not run here: needs PyTorch"
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), SINTER_LIBRARY=str(BIN.parent / "libsinter.so"),
                       SINTER_TENSORRT_DEVICE="cpu", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([python, "block.py"], cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AssertionError((done.stdout + done.stderr)[-1500:])
    return None


# ---- commands ----

def run_shell(number, text, folder):
    is_dynamic = "minShapes" in text or number == "0_11"
    fixture(folder, "N" if is_dynamic else 1)
    if number == "1_00":
        digits = ROOT / "examples/digits"
        shutil.copy(digits / "digits.onnx", folder / "model.onnx")
        sinter("calibrate", "model.onnx", "--data", f"image={digits / 'seven.npy'}", "-o", "calibration.cache", folder=folder)
    if number == "4_07":
        sinter("build", "model.onnx", "-o", "model.engine", "--tune", "off", folder=folder)
    done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}"))
    if done.returncode:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
    count = len(re.findall(r"^\s*sinter exec", text, re.M))
    if done.stdout.count("&&&& PASSED") != count:
        raise AssertionError(f"{count} commands, {done.stdout.count('&&&& PASSED')} passed: {done.stdout[-1500:]}")
    for name in re.findall(r"--saveEngine=(\S+)", text):
        sinter("inspect", name, folder=folder)
    if number == "4_07":
        assert json.loads((folder / "layers.json").read_text()), "no layers"
    if number == "1_00":
        assert b"QuantizeLinear" in (folder / "model_quantized.onnx").read_bytes()
        sinter("run", "model_quantized.onnx", folder=folder)
    return None


# ---- C++ ----

def sanitizers():
    """The flags of the compiler that the library's sanitizers need."""
    needed = subprocess.run(["ldd", str(BIN.parent / "libsinter.so")], capture_output=True, text=True).stdout
    known = (("libasan", "-fsanitize=address"), ("libubsan", "-fsanitize=undefined"), ("libtsan", "-fsanitize=thread"))
    return [flag for library, flag in known if library in needed]


def run_cpp(folder):
    """number -> None, or what failed; or one text for all of them."""
    fixture(folder)
    sinter("build", "model.onnx", "-o", "model.engine", "--tune", "off", folder=folder)
    for number, (_, language, text) in BLOCKS.items():
        if language == "cpp":
            (folder / f"{number}.inc").write_text(re.sub(r"<<<.*?>>>", "", text, flags=re.S))
    if not shutil.which("g++"):
        return "not run here: needs a C++ compiler"
    compat = ROOT / "include/sinter/compat"
    done = subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", *sanitizers(), "-I", folder, "-I", HERE, "-I", compat, "-I",
                           compat / "host", HERE / "seeds.cpp", "-o", folder / "seeds", "-L", BIN.parent, "-lsinter", "-lpthread"],
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr[:4000])
    done = subprocess.run([folder / "seeds"], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BIN.parent), SINTER_TENSORRT_DEVICE="cpu", ASAN_OPTIONS="detect_leaks=0"))   # 1_01 allocates twice
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    passed = set(re.findall(r"^ok (\S+)$", done.stdout, re.M))
    return {n: None if n in passed else done.stdout for n, b in BLOCKS.items() if b[1] == "cpp"}


# ---- all ----

def run_all(numbers):
    """number -> None (passed), a text that begins with "not run", or an AssertionError's text."""
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)

        def one(number):
            _, language, text = BLOCKS[number]
            folder, begun = scratch / number, time.monotonic()
            try:
                if language == "python":
                    return run_python(number, text, folder)
                if language == "bash":
                    return run_shell(number, text, folder)
                return seed_shown.run(number, text, fixture(folder), sinter)
            except AssertionError as e:
                return f"failed: {e}" if str(e) else f"failed: {traceback.format_exc(limit=-1)}"
            except Exception:
                return f"failed: {traceback.format_exc()}"
            finally:
                if time.monotonic() - begun > 5:
                    print(f"{number}: {time.monotonic() - begun:.1f} s", file=sys.stderr)

        def cpp():
            try:
                return run_cpp(scratch / "cpp")
            except AssertionError as e:
                return f"failed: {e}"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            singles = [n for n in numbers if BLOCKS[n][1] != "cpp" and n not in NOT_RUN]
            of_cpp = [n for n in numbers if BLOCKS[n][1] == "cpp"]
            job = pool.submit(cpp) if of_cpp else None
            results.update(zip(singles, pool.map(one, singles)))
            for n in of_cpp:
                made = job.result()
                results[n] = made if isinstance(made, str) else made[n] and f"failed: {made[n]}"
                if isinstance(made, str) and n != of_cpp[0]:
                    results[n] = made[:made.index(":") + 1] + " as " + of_cpp[0]
    results.update({n: f"not run: {NOT_RUN[n]}" for n in numbers if n in NOT_RUN})
    return results


def how(number):
    language = BLOCKS[number][1]
    if number in NOT_RUN:
        return "not run: " + NOT_RUN[number]
    if number in seed_python.TORCH:
        return "PyTorch on the CPU, compared with the model in PyTorch"
    return {"python": "Python on the CPU, results checked", "bash": "commands on the CPU, files and reports checked",
            "cpp": "compiled and run on the CPU, results checked"}.get(language) or "shown: " + seed_shown.TEXT[number]


def markdown(results):
    passed = [n for n in results if results[n] is None]
    shown = sum(n in seed_shown.TEXT for n in passed)
    lines = ["# The code blocks of the seeds", "",
             "Five documents on TensorRT came before sinter. Their code blocks stand in `tests/seeds`, each with its one change: an import, a",
             "header's folder or a command's name. `tests/seeds/test_seeds.py` runs them, and writes this page with `--markdown`.", "",
             f"{len(results)} blocks, two of them indented in lists: {len(passed) - shown} run and pass on the CPU; {shown} are diagrams and "
             "listings, whose content is",
             f"looked up in what sinter does; {sum(n in NOT_RUN for n in results)} are not run; {len(EXPECTED_FAILURES) or 'none'} "
             "of the others fails.", "",
             "Fixtures are small: models have four channels, and streams and memory of a GPU are the host's. `nsys` and `pip3` are stand-ins:",
             "the first runs its command alone, the second does nothing. Diagrams and listings are checked, too: the last column names what.", "",
             "| block | in | kind | change | how | result |", "|---|---|---|---|---|---|"]
    for number, (heading, language, _) in BLOCKS.items():
        result = results[number]
        word = "passes" if result is None else "not run" if result.startswith("not run") else f"fails: {EXPECTED_FAILURES.get(number, '?')}"
        lines.append(f"| {number} | {heading} | {language} | {CHANGED.get(number, CHANGES[language])} | {how(number)} | {word} |")
    return "\n".join(lines) + "\n"


def main():
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")] or list(BLOCKS)
    if sanitizers():
        chosen = [n for n in chosen if BLOCKS[n][1] == "cpp"]       # the others call what other tests call
    start = time.monotonic()
    results = run_all(chosen)
    wrong = []
    for number, result in results.items():
        is_failed = result is not None and not result.startswith("not run")
        if is_failed != (number in EXPECTED_FAILURES) and not (result or "").startswith("not run here"):
            wrong.append(number)
            print(f"{number}: passes, but stands in EXPECTED_FAILURES: take it out" if not is_failed else f"{number}: {result}", file=sys.stderr)
    if "--markdown" in sys.argv:
        print(markdown(results), end="")
        return bool(wrong)
    passed = sum(r is None for r in results.values())
    print(f"{len(results)} blocks: {passed} pass, {sum(n in EXPECTED_FAILURES for n in results)} fail as expected, "
          f"{sum((r or '').startswith('not run') for r in results.values())} not run, {len(wrong)} wrong; {time.monotonic() - start:.1f} s")
    if len(chosen) == len(BLOCKS):
        rows = dict(re.findall(r"^\| (\d_\d\d) \|.*\| ([^|]*) \|$", (ROOT / "docs/seeds.md").read_text(), re.M))
        told = {n for n, r in results.items() if not (r or "").startswith("not run here")}
        if set(rows) != set(BLOCKS) or any((rows[n] == "passes") != (results[n] is None) for n in told):
            print("docs/seeds.md says otherwise: test_seeds.py --markdown >docs/seeds.md")
            return 1
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
