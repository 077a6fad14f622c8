# SPDX-License-Identifier: Apache-2.0
"""What the Python tests of the command share: running it, and counting what fails."""
import os
import subprocess

SINTER = os.environ["SINTER_BIN"]
failures = []


def check(holds, *what):
    if not holds:
        failures.append(what)
        print("FAIL", *what)


def sinter(*words):
    """Exit status, stdout, stderr."""
    done = subprocess.run([SINTER, *map(str, words)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr
