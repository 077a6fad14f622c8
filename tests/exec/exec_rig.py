# SPDX-License-Identifier: Apache-2.0
"""What the tests of `sinter exec` share: the flags as the command lists them, runs of the command, seeded values."""
import os
import re
import subprocess

SINTER, SOURCE = os.environ["SINTER_BIN"], os.environ["SINTER_SOURCE_DIR"]
MODEL = SOURCE + "/examples/digits/digits.onnx"
LINE = re.compile(r"^(\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[[VIWE]\] .*|&&&& (RUNNING|PASSED|FAILED) TensorRT\.trtexec \[TensorRT v\d+\] \[sinter [0-9.]+\] # .*)$")
QUICK = ["--iterations=1", "--duration=0", "--warmUp=0"]
BUILD = ["--onnx=" + MODEL, "--builderOptimizationLevel=0"]


def flags():
    """name -> (form of the value, versions, effect), and (name, word) -> effect of words that are not just taken."""
    page = subprocess.run([SINTER, "exec", "--flags"], capture_output=True, text=True, check=True).stdout
    found, words = {}, {}
    for row in re.finditer(r"^\| `--(\w+)(=[^`]+)?` \| ([\w ]+) \| ([\w ]+) \| (.+) \|$", page, re.M):
        name, form, versions, effect, text = row.groups()
        form = (form or "").lstrip("=").replace("\\|", "|")
        assert len(text) > 8, row.group(0)
        if name in found:
            words[name, form] = effect
        else:
            found[name] = (form, versions, effect)
    return found, words


class Done:
    def __init__(self, done, words):
        self.status, self.out, self.err, self.words = done.returncode, done.stdout, done.stderr, words

    def problem(self):
        """What is wrong with the frame: lines of one form, on the right stream, and an exit status that agrees with them."""
        if self.status not in (0, 1):
            return "exit status %d" % self.status
        lines = self.out.splitlines()
        ends = [line for line in lines if line.startswith("&&&& ")]
        want = "&&&& PASSED" if self.status == 0 else "&&&& FAILED"
        if len(ends) != 2 or not ends[0].startswith("&&&& RUNNING") or not ends[1].startswith(want) or lines[-1] != ends[1]:
            return "the &&&& lines are %s" % ends
        has_help = "usage: sinter exec" in self.out
        if not has_help and not all(LINE.match(line) and "] [W] " not in line[:30] and "] [E] " not in line[:30] for line in lines):
            return "a line of stdout: %s" % [line for line in lines if not LINE.match(line)][:2]
        if not all(re.match(r"\[[^]]+\] \[[WE]\] ", line) for line in self.err.splitlines()):
            return "a line of stderr: " + self.err
        if (self.status == 1) != ("] [E] " in self.err):
            return "status %d with stderr %s" % (self.status, self.err)
        return None


def run(*words, cwd=None, name=None):
    command = [name] if name else [SINTER, "exec"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, cwd=cwd, errors="surrogateescape")
    return Done(done, words)
