#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed while they build and write, interrupted ones, and eight that share a timing cache.

After a kill there is the old engine, the new one, or none where there was none. The timing cache has every line that it had.
The next writer removes what the dead left. SINTER_TEST_SCALE=full: 2,000 kills."""
import os
import pathlib
import random
import signal
import subprocess
import time

import file_rig as rig
import onnx_bytes as onnx

KILLS = 2000 if os.environ.get("SINTER_TEST_SCALE") == "full" else 120


def products(path, sizes):
    """A chain of matrix products, each of another size: as many things to measure."""
    graph, before, name = b"", sizes[0], "x"
    for i, size in enumerate(sizes[1:]):
        weights = onnx.numbers(7) * (before * size // 7 + 1)
        graph += onnx.tensor(f"w{i}", onnx.FLOAT, [before, size], weights[:before * size])
        graph += onnx.node("MatMul", [name, f"w{i}"], f"y{i}")
        before, name = size, f"y{i}"
    graph += onnx.data(2, "g") + onnx.data(11, onnx.value("x", [4, sizes[0]])) + onnx.data(12, onnx.value(name, [4, before]))
    onnx.write_model(path, graph)


def start(*words):
    return subprocess.Popen([rig.SINTER, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lasts(*words):
    begin = time.monotonic()
    if start(*words).wait() != 0:
        rig.fail("a build that nobody kills fails:", words)
    return time.monotonic() - begin


def kill_after(seconds, *words):
    child = start(*words)
    time.sleep(seconds)
    child.kill()
    child.wait()


def engines_stay_whole(top, draw):
    """Two models take turns at one path."""
    model = [top / "a.onnx", top / "b.onnx"]
    out = top / "engines/e.sinter"
    out.parent.mkdir()
    whole = []
    for i in range(2):
        products(model[i], [300, 400 + i, 300])
        took = lasts("build", model[i], "-o", out, "--tune", "off")
        whole.append(out.read_bytes())
        out.unlink()
    seen = [0, 0, 0]
    for i in range(KILLS // 2):
        if i % 10 == 9 and out.exists():
            out.unlink()
        before = out.read_bytes() if out.exists() else None
        kill_after(draw.uniform(0, 1.3 * took), "build", model[i % 2], "-o", out, "--tune", "off")
        after = out.read_bytes() if out.exists() else None
        if after not in (before, whole[i % 2]):
            rig.fail("kill", i, "left a damaged engine of", len(after), "bytes")
        seen[0 if after is None else 1 if after == before else 2] += 1
        if len(rig.temps(out.parent)) > 1:
            rig.fail("kill", i, "temporary files pile up:", rig.temps(out.parent))
    print("after a kill: none %d, the old engine %d, the new one %d" % tuple(seen))
    lasts("build", model[0], "-o", out, "--tune", "off")
    if rig.temps(out.parent) or out.read_bytes() != whole[0]:
        rig.fail("the last build left", rig.temps(out.parent))


def lines_of(cache):
    """The measurements; all lines must be whole."""
    if not cache.exists() or cache.stat().st_size == 0:
        return {}
    head, *lines = cache.read_bytes().split(b"\n")
    if head + b"\n" != rig.TIMINGS or lines[-1] != b"":
        rig.fail("a damaged timing cache:", head, lines[-1])
    return dict(line.rsplit(b" | ", 1) for line in lines[:-1])


def caches_stay_whole(top, draw):
    model, cache = top / "many.onnx", top / "caches/c.txt"
    cache.parent.mkdir()
    products(model, [64 + 8 * i for i in range(8)])
    words = ("build", model, "-o", "/dev/null", "--tune", "fast", "--threads", "1", "--timing-cache", cache)
    took = lasts(*words)
    kept = {}
    for i in range(KILLS // 2):
        if i % 8 == 0 and cache.exists():
            cache.unlink()
            kept = {}
        kill_after(draw.uniform(0, 1.3 * took), *words)
        now = lines_of(cache)
        if not kept.keys() <= now.keys():
            rig.fail("kill", i, "lost measurements:", len(kept.keys() - now.keys()), "of", len(kept))
        kept = now
        if len(rig.temps(cache.parent)) > 1:
            rig.fail("kill", i, "temporary files pile up:", rig.temps(cache.parent))
    lasts(*words)
    if rig.temps(cache.parent):
        # Nothing new was measured, so nothing was written: the next writer in the folder removes them.
        lasts("build", model, "-o", cache.parent / "e", "--tune", "off")
    if rig.temps(cache.parent):
        rig.fail("left:", rig.temps(cache.parent))


def interrupts_keep_measurements(top):
    """The first signal ends the build: measurements are kept, the old engine stays, and the signal shows as what ended it."""
    model, cache, out = top / "long.onnx", top / "kept.txt", top / "old.sinter"
    products(model, [160 + 8 * i for i in range(40)])
    words = ("build", model, "-o", out, "--tune", "full", "--threads", "1", "--timing-cache", cache)
    out.write_bytes(rig.ENGINE + b"old")
    took = lasts(*words)
    whole = len(lines_of(cache))
    out.write_bytes(rig.ENGINE + b"old")
    for which in (signal.SIGINT, signal.SIGTERM):
        # When measuring begins and ends depends on the machine's load: a signal may come too early or too late.
        for share in (0.7, 0.6, 0.8, 0.5, 0.9, 0.7, 0.6, 0.8):
            cache.unlink(missing_ok=True)
            out.write_bytes(rig.ENGINE + b"old")
            child = subprocess.Popen([rig.SINTER, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(took * share)
            child.send_signal(which)
            err = child.communicate()[1].decode()
            lines, is_done = len(lines_of(cache)), out.read_bytes() != rig.ENGINE + b"old"
            if child.returncode == 0 or (child.returncode == -which and (lines == 0 or is_done)):
                continue
            break
        if child.returncode != -which or not 0 < lines <= whole or str(cache) not in err:
            rig.fail(which, "status", child.returncode, "kept", lines, "of", whole, err)
        if out.read_bytes() != rig.ENGINE + b"old" or rig.temps(top):
            rig.fail(which, "did not leave the old engine alone")


def writers_share_a_cache(top):
    """Eight builds at once; then each finds all its measurements."""
    cache, count = top / "shared.txt", 8
    models = []
    for i in range(count):
        models.append(top / f"writer{i}.onnx")
        products(models[-1], [40 + 16 * i, 48 + 16 * i, 56 + 16 * i])
    children = [start("build", m, "-o", "/dev/null", "--tune", "full", "--threads", "1", "--timing-cache", cache) for m in models]
    if any([child.wait() for child in children]):
        rig.fail("one of eight writers failed")
    for m in models:
        status, _, err = rig.sinter("build", m, "-o", "/dev/null", "--tune", "full", "--threads", "1", "--timing-cache", cache, "--cache-only")
        if status:
            rig.fail("a measurement is lost:", err)


def main():
    draw = random.Random(7)
    with rig.folder() as name:
        top = pathlib.Path(name)
        engines_stay_whole(top, draw)
        caches_stay_whole(top, draw)
        interrupts_keep_measurements(top)
        writers_share_a_cache(top)
    rig.finish(KILLS + 4)


main()
