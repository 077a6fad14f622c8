#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/network.md has the tables that layers.def makes."""
import os
import pathlib
import subprocess
import sys

root = pathlib.Path(os.environ["SINTER_SOURCE_DIR"])
sys.exit(subprocess.run([sys.executable, str(root / "tools" / "write_network_docs.py"), "--check"]).returncode)
