#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/sinter/_abi.py, the ctypes declarations of include/sinter, from the headers themselves, and the options in
python/sinter/__init__.pyi.

The C preprocessor expands the headers; a small parser reads what is left: structs, enums, functions, callbacks. A form
that the parser does not know is an error. Comments become docstrings, tables of options become tuples.

    write_python.py            writes the files
    write_python.py --check    changes nothing; fails if a file is out of date"""
import argparse
import ast
import difflib
import os
import pathlib
import pprint
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
OUTPUT = ROOT / "python" / "sinter" / "_abi.py"
STUB = ROOT / "python" / "sinter" / "__init__.pyi"
LIMITS = {"INT32_MAX": 2**31 - 1, "INT64_MAX": 2**63 - 1, "UINT8_MAX": 255, "UINT16_MAX": 65535,
          "UINT32_MAX": 2**32 - 1, "UINT64_MAX": 2**64 - 1, "SIZE_MAX": 2**64 - 1}
BASE = {"void": None, "char": "c_char", "int": "c_int", "unsigned": "c_uint", "float": "c_float", "double": "c_double",
        "size_t": "c_size_t", "int8_t": "c_int8", "uint8_t": "c_uint8", "int16_t": "c_int16", "uint16_t": "c_uint16",
        "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "bool": "c_bool",
        "uintptr_t": "c_size_t"}


def fail(text):
    sys.exit("write_python.py: " + text)


def preprocess(source):
    """`source` after the preprocessor, with empty standard headers and without attributes."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stdint.h", "stddef.h", "stdbool.h"):
            pathlib.Path(folder, name).write_text("")
        command = [os.environ.get("CC", "cc"), "-E", "-P", "-undef", "-nostdinc", "-DSINTER_STATIC",
                   "-I", str(INCLUDE), "-I", folder, "-x", "c", "-"]
        command += [f"-D{name}={value}" for name, value in LIMITS.items()]
        done = subprocess.run(command, input=source, text=True, capture_output=True)
    if done.returncode:
        fail(done.stderr)
    return done.stdout


