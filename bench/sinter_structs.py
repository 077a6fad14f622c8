# SPDX-License-Identifier: Apache-2.0
"""The structs of include/sinter, as ctypes sees them. Run as a program it has the C compiler say whether they still
agree with the headers: nothing printed and status 0 where they do."""
import ctypes as C
import os
import pathlib
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"
RANK_MAX = 16

STAGE_FN = C.CFUNCTYPE(None, C.c_void_p, C.c_char_p, C.c_void_p, C.c_size_t)
PROGRESS_FN = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p, C.c_double)


class sinter_error(C.Structure):
    _fields_ = [("status", C.c_int), ("length", C.c_uint32), ("text", C.c_char * 2048)]


class sinter_tensor(C.Structure):
    _fields_ = [("dtype", C.c_int), ("rank", C.c_uint32), ("dim", C.c_int64 * RANK_MAX), ("data", C.c_void_p),
                ("place", C.c_int)]


class sinter_allocator(C.Structure):
    _fields_ = [("user", C.c_void_p), ("resize", C.c_void_p)]


class sinter_buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("size", C.c_size_t), ("allocator", sinter_allocator)]


class sinter_shape_range(C.Structure):
    _fields_ = [("input", C.c_char_p), ("rank", C.c_uint32), ("min", C.c_int64 * RANK_MAX),
                ("opt", C.c_int64 * RANK_MAX), ("max", C.c_int64 * RANK_MAX)]


class sinter_profile(C.Structure):
    _fields_ = [("shape", C.POINTER(sinter_shape_range)), ("count", C.c_uint32)]


class sinter_input_value(C.Structure):
    _fields_ = [("input", C.c_char_p), ("value", C.POINTER(sinter_tensor))]


class sinter_sample(C.Structure):
    _fields_ = [("value", C.POINTER(sinter_input_value)), ("count", C.c_uint32)]


class sinter_build_options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("env", C.c_void_p), ("device", C.c_char_p), ("threads", C.c_uint32),
                ("tune", C.c_int), ("timing_cache", C.c_char_p), ("cache_only", C.c_uint32), ("kernel_cache", C.c_char_p),
                ("branches", C.c_int), ("no_code", C.c_uint32), ("math", C.c_int), ("allow", C.c_uint32), ("lower", C.c_int),
                ("budget", C.c_double), ("capacity", C.c_uint64), ("rules", C.c_char_p), ("rule_limit", C.c_uint64), ("isa", C.c_char_p),
                ("refittable", C.c_uint32), ("verify", C.c_uint32), ("workspace", C.c_uint64),
                ("profile", C.POINTER(sinter_profile)), ("profile_count", C.c_uint32),
                ("value", C.c_void_p), ("value_count", C.c_uint32), ("sample", C.POINTER(sinter_sample)),
                ("sample_count", C.c_uint32), ("state", C.c_void_p), ("state_count", C.c_uint32),
                ("equal", C.c_void_p), ("equal_count", C.c_uint32), ("stage", STAGE_FN), ("progress", PROGRESS_FN), ("user", C.c_void_p),
                ("report", C.c_void_p)]


class sinter_engine_options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("env", C.c_void_p), ("device", C.c_char_p), ("threads", C.c_uint32),
                ("kernel_cache", C.c_char_p), ("isa", C.c_char_p), ("trust_code", C.c_uint32), ("no_device", C.c_uint32)]


class sinter_context_options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("stream", C.c_void_p), ("profile", C.c_uint32), ("timing", C.c_uint32),
                ("phases", C.c_uint32), ("lazy", C.c_uint32)]


class sinter_io(C.Structure):
    _fields_ = [("name", C.c_char_p), ("is_input", C.c_uint32), ("dtype", C.c_int), ("rank", C.c_uint32),
                ("dim", C.c_int64 * RANK_MAX), ("dim_text", C.c_char_p * RANK_MAX), ("min", C.c_int64 * RANK_MAX),
                ("opt", C.c_int64 * RANK_MAX), ("max", C.c_int64 * RANK_MAX),
                ("value_min", C.c_int64), ("value_max", C.c_int64)]


class sinter_step_time(C.Structure):
    _fields_ = [("name", C.c_char_p), ("problem", C.c_char_p), ("kernel", C.c_char_p), ("runs", C.c_uint64),
                ("total_ns", C.c_uint64), ("min_ns", C.c_uint64)]


STRUCTS = [sinter_error, sinter_tensor, sinter_allocator, sinter_buffer, sinter_shape_range, sinter_profile,
           sinter_input_value, sinter_sample, sinter_build_options, sinter_engine_options, sinter_context_options,
           sinter_io, sinter_step_time]


def layout_errors(compiler=None):
    """What the headers and the structs above disagree on: a list of lines, empty where all is well."""
    ours, source = {}, ["#include <sinter/sinter.h>", "#include <stdio.h>", "int main(void) {"]
    for struct in STRUCTS:
        name = struct.__name__
        ours[f"sizeof {name}"] = C.sizeof(struct)
        source.append(f'printf("sizeof {name}=%zu\\n", sizeof({name}));')
        for field in struct._fields_:
            ours[f"{name}.{field[0]}"] = getattr(struct, field[0]).offset
            source.append(f'printf("{name}.{field[0]}=%zu\\n", offsetof({name}, {field[0]}));')
    source.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "layout")
        command = [compiler or os.environ.get("CC", "cc"), "-x", "c", "-", f"-I{INCLUDE}", "-o", program]
        made = subprocess.run(command, input="\n".join(source), text=True, capture_output=True)
        if made.returncode:
            return [made.stderr.strip()]
        lines = subprocess.run([program], text=True, capture_output=True, check=True).stdout.split("\n")
    theirs = dict(line.split("=") for line in lines if line)
    return [f"{key}: {value} here, {theirs.get(key)} in the header" for key, value in ours.items()
            if theirs.get(key) != str(value)]


if __name__ == "__main__":
    found = layout_errors()
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
