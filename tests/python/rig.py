# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the package of this tree with the library of this build, and a list of
tests that runs."""
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(os.environ.get("SINTER_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
BIN = pathlib.Path(os.environ.get("SINTER_BIN") or ROOT / "build" / "sinter")
LIBRARY = BIN.parent / "libsinter.so"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
SEVEN = ROOT / "examples" / "digits" / "seven.npy"


def begin_with_sanitizers():
    """A library with sanitizers needs their runtimes in the process from the start: begins this script again with them."""
    if os.environ.get("SINTER_TEST_PRELOADED"):
        return
    needed = subprocess.run(["ldd", str(LIBRARY)], capture_output=True, text=True).stdout
    found = [line.split("=>")[1].split()[0] for line in needed.splitlines() if "=>" in line and ("asan" in line or "tsan" in line)]
    if found:
        environment = dict(os.environ, LD_PRELOAD=":".join(found), SINTER_TEST_PRELOADED="1",
                           ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:allocator_may_return_null=1")
        os.execve(sys.executable, [sys.executable] + sys.argv, environment)


begin_with_sanitizers()
os.environ["SINTER_LIBRARY"] = str(LIBRARY)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python"), str(ROOT / "tests" / "golden")]

scratch = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(scratch.name)


def command(*arguments, **keywords):
    """Runs the command `sinter`; its output."""
    done = subprocess.run([str(BIN)] + [str(a) for a in arguments], capture_output=True, text=True, **keywords)
    assert done.returncode == 0, f"sinter {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def raises(kind, function, *arguments, says="", **keywords):
    """The exception of `kind` that a call must raise; its text must hold `says`."""
    try:
        function(*arguments, **keywords)
    except kind as e:
        assert says in str(e), f"the text is {e!s}, wanted {says!r} in it"
        return e
    raise AssertionError(f"no {kind.__name__} was raised")


def main(module):
    """Runs every function of the module whose name begins with test_."""
    failed = 0
    chosen = sys.argv[1:]
    for name, function in list(vars(sys.modules[module]).items()):
        if not name.startswith("test_") or not callable(function) or chosen and name not in chosen:
            continue
        try:
            function()
            print(f"ok   {name}")
        except Exception:
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc()
    scratch.cleanup()
    sys.exit(bool(failed))
