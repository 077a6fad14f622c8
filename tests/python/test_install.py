# SPDX-License-Identifier: Apache-2.0
"""pip install ./python in a fresh environment without a network, from the library of this build: what is installed, and
that it works away from the tree."""
import os
import subprocess
import sys
import venv
import zipfile

import rig


def test_install():
    if os.environ.get("SINTER_TEST_PRELOADED"):
        return                                  # a library with sanitizers is not what is installed
    folder = rig.FOLDER / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SINTER_LIBRARY")}
    environment.update(SINTER_BUILD_DIR=str(rig.LIBRARY.parent), PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    wheels = rig.FOLDER / "wheels"
    wheels.mkdir()
    backend = f"import sys; sys.path.insert(0, {str(rig.ROOT / 'python')!r}); import build_backend; build_backend.build_wheel({str(wheels)!r})"
    for command in (["-c", backend], ["-m", "pip", "-q", "install", str(rig.ROOT / "python"), "--no-deps"]):
        done = subprocess.run([str(python)] + command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    wheel, = wheels.glob("*.whl")
    assert wheel.name.startswith("sinter-0.") and "-py3-none-manylinux_2_" in wheel.name, wheel.name
    assert wheel.stat().st_size < 12 << 20, wheel.stat().st_size
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("sinter/__init__.py", "sinter/_abi.py", "sinter/py.typed", "sinter/libsinter.so"):
        assert name in names, names
    assert not any("__pycache__" in n for n in names)
    program = ("import sinter, sys; assert sinter.library_path.startswith(sys.prefix), sinter.library_path; "
               f"e = sinter.build({str(rig.DIGITS)!r}, tune='off').load(); "
               "t = sinter.Tensor(bytes(28 * 28 * 4), 'f32', (1, 1, 28, 28)); print(e.context().run(image=t)['scores'].shape)")
    out = subprocess.run([str(python), "-c", program], env=environment, capture_output=True, text=True, cwd=rig.FOLDER)
    assert out.stdout.strip() == "(1, 10)", out.stdout + out.stderr
    assert sys.version_info >= (3, 9)


rig.main(__name__)
