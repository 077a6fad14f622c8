#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option that writes a file, at every kind of path: what is written, what is refused, what stays.

The model of the refusals holds an operator that nobody knows. A build would complain of it, so a complaint of the path
shows that the path was looked at first."""
import os
import pathlib
import re
import resource
import socket
import stat
import subprocess
import threading

import file_rig as rig
import onnx_bytes as onnx

OLD = {rig.ENGINE: rig.ENGINE + b"old", rig.NPY: rig.NPY + b"old", rig.TIMINGS: rig.TIMINGS + b"old key | 5\n"}
NAME_MAX = "n" * 251 + ".npy"


class Writer:
    """An option that writes a file `name` in `folder`, and what begins such a file."""

    def __init__(self, title, magic, name, command):
        self.title, self.magic, self.name, self.command = title, magic, name, command
        self.is_cache = magic == rig.TIMINGS


def build(model, path, inputs):
    return ["build", model, "-o", path, "--tune", "off"]


def run(model, path, inputs):
    return ["run", model, "--output-dir", path.parent, *inputs]


def cached(*verb):
    def command(model, path, inputs):
        return [verb[0], model, "--tune", "fast", "--timing-cache", path, *verb[1:]]
    return command


WRITERS = [Writer("build --output", rig.ENGINE, "out.sinter", build), Writer("run --output-dir", rig.NPY, "output_0.npy", run)]
for verb in (["build", "-o", "/dev/null"], ["run"], ["bench", "--duration", "0"], ["inspect"]):
    WRITERS.append(Writer(verb[0] + " --timing-cache", rig.TIMINGS, "timings.txt", cached(*verb)))
# Options of this kind that read; the folder of GPU kernels, which no CPU build writes to; a log, to which lines are added.
OTHERS = {"input", "value", "data", "kernel-cache", "weights", "expect", "input-data-path", "log-file", "calibration-data-path"}


def every_writer_is_known():
    _, page, _ = rig.sinter("doctor", "--markdown")
    found = set(re.findall(r"^\| `--([a-z-]+) [^`]*\b(?:FILE|DIR)\b", page, re.M))
    tested = {w.title.split("--")[1] for w in WRITERS}
    if found != tested | OTHERS:
        rig.fail("options with files:", sorted(found ^ (tested | OTHERS)), "are unknown to this test, or gone")


def bad_model(path):
    onnx.write_model(path, onnx.node("NoSuchOperator", ["x"], "y") + onnx.data(2, "g") + onnx.value("x", [1, 1]).join(
        [onnx.varint(11 << 3 | 2) + onnx.varint(len(onnx.value("x", [1, 1]))), b""]) +
        onnx.data(12, onnx.value("y", [1, 1])))


# ---- kinds of paths: each prepares `path` and says what is to come: new, refused, warned ----

def absent(w, path): return "new"
def empty(w, path): path.write_bytes(b""); return "new"
def same_kind(w, path): path.write_bytes(OLD[w.magic]); return "new"
def text(w, path): path.write_text("# my notes\n"); return "refused"
def short(w, path): path.write_bytes(w.magic[:3]); return "refused"
def a_folder(w, path): path.mkdir(); return "refused"
def loop(w, path): path.symlink_to(path.name); return "unwritable"


def another_kind(w, path):
    path.write_bytes(OLD[rig.NPY if w.magic != rig.NPY else rig.ENGINE])
    return "refused"


def link(w, path):
    (path.parent / "deep").mkdir()
    (path.parent / "deep/real").write_bytes(OLD[w.magic])
    path.symlink_to("deep/real")
    return "new"


def dangling(w, path):
    (path.parent / "deep").mkdir()
    os.chmod(path.parent / "deep", 0o777)
    path.symlink_to("deep/next")
    (path.parent / "deep/next").symlink_to("real")
    return "new"


def link_nowhere(w, path): path.symlink_to("no/such/folder/file"); return "unwritable"
def link_to_text(w, path): (path.parent / "t").write_text("my notes"); path.symlink_to("t"); return "refused"
def device(w, path): path.symlink_to("/dev/null"); return "direct"
def full_device(w, path): path.symlink_to("/dev/full"); return "full"
def listener(w, path): socket.socket(socket.AF_UNIX).bind(str(path)); return "refused"
def fifo(w, path): os.mkfifo(path); os.chmod(path, 0o666); return "fifo"
def broken_fifo(w, path): os.mkfifo(path); os.chmod(path, 0o666); return "broken"


def mode(bits, wanted="new"):
    def prepare(w, path):
        path.write_bytes(OLD[w.magic])
        path.chmod(bits)
        return wanted
    prepare.__name__ = "mode_%o" % bits
    return prepare


def read_only_folder(w, path): path.parent.chmod(0o555); return "unwritable"


def read_only_folder_and_old(w, path):
    path.write_bytes(OLD[w.magic])
    path.parent.chmod(0o555)
    return "unwritable"


def small_disk(w, path):
    path.write_bytes(OLD[w.magic])
    return "too large"


KINDS = [absent, empty, same_kind, text, short, another_kind, a_folder, link, dangling, link_nowhere, link_to_text, loop,
         device, full_device, listener, fifo, broken_fifo, mode(0o600), mode(0o640), mode(0o777), mode(0o2755), mode(0o4711),
         mode(0o444, "unwritable"), mode(0o000, "unwritable"), read_only_folder, read_only_folder_and_old, small_disk]


def bytes_of(path):
    """None where there is no regular file that we may read."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def snapshot(top):
    """All files under a folder: kind, mode, where links lead, what regular files hold."""
    found = {}
    for p in sorted(pathlib.Path(top).rglob("*")):
        s = p.lstat()
        content = os.readlink(p) if p.is_symlink() else bytes_of(p)
        found[p] = (stat.S_IFMT(s.st_mode), s.st_mode, content)
    return found


