#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `sinter report` and `sinter compare` in headless Chromium: no script of a hostile name runs, no error is thrown,
tables sort when their heads are clicked, every section is drawn, and the screenshot is not empty. In ./check --full, where
there is a browser; the screenshots are in build/check/pages."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.environ["SINTER_SOURCE_DIR"] + "/tests/golden")
import onnx_bytes as onnx
from cli_rig import check, failures, sinter

SOURCE = os.environ["SINTER_SOURCE_DIR"]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if not BROWSER:
    print("there is no Chromium")
    sys.exit(77)
HOSTILE = ["</title><script>window.taken=1</script>", "<img src=x onerror=window.taken=1>", "'\"><svg onload=window.taken=1>",
           "</text></svg><script>window.taken=1</script>", "&lt;script&gt;", "javascript:taken=1", "\u202eabc", "a\u0001b", "</script><b>"]
# Clicks every head twice, then says what it found in an attribute that the dump shows.
PROBE = """<script>
window.errors = window.errors || [];
function numbers(h) { var i = [].indexOf.call(h.parentNode.children, h);
  return [].map.call(h.closest('table').tBodies[0].rows, function(r) { return parseFloat(r.cells[i] && r.cells[i].textContent); }); }
var sorted = 0, heads = document.querySelectorAll('th.n');
heads.forEach(function(h) { h.click(); var down = numbers(h).filter(isFinite); h.click(); var up = numbers(h).filter(isFinite);
  var ok = down.every(function(x, i) { return !i || x <= down[i - 1]; }) && up.every(function(x, i) { return !i || x >= up[i - 1]; });
  sorted += ok; });
var empty = [].filter.call(document.querySelectorAll('svg'), function(s) { var b = s.getBoundingClientRect(); return b.width < 50 || b.height < 20; }).length;
var wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
document.body.setAttribute('data-found', JSON.stringify({taken: window.taken || 0, errors: window.errors, heads: heads.length,
  sorted: sorted, svg: document.querySelectorAll('svg').length, empty: empty, wide: wide,
  images: document.querySelectorAll('img, iframe, link').length, sections: [].map.call(document.querySelectorAll('h2'), function(h) { return h.textContent; })}));
</script>"""
CATCH = "<script>window.errors = []; window.onerror = function(m) { window.errors.push(String(m)); };</script>"


def made(*words):
    done = sinter(*words)
    check(done[0] == 0, words, done)


def browser(page, *words):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
                               "--user-data-dir=" + home, "--window-size=1200,2400", *words, "file://" + page],
                              capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": home})


def colours(path):
    """How many different rows of bytes a PNG has: a blank page has one."""
    data = open(path, "rb").read()
    body, at = b"", 8
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        if data[at + 4:at + 8] == b"IDAT":
            body += data[at + 8:at + 8 + size]
        at += 12 + size
    height = int.from_bytes(data[20:24], "big")
    raw = zlib.decompress(body)
    width = len(raw) // height
    return len({raw[i * width:(i + 1) * width] for i in range(height)})


def look(page, wanted):
    text = open(page, encoding="utf-8").read()
    check("\u202e" not in text, page, "a name turns the text around it")
    probed = page + ".probe.html"
    with open(probed, "w", encoding="utf-8") as file:
        file.write(text.replace("<head>", "<head>" + CATCH, 1).replace("</body></html>", PROBE + "</body></html>"))
    done = browser(probed, "--dump-dom", "--enable-logging=stderr")
    found = re.search(r'data-found="([^"]*)"', done.stdout)
    check(found, page, "the page did not come to its end", done.stderr[-300:])
    if not found:
        return
    found = json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    check(not found["taken"] and not found["images"], page, "a name became a part of the page", found)
    check(not found["errors"] and "Uncaught" not in done.stderr, page, found["errors"], done.stderr[-300:])
    check(found["heads"] and found["sorted"] == found["heads"], page, "tables do not sort", found)
    check(found["svg"] and not found["empty"] and not found["wide"], page, "drawings", found)
    missing = [s for s in wanted if not any(h.startswith(s) for h in found["sections"])]
    check(not missing, page, "lacks", missing, found["sections"])
    folder = os.path.join(os.getcwd(), "check", "pages")
    os.makedirs(folder, exist_ok=True)
    shot = os.path.join(folder, os.path.basename(page) + ".png")
    browser(page, "--screenshot=" + shot)
    check(os.path.exists(shot) and colours(shot) > 100, page, "the screenshot is empty")


with tempfile.TemporaryDirectory() as work:
    values, body = ["x"], b""
    for index in range(24):
        name = HOSTILE[index % len(HOSTILE)] + str(index)
        body += onnx.tensor(f"w{index}", onnx.FLOAT, [8, 8], onnx.numbers(64, 0.3))
        body += onnx.node("MatMul" if index % 3 else "Add", [values[-1], f"w{index}" if index % 3 else values[max(0, index - 5)]], name)
        values.append(name)
    onnx.write_model(work + "/<i>&m.onnx", body + onnx.data(11, onnx.value("x", [2, 8])) + onnx.data(12, onnx.value(values[-1], [2, 8])))
    model, digits = work + "/<i>&m.onnx", SOURCE + "/examples/digits/digits.onnx"
    sections = ["Summary", "Times of", "Accuracy", "Kernels", "Memory over the steps", "Graph", "Steps"]
    made("report", model, "-o", work + "/hostile.html", "--tune", "off", "--duration", "0.1", "--against", "reference:" + model)
    look(work + "/hostile.html", sections)
    made("build", digits, "-o", work + "/digits.sinter", "--tune", "off")
    made("report", work + "/digits.sinter", "-o", work + "/digits.html", "--duration", "0.1", "--against", "reference:" + digits)
    look(work + "/digits.html", sections)
    made("compare", model, "reference:" + model, "--all-layers", "--atol", "1e-3", "-o", work + "/layers.html")
    look(work + "/layers.html", ["Largest absolute error", "Absolute errors by size"])
    made("report", digits, "-o", work + "/still.html", "--no-run")
    look(work + "/still.html", ["Summary", "Accuracy", "Kernels", "Memory over the steps", "Graph", "Steps"])
sys.exit(1 if failures else 0)
