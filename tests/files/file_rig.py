# SPDX-License-Identifier: Apache-2.0
"""What the tests of written files share: the command, a folder that goes at the end, models, and who runs them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["SINTER_SOURCE_DIR"])
# Copies, because nobody may not come into root's folders.
_own = tempfile.TemporaryDirectory(prefix="sinter-files-")
os.chmod(_own.name, 0o755)
SINTER = shutil.copy(os.environ["SINTER_BIN"], _own.name)
MODEL = pathlib.Path(shutil.copy(SOURCE / "examples/digits/digits.onnx", _own.name))
IMAGE = pathlib.Path(shutil.copy(SOURCE / "examples/digits/seven.npy", _own.name))
ENGINE, NPY, TIMINGS = b"\x89SINTER\n", b"\x93NUMPY", b"sinter timing cache 1\n"
NOBODY = 65534
TEMP = re.compile(r"\.sinter-[0-9a-f]{16}\.tmp")
sys.path.insert(0, str(SOURCE / "tests/golden"))

failures = []


def fail(*what):
    failures.append(what)
    print("FAIL", *what)


def finish(count):
    print(f"{count} cases, {len(failures)} failed")
    sys.exit(1 if failures else 0)


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def folder():
    """Everybody may write there: root's rights would hide what modes forbid, so root runs the command as nobody."""
    made = tempfile.TemporaryDirectory(prefix="sinter-files-")
    os.chmod(made.name, 0o777)
    return made


def sinter(*words, **options):
    """Runs the command: its status, what it wrote to stdout and to stderr."""
    limits = options.pop("limits", None)

    def before():
        os.umask(0o022)
        if limits:
            limits()
        if os.geteuid() == 0:
            become_nobody()

    done = subprocess.run([SINTER, *map(str, words)], capture_output=True, timeout=120, preexec_fn=before, **options)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def temps(top):
    return [str(p) for p in pathlib.Path(top).rglob("*") if TEMP.fullmatch(p.name)]


def begins(path, magic):
    return pathlib.Path(path).read_bytes().startswith(magic)