def own(top):
    if os.geteuid() != 0:
        return
    for p in [top, *top.rglob("*")]:
        s = p.lstat()
        os.lchown(p, rig.NOBODY, rig.NOBODY)
        if not stat.S_ISLNK(s.st_mode):
            os.chmod(p, stat.S_IMODE(s.st_mode))


def few_bytes():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def reader(path, takes_all, got):
    with open(path, "rb") as file:
        got.append(file.read() if takes_all else file.read(1))


def fits(w, wanted, before, after, path, held, status, err):
    """`held`: what the file had before. What is wrong with how it ended; None: nothing."""
    said = str(path) in err
    if wanted in ("new", "direct", "fifo"):
        if status != 0:
            return f"status {status}"
        if wanted == "new" and not rig.begins(path, w.magic):
            return "the new file is of another kind"
        if wanted == "new" and path in before and before[path][1] != after[path][1]:
            return "another mode or kind"
        if wanted == "new" and w.is_cache and held == OLD[w.magic] and b"old key" not in path.read_bytes():
            return "an old measurement is gone"
        if wanted != "new" and before != after:
            return "files came or changed"
        return None
    if before != after:
        return "files came or changed"
    if w.is_cache and wanted != "refused":
        return None if status == 0 and "warning: " in err and said else f"no warning, status {status}"
    return None if status == 1 and said and "NoSuchOperator" not in err else f"no refusal of this path, status {status}"


def one(w, prepare, model, bad, top):
    place = top / "place"
    place.mkdir()
    path = place / w.name
    wanted = prepare(w, path)
    own(place)
    before, held = snapshot(place), bytes_of(path)
    # What cannot be known before the end is tried with a model that builds.
    late = ("new", "direct", "fifo", "full", "broken", "too large")
    subject = model if w.is_cache and wanted != "refused" or wanted in late else bad
    got, thread = [], None
    if wanted in ("fifo", "broken"):
        thread = threading.Thread(target=reader, args=(path, wanted == "fifo", got), daemon=True)
        thread.start()
    status, _, err = rig.sinter(*w.command(subject, path, []), limits=few_bytes if wanted == "too large" else None)
    if thread:
        thread.join(20)
    if wanted == "fifo" and w.magic != rig.TIMINGS and not (got and got[0].startswith(w.magic)):
        rig.fail(w.title, prepare.__name__, "the reader has", got and got[0][:20])
    # The pipe holds what a reader does not take, if that is little.
    if wanted == "broken" and status == 0 and got and len(got[0]) == 1:
        wanted = "fifo"
    what = fits(w, wanted, before, snapshot(place), path, held, status, err)
    if what:
        rig.fail(w.title, prepare.__name__, what, err)
    if rig.temps(place):
        rig.fail(w.title, prepare.__name__, "left", rig.temps(place))
    place.chmod(0o777)
    subprocess.run(["rm", "-rf", str(place)], check=True)


