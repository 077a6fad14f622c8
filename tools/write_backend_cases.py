#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node cases of the installed `onnx` package as folders that `sinter test` and tools/backend_cases.py read.

--without names a folder of cases: only cases that it lacks are written. So cases that are newer than a stored set can be
looked at: tools/write_backend_cases.py OUT --without build/onnx_backend; sinter test OUT/node"""
import argparse
import pathlib

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def message_of(value, info):
    if isinstance(value, onnx.TensorProto):
        return value
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        to = folder / f"test_data_set_{number}"
        to.mkdir(exist_ok=True)
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, value in enumerate(values):
                (to / f"{kind}_{i}.pb").write_bytes(message_of(value, infos[i]).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--without", type=pathlib.Path)
    args = parser.parse_args()
    count = 0
    for case in collect_testcases(None):
        if args.without and (args.without / "node" / case.name).is_dir():
            continue
        write(case, args.out / "node" / case.name)
        count += 1
    print(f"summary: {count} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