def split_top(text, separator):
    """Splits at separators outside brackets, braces and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c == '"' and text[i - 1:i] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


class Headers:
    """What the headers declare, in order."""

    def __init__(self):
        self.files = sorted((INCLUDE / "sinter").glob("*.h"))
        self.raw = "\n".join(f.read_text() for f in self.files)
        self.constants, self.enums, self.structs, self.callbacks, self.functions = {}, {}, {}, {}, {}
        self.opaque, self.order = set(), []
        every = "".join(f'#include "sinter/{f.name}"\n' for f in self.files)
        self.every = every
        for statement in split_top(preprocess(every), ";"):
            self.read(re.sub(r"\s+", " ", statement))

    # ---- declarations ----

    def read(self, text):
        enum = re.fullmatch(r"(?:typedef )?enum ?(\w*) ?\{(.*)\} ?(\w*)", text)
        struct = re.fullmatch(r"typedef struct (\w+) ?\{(.*)\} ?(\w+)", text)
        opaque = re.fullmatch(r"typedef struct (\w+) (\w+)", text)
        callback = re.fullmatch(r"typedef (.*?)\( ?\* ?(\w+) ?\) ?\((.*)\)", text)
        function = re.fullmatch(r"(?:extern )?(.*?)\b(\w+) ?\((.*)\)", text)
        if enum:
            self.read_enum(enum.group(3) or enum.group(1), enum.group(2))
        elif struct:
            self.structs[struct.group(3)] = None
            self.order.append(("struct", struct.group(3)))
            self.structs[struct.group(3)] = [f for d in split_top(struct.group(2), ";") for f in self.fields(d)]
        elif opaque:
            self.opaque.add(opaque.group(2))
        elif callback:
            self.callbacks[callback.group(2)] = self.signature(callback.group(1), callback.group(3))
            self.order.append(("callback", callback.group(2)))
        elif function:
            self.functions[function.group(2)] = self.signature(function.group(1), function.group(3), is_callback=False)
        else:
            fail(f"a declaration that is not understood: {text}")

    def value(self, expression):
        expression = re.sub(r"\b(\d+|0x[0-9a-fA-F]+)[uUlL]+\b", r"\1", expression)
        expression = re.sub(r"\( ?u?int\d+_t ?\)", "", expression)
        try:
            return eval(expression, {"__builtins__": {}}, dict(self.constants))    # constants of our own headers
        except Exception as e:
            fail(f"the value '{expression}': {e}")

    def read_enum(self, name, body):
        members, last = {}, -1
        for item in split_top(body, ","):
            key, _, expression = item.partition("=")
            last = self.value(expression.strip()) if expression else last + 1
            members[key.strip()] = self.constants[key.strip()] = last
        if name:
            self.enums[name] = members
            self.order.append(("enum", name))

    def fields(self, declaration):
        pointer = re.fullmatch(r"(.*?)\( ?\* ?(\w+) ?\) ?\((.*)\)", declaration)
        if pointer:
            return [(pointer.group(2), self.function_type(*self.signature(pointer.group(1), pointer.group(3))))]
        first, *more = split_top(declaration, ",")
        base = re.match(r"((?:const )?(?:struct |enum )?\w+)", first).group(1)
        return [self.declarator(base, d) for d in [first[len(base):]] + more]

    def declarator(self, base, text):
        match = re.fullmatch(r"((?: ?\*| ?const\b)*) ?(\w*) ?((?:\[[^]]*\] ?)*)", text.strip())
        if not match:
            fail(f"a declarator that is not understood: {base} {text}")
        type_ = self.ctype(base, match.group(1).count("*"))
        for size in reversed(re.findall(r"\[([^]]*)\]", match.group(3))):
            type_ = f"{type_} * {self.value(size)}"
        return match.group(2), type_

    def ctype(self, base, stars):
        word = re.sub(r"\b(const|struct|enum)\b", "", base).strip()
        if stars == 0:
            if word in BASE:
                return BASE[word]
            return "c_int" if word in self.enums else word if word in self.structs or word in self.callbacks else \
                fail(f"an unknown type: {word}")
        if word in self.opaque and word not in self.structs or word == "void":
            type_, stars = "c_void_p", stars - 1
        elif word == "char":
            type_, stars = "c_char_p", stars - 1
        else:
            type_ = self.ctype(word, 0)
        for _ in range(stars):
            type_ = f"POINTER({type_})"
        return type_

    def signature(self, result, arguments, is_callback=True):
        given = [] if arguments.strip() in ("void", "") else split_top(arguments, ",")
        types = []
        for i, argument in enumerate(given):
            pointer = re.fullmatch(r"(.*?)\( ?\* ?(\w+) ?\) ?\((.*)\)", argument)
            if pointer:
                type_ = self.function_type(*self.signature(pointer.group(1), pointer.group(3)))
                name = pointer.group(2)
            else:
                base = re.match(r"((?:const )?(?:struct |enum )?\w+)", argument).group(1)
                name, type_ = self.declarator(base, argument[len(base):])
                if "[" in argument:                                     # an array is a pointer here
                    type_ = f"POINTER({type_.split(' * ')[0]})"
            # Text with a length need not end in a NUL.
            if is_callback and type_ == "c_char_p" and i + 1 < len(given) and given[i + 1].startswith("size_t"):
                type_ = "c_void_p"
            types.append((name, type_))
        base = re.match(r"((?:const )?\w+)", result.strip()).group(1)
        return self.ctype(base, result.count("*")), types

    @staticmethod
    def function_type(result, arguments):
        return f"CFUNCTYPE({', '.join([str(result)] + [t for _, t in arguments])})"

    # ---- what stands in the text of the headers only ----

    def comment(self, pattern):
        """The comment that stands right before the declaration that `pattern` finds (its group, where it has one), without
        decoration. Functions that follow each other without an empty line share one."""
        found = re.search(pattern, self.raw, re.M)
        if not found:
            return ""
        before = self.raw[:found.start(found.lastindex or 0)].rstrip(" ")
        lines = before.split("\n")
        while lines and lines[-1].strip() == "":
            lines.pop()
            if lines and not lines[-1].strip().endswith("*/"):
                return ""
        for _ in range(12):                             # declarations between the comment and this one
            if not lines or lines[-1].strip().endswith("*/") or not lines[-1].strip():
                break
            if "/*" in lines[-1] and "*/" in lines[-1]:
                break
            lines.pop()
        text = "\n".join(lines).rstrip()
        if not text.endswith("*/") or "/*" not in text:
            return ""
        start = text.rindex("/*")
        if text[:start].split("\n")[-1].strip():        # behind a declaration, not before one
            return ""
        body = text[start + 2:-2]
        body = "\n".join(re.sub(r"^ \* ?", "", line) for line in body.split("\n")).strip()
        return "" if body.startswith(("X(", "SPDX", "----")) else body

    def value_macros(self):
        return dict(re.findall(r'^#define (SINTER_\w+) (\d+|"\w+")$', self.raw, re.M))

    def option_tables(self):
        """Rows of each SINTER_*_SCALARS: (field, kind, ctype, initial, most, words, text)."""
        tables = {}
        for macro in re.findall(r"^#define (SINTER_\w+_SCALARS)\(X\)", self.raw, re.M):
            made = []
            for kind, type_, field, initial, most, words, text in self.rows(macro):
                base = re.match(r"((?:const )?\w+)", type_).group(1)
                made.append((field, kind, self.ctype(base, type_.count("*")), self.value(initial),
                             float(most) if re.search(r"[.e]", most) else self.value(most), joined(words), joined(text)))
            tables[macro[len("SINTER_"):-len("_SCALARS")] + "_OPTIONS"] = made
        return tables

    def rows(self, macro):
        """Rows of a table X(a, b, …), each as a list of texts."""
        text = preprocess(self.every + f"\n@BEGIN {macro}(@ROW)\n").split("@BEGIN", 1)[1]
        return [split_top(row, ",") for row in re.findall(r"@ROW\((.*?)\)(?= *@ROW|\s*$)", re.sub(r"\s+", " ", text))]

    def limits(self):
        return [(r[0], self.value(r[1]), joined(r[4])) for r in self.rows("SINTER_LIMITS")]

    def status_texts(self):
        return [(r[0], joined(r[2])) for r in self.rows("SINTER_STATUS_MAP")]

    def dtype_rows(self):
        return [(r[0], int(r[1]), int(r[2]), joined(r[3])) for r in self.rows("SINTER_DTYPE_MAP")]

    def format_rows(self):
        return [(r[0], *map(int, r[3:])) for r in self.rows("SINTER_FORMAT_MAP")]

    def compat_tables(self):
        """The tables of compat/NvInferTables.h, as text of Python."""
        names = "SINTER_UNUSED_FLAGS", "SINTER_UNUSED_SETTINGS", "SINTER_REFUSED_SETTINGS"
        source = '#include "sinter/compat/NvInferTables.h"\n#define P(name, v2, v3, outputs, fields) (#name, v2 v3, outputs, (fields)),\n' \
                 '#define I(name, count) (#name, "INT32", count),\n#define F(name, count) (#name, "FLOAT32", count),\n' \
                 "#define X(name, text) #name: text,\n(SINTER_SHIPPED_PLUGINS(P, I, F))@"
        parts = preprocess(source + "@".join(f"{{{name}(X)}}" for name in names)).split("@")
        plugins, flags, *settings = [ast.literal_eval(part.strip()) for part in parts]
        return plugins, flags, {**settings[0], **settings[1]}


def joined(strings):
    """The text of neighbouring C strings."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace('\\"', '"').replace("\\\\", "\\")


