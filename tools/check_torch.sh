#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests sinter.torch with PyTorch: its own tests, and samples of torch's operator database. PyTorch comes from
# SINTER_TORCH_PYTHON, a Python that has it, or is installed into build/check/torch (gigabytes, once).
set -eu
build=$(cd "${1:-build}" && pwd)
python=${SINTER_TORCH_PYTHON:-$build/check/torch/bin/python}
if [ ! -x "$python" ]; then
    python3 -m venv "$build/check/torch"
    if ! "$build/check/torch/bin/pip" install -q torch torchvision transformers numpy expecttest; then
        rm -rf "$build/check/torch"
        echo "PyTorch could not be installed"
        exit 77
    fi
fi
export SINTER_BIN=$build/sinter
"$python" tests/python/torch/test_torch.py
if "$python" -c 'import expecttest'; then
    "$python" tests/python/torch/opinfo.py --samples 2 --dtypes float32,float16,int64,bool
fi
