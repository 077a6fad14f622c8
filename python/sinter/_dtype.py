# SPDX-License-Identifier: Apache-2.0
"""Element types: sinter's, NumPy's and DLPack's names for them. NumPy is imported when it is first needed."""
import sys

from ._abi import DTYPES, Dtype

BITS = {value: bits for _, value, bits, _ in DTYPES}
TEXT = {value: text for _, value, _, text in DTYPES}

# The type in which NumPy shows elements: NumPy's own, or unsigned integers of the same bits where NumPy has no such type.
# Types of less than 8 bits are shown as bytes, packed as they lie in memory.
TYPESTR = {Dtype.F32: "<f4", Dtype.F64: "<f8", Dtype.F16: "<f2", Dtype.BF16: "<u2", Dtype.I8: "|i1", Dtype.I16: "<i2",
           Dtype.I32: "<i4", Dtype.I64: "<i8", Dtype.U8: "|u1", Dtype.U16: "<u2", Dtype.U32: "<u4", Dtype.U64: "<u8",
           Dtype.BOOL: "|b1", Dtype.F8E4M3FN: "|u1", Dtype.F8E4M3FNUZ: "|u1", Dtype.F8E5M2: "|u1",
           Dtype.F8E5M2FNUZ: "|u1", Dtype.F8E8M0: "|u1", Dtype.I4: "|u1", Dtype.U4: "|u1", Dtype.F4E2M1: "|u1",
           Dtype.I2: "|u1", Dtype.U2: "|u1"}
# Names that others use; ml_dtypes' among them.
NAMES = {"float32": Dtype.F32, "float": Dtype.F32, "float64": Dtype.F64, "double": Dtype.F64, "float16": Dtype.F16,
         "half": Dtype.F16, "bfloat16": Dtype.BF16, "int8": Dtype.I8, "int16": Dtype.I16, "int32": Dtype.I32,
         "int64": Dtype.I64, "uint8": Dtype.U8, "uint16": Dtype.U16, "uint32": Dtype.U32, "uint64": Dtype.U64,
         "bool_": Dtype.BOOL, "float8_e4m3fn": Dtype.F8E4M3FN, "float8_e4m3fnuz": Dtype.F8E4M3FNUZ,
         "float8_e5m2": Dtype.F8E5M2, "float8_e5m2fnuz": Dtype.F8E5M2FNUZ, "float8_e8m0fnu": Dtype.F8E8M0,
         "int4": Dtype.I4, "uint4": Dtype.U4, "float4_e2m1fn": Dtype.F4E2M1, "int2": Dtype.I2, "uint2": Dtype.U2}
NAMES.update({text: Dtype(value) for _, value, _, text in DTYPES if value})
FROM_TYPESTR = {"f4": Dtype.F32, "f8": Dtype.F64, "f2": Dtype.F16, "i1": Dtype.I8, "i2": Dtype.I16, "i4": Dtype.I32,
                "i8": Dtype.I64, "u1": Dtype.U8, "u2": Dtype.U16, "u4": Dtype.U32, "u8": Dtype.U64, "b1": Dtype.BOOL}
# Formats of the buffer protocol.
FROM_FORMAT = {"f": Dtype.F32, "d": Dtype.F64, "e": Dtype.F16, "b": Dtype.I8, "h": Dtype.I16, "i": Dtype.I32,
               "q": Dtype.I64, "B": Dtype.U8, "H": Dtype.U16, "I": Dtype.U32, "Q": Dtype.U64, "?": Dtype.BOOL,
               "l": Dtype.I64, "L": Dtype.U64, "c": Dtype.U8}
FORMAT = {Dtype.F32: "f", Dtype.F64: "d", Dtype.F16: "e", Dtype.BF16: "H", Dtype.I8: "b", Dtype.I16: "h", Dtype.I32: "i",
          Dtype.I64: "q", Dtype.U8: "B", Dtype.U16: "H", Dtype.U32: "I", Dtype.U64: "Q", Dtype.BOOL: "?"}
# DLPack's (code, bits).
DLPACK = {Dtype.I8: (0, 8), Dtype.I16: (0, 16), Dtype.I32: (0, 32), Dtype.I64: (0, 64), Dtype.U8: (1, 8),
          Dtype.U16: (1, 16), Dtype.U32: (1, 32), Dtype.U64: (1, 64), Dtype.F16: (2, 16), Dtype.F32: (2, 32),
          Dtype.F64: (2, 64), Dtype.BF16: (4, 16), Dtype.BOOL: (6, 8), Dtype.F8E4M3FN: (10, 8),
          Dtype.F8E4M3FNUZ: (11, 8), Dtype.F8E5M2: (12, 8), Dtype.F8E5M2FNUZ: (13, 8), Dtype.F8E8M0: (14, 8)}
FROM_DLPACK = {pair: dtype for dtype, pair in DLPACK.items()}

_numpy = None


def numpy():
    """The module, or None where it is not installed."""
    global _numpy
    if _numpy is None:
        try:
            import numpy as found
        except ImportError:
            found = False
        _numpy = found
    return _numpy or None


_numpy_types = {}


def numpy_type(dtype):
    """The NumPy dtype in which elements of `dtype` are seen."""
    found = _numpy_types.get(dtype)
    if found is None:
        found = _numpy_types[dtype] = numpy().dtype(TYPESTR[dtype])
    return found


def dtype_of(what):
    """The Dtype for a Dtype, a name ("f32", "float32", "bfloat16"), or a NumPy or torch type. TypeError otherwise."""
    if isinstance(what, Dtype):
        return what
    name = what if isinstance(what, str) else getattr(what, "name", None) or getattr(what, "__name__", None) or str(what)
    name = name.rsplit(".", 1)[-1]
    if name in NAMES:
        return NAMES[name]
    if "numpy" in sys.modules:
        try:
            text = numpy().dtype(what).str
        except TypeError:
            text = ""
        if text[1:] in FROM_TYPESTR and text[0] in "<|=":
            return FROM_TYPESTR[text[1:]]
    raise TypeError(f"'{what}' is no element type that sinter knows: {', '.join(t for _, v, _, t in DTYPES if v)}")


def size_of(dtype, shape):
    """Bytes of a dense tensor."""
    count = 1
    for dim in shape:
        count *= dim
    return (count * BITS[dtype] + 7) // 8


def is_same_view(found, wanted):
    """May an array of type `found` hold elements of type `wanted`? Yes if they are equal, or if NumPy shows `wanted` so."""
    return found == wanted or (wanted not in FORMAT or wanted == Dtype.BF16) and FROM_TYPESTR[TYPESTR[wanted][1:]] == found