def inputs_stay(top):
    """An output that is an input, by its own name, another name, or a link, is refused."""
    count = 0
    for how in ("itself", "hard", "symbolic", "behind a link"):
        for title, source, name, command in (
                ("model", rig.MODEL, "m.onnx", lambda p: ["build", top / "in/m.onnx", "-o", p]),
                ("model as cache", rig.MODEL, "m.onnx", lambda p: ["build", top / "in/m.onnx", "-o", "/dev/null", "--timing-cache", p]),
                ("data", rig.IMAGE, "output_0.npy",
                 lambda p: ["run", rig.MODEL, "--input", f"image={top}/in/output_0.npy", "--output-dir", p.parent]),
                ("promise", rig.IMAGE, "output_0.npy",
                 lambda p: ["run", rig.MODEL, "--value", f"image={top}/in/output_0.npy", "--output-dir", p.parent]),
                ("weights", rig.MODEL, "m.onnx",
                 lambda p: ["refit", top / "in/m.onnx", "--weights", top / "in/m.onnx", "-o", p]),
                ("simplified", rig.MODEL, "m.onnx", lambda p: ["simplify", top / "in/m.onnx", "-o", p]),
                ("cache", None, "c.txt", lambda p: ["build", rig.MODEL, "--timing-cache", top / "in/c.txt", "-o", p])):
            (top / "in").mkdir()
            (top / "out").mkdir()
            content = source.read_bytes() if source else b""
            if source:
                (top / "in" / name).write_bytes(content)
            path = top / "out" / name
            if how == "itself":
                path = top / "in" / name
            elif how == "hard" and source:
                path.hardlink_to(top / "in" / name)
            elif how == "behind a link":
                (top / "out").rmdir()
                (top / "out").symlink_to("in")
            else:
                path.symlink_to(top / "in" / name)
            own(top / "in")
            own(top / "out")
            status, _, err = rig.sinter(*command(path))
            left = (top / "in" / name).read_bytes() if (top / "in" / name).exists() else b""
            if status != 1 or str(path) not in err or left != content:
                rig.fail("an output that is an input:", title, how, "status", status, err)
            subprocess.run(["rm", "-rf", str(top / "in"), str(top / "out")], check=True)
            count += 1
    return count


def stdout_is_the_file(top):
    """An engine through a pipe is the engine alone: the report goes to stderr."""
    _, _, _ = rig.sinter("build", rig.MODEL, "-o", top / "direct", "--tune", "off")
    done = subprocess.run([rig.SINTER, "build", rig.MODEL, "-o", "/dev/stdout", "--tune", "off"], capture_output=True)
    if done.returncode or done.stdout != (top / "direct").read_bytes() or b"built" not in done.stderr:
        rig.fail("-o /dev/stdout", done.returncode, len(done.stdout), done.stderr)


def a_page_into_a_pipe(_top):
    done = subprocess.run([rig.SINTER, "compare", rig.MODEL, f"reference:{rig.MODEL}", "-o", "/dev/stdout"], capture_output=True, timeout=120)
    if done.returncode or b"<!DOCTYPE html>" not in done.stdout:
        rig.fail("a page into a pipe:", done.returncode, done.stdout[:80], done.stderr)


def long_names(top):
    """The temporary file's name does not depend on the file's."""
    status, _, err = rig.sinter("build", rig.MODEL, "-o", top / NAME_MAX, "--tune", "off")
    if status or not rig.begins(top / NAME_MAX, rig.ENGINE):
        rig.fail("a name of 255 bytes:", err)
    status, _, err = rig.sinter("build", rig.MODEL, "-o", top / ("n" + NAME_MAX), "--tune", "off")
    if status != 1:
        rig.fail("a name of 256 bytes:", status, err)


def main():
    every_writer_is_known()
    count = 0
    with rig.folder() as name:
        top = pathlib.Path(name)
        bad = top / "bad.onnx"
        bad_model(bad)
        for w in WRITERS:
            for prepare in KINDS:
                one(w, prepare, rig.MODEL, bad, top)
                count += 1
        count += inputs_stay(top)
        stdout_is_the_file(top)
        long_names(top)
        a_page_into_a_pipe(top)
    rig.finish(count + 4)


main()
