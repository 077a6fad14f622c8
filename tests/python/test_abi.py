# SPDX-License-Identifier: Apache-2.0
"""The generated declarations against the headers, the C compiler, and the library."""
import ast
import ctypes
import os
import subprocess
import sys

import rig
import sinter
from sinter import _abi, _library


def test_declarations_are_up_to_date():
    done = subprocess.run([sys.executable, str(rig.ROOT / "tools" / "write_python.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sizes_offsets_and_values_are_those_of_the_compiler():
    ours, source = {}, ["#include <stddef.h>", "#include <stdio.h>", "#include <sinter/sinter.h>", "int main(void) {"]

    def ask(key, expression, value):
        ours[key] = value
        source.append(f'printf("{key}=%lld\\n", (long long)({expression}));')

    for struct in _abi.STRUCTS:
        name = struct.__name__
        ask(f"sizeof {name}", f"sizeof({name})", ctypes.sizeof(struct))
        for field in struct._fields_:
            at = getattr(struct, field[0])
            ask(f"{name}.{field[0]}", f"offsetof({name}, {field[0]})", at.offset)
            ask(f"sizeof {name}.{field[0]}", f"sizeof((({name} *)0)->{field[0]})", at.size)
    for name, enum in _abi.ENUMS.items():
        ask(f"sizeof {name}", f"sizeof({name})", 4)
    source += ["return 0; }"]
    program = rig.FOLDER / "probe"
    (rig.FOLDER / "probe.c").write_text("\n".join(source))
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([os.environ.get("CC", "cc"), str(rig.FOLDER / "probe.c"), "-I", str(rig.ROOT / "include"), "-o", str(program)],
                   check=True, env=environment)
    lines = subprocess.run([str(program)], capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    theirs = {k: int(v) for k, v in (line.rsplit("=", 1) for line in lines)}
    assert ours == theirs, sorted(set(ours.items()) ^ set(theirs.items()))
    assert len(ours) > 150


def test_functions_are_exported():
    for name in _abi.FUNCTIONS:
        assert getattr(_library.lib, name)
    assert len(_abi.FUNCTIONS) > 40
    undocumented = [n for n, row in _abi.FUNCTIONS.items() if not row[3]]
    assert len(undocumented) < len(_abi.FUNCTIONS) // 3, undocumented


def test_options_are_those_of_the_library():
    for table in ("build", "engine", "context"):
        rows = _library.option_rows(getattr(_library.lib, f"sinter_{table}_option"))
        mine = getattr(_abi, table.upper() + "_OPTIONS")
        struct = getattr(_abi, f"sinter_{table}_options")
        assert [r[0] for r in mine] == list(rows)
        for field, kind, _, initial, most, words, text in mine:
            row = rows[field].contents
            assert (row.offset, row.size) == (getattr(struct, field).offset, getattr(struct, field).size)
            assert _abi.OptionKind(row.kind).name == kind and row.initial == initial
            assert (row.words.decode(), row.text.decode()) == (words, text)


def test_statuses_and_types_have_their_texts():
    for name, text in _abi.STATUSES:
        assert _library.lib.sinter_status_text(_abi.Status[name]).decode() == text
    for name, value, bits, text in _abi.DTYPES:
        assert _library.lib.sinter_dtype_name(value).decode() == text
        assert _library.lib.sinter_dtype_bits(value) == bits == _library.lib.sinter_dtype_bits(_abi.Dtype[name])


def test_syntax_is_that_of_python_3_9():
    files = [f for folder in ("python", "tests/python") for f in (rig.ROOT / folder).rglob("*.py")]
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=(3, 9))
    assert len(files) > 10


def test_stub_names_what_is_there():
    """Every name, and every member of a class, that __init__.pyi has types for exists; and no public name lacks types."""
    tree = ast.parse((rig.ROOT / "python" / "sinter" / "__init__.pyi").read_text(), feature_version=(3, 9))
    named = set()
    for item in tree.body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            named.add(item.name)
            found = getattr(sinter, item.name)
            for member in item.body if isinstance(item, ast.ClassDef) and hasattr(found, "__dict__") else ():
                if isinstance(member, ast.FunctionDef):
                    assert hasattr(found, member.name), f"{item.name}.{member.name}"
        elif isinstance(item, ast.ImportFrom):
            named.update(a.asname for a in item.names if a.asname)
    assert set(sinter.__all__) <= named | {"library_path"}, set(sinter.__all__) - named


def test_version():
    assert _library.version == f"{_abi.VERSION_MAJOR}.{_abi.VERSION_MINOR}.{_abi.VERSION_PATCH}"


rig.main(__name__)
