# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package (PEP 517), with what a C project needs anyway: CMake and a compiler.

The wheel holds the package and libsinter.so without debugging information. It contains nothing that depends on the
version of Python, so its tag is py3-none-PLATFORM. PLATFORM names the newest version of glibc that the library asks for.
Variables: SINTER_BUILD_DIR is a build folder to use again; CMAKE_BUILD_PARALLEL_LEVEL limits the jobs."""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DATE = (2020, 1, 1, 0, 0, 0)            # of all files in the wheel: the same tree gives the same bytes


def version():
    text = (ROOT / "include" / "sinter" / "version.h").read_text()
    return ".".join(re.search(rf"SINTER_VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def metadata():
    return (f"Metadata-Version: 2.1\nName: sinter\nVersion: {version()}\nSummary: Turns a trained network into an engine and "
            "runs it\nLicense: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: numpy\n"
            "Requires-Dist: numpy; extra == 'numpy'\nProvides-Extra: torch\nRequires-Dist: torch>=2.6; extra == 'torch'\n"
            "Requires-Dist: numpy; extra == 'torch'\nDescription-Content-Type: text/markdown\n\n"
            + (ROOT / "docs" / "python.md").read_text())


def entry_points():
    """What pyproject.toml says of them: Python 3.9 and 3.10 have no reader of TOML."""
    text = (HERE / "pyproject.toml").read_text()
    found = re.findall(r"^\[project\.entry-points\.(\w+)\]\n((?:\w+ = .*\n)+)", text, re.M)
    return "".join(f"[{group}]\n" + lines.replace('"', "") for group, lines in found)


def built_library(folder):
    """Compiles libsinter.so, and strips it into `folder`."""
    if not (ROOT / "CMakeLists.txt").exists():
        raise SystemExit("the package is built from the tree of sinter: pip install PATH/OF/THE/TREE/python")
    build = pathlib.Path(os.environ.get("SINTER_BUILD_DIR") or folder / "build")
    # Release, whatever a folder that is used again was configured for.
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(build)] +
                   ([] if (build / "CMakeCache.txt").exists() else ["-DCMAKE_BUILD_TYPE=Release", "-DSINTER_TESTS=OFF"]), check=True)
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(build), "--target", "sinter_shared", "-j", jobs], check=True)
    made = folder / "libsinter.so"
    strip = shutil.which("strip")
    if strip is None:
        shutil.copyfile(build / "libsinter.so", made)
    else:
        subprocess.run([strip, "--strip-unneeded", "-o", str(made), str(build / "libsinter.so")], check=True)
    return made


def platform_tag(library):
    """manylinux_2_X for the newest symbol of glibc that the library needs; linux where that cannot be seen."""
    machine = platform.machine()
    objdump = shutil.which("objdump")
    if objdump is None:
        return f"linux_{machine}"
    symbols = subprocess.run([objdump, "-T", str(library)], capture_output=True, text=True, check=True).stdout
    newest = max((int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols)), default=17)
    return f"manylinux_2_{max(newest, 17)}_{machine}"


class Wheel:
    def __init__(self, path):
        self.zip, self.records = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9), []

    def add(self, name, data, mode=0o644):
        if isinstance(data, str):
            data = data.encode()
        info = zipfile.ZipInfo(name, DATE)
        info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self, info, tag):
        self.add(f"{info}/METADATA", metadata())
        self.add(f"{info}/entry_points.txt", entry_points())
        self.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: sinter\nRoot-Is-Purelib: false\nTag: {tag}\n")
        self.add(f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_text())
        self.add(f"{info}/RECORD", "\n".join(self.records + [f"{info}/RECORD,,", ""]))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        library = built_library(pathlib.Path(folder))
        tag, info = f"py3-none-{platform_tag(library)}", f"sinter-{version()}.dist-info"
        name = f"sinter-{version()}-{tag}.whl"
        wheel = Wheel(pathlib.Path(wheel_directory) / name)
        for file in sorted((HERE / "sinter").rglob("*")):
            if file.is_file() and (file.suffix in (".py", ".pyi") or file.name == "py.typed"):
                wheel.add(f"sinter/{file.relative_to(HERE / 'sinter').as_posix()}", file.read_bytes())
        wheel.add("sinter/libsinter.so", library.read_bytes(), 0o755)
        wheel.close(info, tag)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that points here: the library is that of build/, which is made as usual."""
    tag, info = f"py3-none-linux_{platform.machine()}", f"sinter-{version()}.dist-info"
    name = f"sinter-{version()}-{tag}.whl"
    wheel = Wheel(pathlib.Path(wheel_directory) / name)
    wheel.add("sinter.pth", f"{HERE}\n")
    wheel.close(info, tag)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_editable(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("the package has no source archive of its own: the tree of sinter is the source")
