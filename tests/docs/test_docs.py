#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python and shell blocks of the pages for those who come from elsewhere, each page in a folder with the digits,
and looks up each link between pages."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SINTER_SOURCE_DIR"], "tests", "python"))
import rig  # noqa: E402

PAGES = ("from-tensorrt", "from-onnxruntime", "from-pytorch")
BEFORE = "import numpy as np\nimage = np.load('seven.npy').reshape(1, 1, 28, 28)\n"


def test_blocks():
    if os.environ.get("SINTER_TEST_PRELOADED"):
        return                                  # sanitizers would be in every process that a block starts
    count = 0
    for page in PAGES:
        folder = rig.FOLDER / page
        folder.mkdir()
        shutil.copy(rig.DIGITS, folder)
        shutil.copy(rig.SEVEN, folder)
        text = (rig.ROOT / f"docs/{page}.md").read_text()
        environment = dict(os.environ, PATH=f"{rig.BIN.parent}:{os.environ['PATH']}", SINTER_TENSORRT_DEVICE="cpu")
        for language, block in re.findall(r"^```(python|bash)\n(.*?)^```", text, re.S | re.M):
            command = [sys.executable, "-c", BEFORE + block] if language == "python" else ["bash", "-e", "-c", block]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, f"docs/{page}.md: {block}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
            assert "argmax" not in block or done.stdout.strip() == "7", done.stdout
            count += 1
    assert count >= 5, f"{count} blocks"


def test_links():
    wrong = []
    for page in sorted((rig.ROOT / "docs").glob("*.md")):
        text = page.read_text()
        for target, anchor in re.findall(r"\]\((?:([\w./-]+\.md))?(#[\w-]+)?\)", text):
            other = page.parent / target if target else page
            if not other.exists():
                wrong.append(f"{page.name}: {target} is not there")
            elif anchor:
                heads = {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-")
                         for h in re.findall(r"^#+ (.*)$", other.read_text(), re.M)}
                if anchor[1:] not in heads:
                    wrong.append(f"{page.name}: {target}{anchor} is no heading")
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    rig.main(__name__)
