#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An engine that the command builds runs in a program that has the runtime library and nothing that builds.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$SINTER_BIN" build "$SINTER_SOURCE_DIR/examples/digits/digits.onnx" -o "$scratch/digits.engine" --tune off >/dev/null
tests/runtime_load_and_run "$scratch/digits.engine" | grep -q '40 bytes of f32'
if tests/runtime_load_and_run "$SINTER_SOURCE_DIR/examples/digits/digits.onnx" 2>"$scratch/error"; then
    echo "a model was taken for an engine"
    exit 1
fi
grep -q 'no engine file' "$scratch/error"
