#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Colours of messages: on a terminal alone, not with NO_COLOR, not in a log file, and not in trtexec's lines."""
import os
import pty
import subprocess
import sys
import tempfile

from cli_rig import SINTER, check, failures


def said(on_terminal, *words, **more):
    """What a command that fails writes to stderr."""
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    done = subprocess.Popen([SINTER, *words], stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "NO_COLOR": "", **more})
    done.wait(timeout=60)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    return text


try:
    for end in pty.openpty():
        os.close(end)
except OSError:
    sys.exit(77)    # no terminals here
MISSING = ("run", "no/such.onnx")
with tempfile.TemporaryDirectory() as work:
    log = work + "/log"
    check(said(True, *MISSING).startswith("\x1b[1;31merror: \x1b[0m"), "on a terminal", repr(said(True, *MISSING)))
    timed = said(True, *MISSING, "--log-times", "--log-file", log)
    check(timed.startswith("\x1b[1;31m[") and "[E]\x1b[0m" in timed, "with times", repr(timed))
    check("[E]" in open(log).read() and "\x1b" not in open(log).read(), "in the log file")
    for what, text in (("in a pipe", said(False, *MISSING)), ("with NO_COLOR", said(True, *MISSING, NO_COLOR="1")),
                       ("exec", said(True, "exec", "--onnx=no/such.onnx"))):
        check(text and "\x1b" not in text, what, repr(text))
sys.exit(1 if failures else 0)