def docstring(text, indent):
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = ['"""' + (text or "")]
    if "\n" in text or len(text) > 100:
        lines[0] = '"""' + text + "\n"
    return textwrap.indent(lines[0] + '"""', indent)


def class_name(name):
    return "".join(part.capitalize() for part in name[len("sinter_"):].split("_"))


def short_names(members):
    prefix = os.path.commonprefix(list(members))
    prefix = prefix[:prefix.rindex("_") + 1]
    keys = list(members)
    if keys[-1].endswith("_COUNT") and members[keys[-1]] == len(keys) - 1:      # how many there are
        keys.pop()
    made = {key[len(prefix):]: members[key] for key in keys}
    return {("N" + key if key[0].isdigit() else key): value for key, value in made.items()}


def write(h):
    out = ["# SPDX-License-Identifier: Apache-2.0",
           "# Generated by tools/write_python.py from include/sinter. Do not edit.",
           '"""The C API as ctypes sees it: structs, enums, callbacks, functions, tables of options."""',
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int,  # noqa: F401",
           "                    c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint, c_uint8, c_uint16, c_uint32, c_uint64,",
           "                    c_void_p)",
           "from enum import IntEnum", ""]
    out += [f"{name[len('SINTER_'):]} = {value}" for name, value in h.value_macros().items()]
    named = {key for members in h.enums.values() for key in members}
    out += [f"{name[len('SINTER_'):]} = {value}" for name, value in h.constants.items() if name not in named]
    for kind, name in h.order:
        out.append("\n")
        doc = h.comment(rf"^typedef (?:enum|struct) {name}\b.*\{{")
        if kind == "enum":
            out += [f"class {class_name(name)}(IntEnum):", docstring(doc or f"The values of {name}.", "    ")]
            out += [f"    {key} = {value}" for key, value in short_names(h.enums[name]).items()]
        elif kind == "struct":
            out += [f"class {name}(Structure):", docstring(doc or f"The struct {name}.", "    ")]
            out.append("    _fields_ = [" + ",\n                ".join(f'("{f}", {t})' for f, t in h.structs[name]) + "]")
        else:
            doc = h.comment(rf"^typedef .*\(\*{name}\)")
            out += [f"# {line}".rstrip() for line in doc.split("\n") if doc]
            out.append(f"{name} = {h.function_type(*h.callbacks[name])}")
    out.append("\n\n# name: (type of the result, types of the arguments, names of the arguments, documentation)\nFUNCTIONS = {")
    for name, (result, arguments) in sorted(h.functions.items()):
        doc = h.comment(rf"^SINTER_API\b[^(;]*\b({name})\(") # comments may name it before
        types = ", ".join(t for _, t in arguments)
        names = " ".join(n for n, _ in arguments)
        out.append(f'    "{name}": ({result}, [{types}], "{names}",\n' + docstring(doc, "") + "),")
    out.append("}\n")
    tables = h.option_tables()
    out.append("# Tables of options: (field, kind, ctype, initial value, largest value, words, text); option.h explains the kinds.")
    for name, rows in tables.items():
        body = ",\n".join(f'    ("{r[0]}", "{r[1]}", {r[2]}, {r[3]!r}, {r[4]!r}, {r[5]!r},\n     {r[6]!r})' for r in rows)
        out.append(f"{name} = (\n{body},\n)")
    out.append("\n# (name, default, text)\nLIMITS = " + pprint.pformat(tuple(h.limits()), width=116))
    out.append("\n# (name, value, bits of an element, text)\nDTYPES = " + pprint.pformat(tuple(h.dtype_rows()), width=116))
    out.append("\n# (name, lanes, behind, is_last): SINTER_FORMAT_MAP of network.h\nFORMATS = " +
               pprint.pformat(tuple(h.format_rows()), width=116))
    out.append("\n# (name, what it means)\nSTATUSES = " + pprint.pformat(tuple(h.status_texts()), width=116))
    plugins, flags, settings = h.compat_tables()
    out.append("\n# compat/NvInferTables.h: (name, versions, outputs, fields), a field is (name, type, elements; 0: weights)\nSHIPPED_PLUGINS = " +
               pprint.pformat(plugins, width=116, compact=True))
    out.append("\n# flag of BuilderFlag: why it changes nothing\nUNUSED_FLAGS = " + pprint.pformat(flags, width=116, sort_dicts=False))
    out.append("\n# setting of a build: what is said of it\nSAID_OF_SETTINGS = " + pprint.pformat(settings, width=116, sort_dicts=False))
    out.append("\nSTRUCTS = (" + ",\n           ".join(name for kind, name in h.order if kind == "struct") + ")")
    out.append("ENUMS = {" + ",\n         ".join(f'"{name}": {class_name(name)}' for kind, name in h.order if kind == "enum") + "}")
    return "\n".join(out) + "\n"


def write_stub(h, text):
    """The stub with the keywords of the tables of options."""
    types = {"FLAG": "bool", "COUNT": "int", "REAL": "float", "SET": "Words"}
    tables = {name[:-len("_OPTIONS")]: rows for name, rows in h.option_tables().items()}

    def keywords(match):
        rows = [r for r in tables[match.group(2)] if r[0] != "profile"]
        lines = [f"{match.group(1)}{r[0]}: {types.get(r[1], 'str')} = ...,\n" for r in rows]
        return f"{match.group(1)}# OPTIONS {match.group(2)}\n{''.join(lines)}{match.group(1)}# END\n"
    return re.sub(r"( +)# OPTIONS (\w+)\n.*? +# END\n", keywords, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compares")
    options = parser.parse_args()
    headers = Headers()
    for path, text in ((OUTPUT, write(headers)), (STUB, write_stub(headers, STUB.read_text()))):
        old = path.read_text() if path.exists() else ""
        if not options.check:
            path.write_text(text)
        elif text != old:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(path), "the headers", n=1))
            fail(f"{path.relative_to(ROOT)} is out of date: tools/write_python.py writes it again")


if __name__ == "__main__":
    main()
