# SPDX-License-Identifier: Apache-2.0
"""Finds and opens libsinter.so, gives its functions their types, and turns failures into exceptions."""
import collections
import contextlib
import ctypes
import os
from ctypes import byref

from . import _abi


class Error(Exception):
    """A call of sinter failed.

    `status` says what to do (sinter.Status), `causes` what happened: a list of (text, place in sinter's source), the
    innermost cause first. str() gives all of it."""
    status = _abi.Status.INTERNAL

    def __init__(self, text, status=None):
        super().__init__(text)
        if status is not None:
            self.status = status
        import re
        self.causes = []
        for line in text.splitlines():
            found = re.fullmatch(r"\s*(?:error: )?(.*?)(?:\s+\[([^]]*:\d+)\])?\s*", line)
            if found and found.group(1):
                self.causes.append((found.group(1), found.group(2) or ""))


class InvalidArgument(Error, ValueError):
    """Correct the call: the text names the argument, the value found, the value wanted."""
    status = _abi.Status.INVALID_ARG


class InvalidModel(Error, ValueError):
    """The model or engine is malformed, or data had an index out of range."""
    status = _abi.Status.INVALID_MODEL


class Unsupported(Error, NotImplementedError):
    """Valid, but not possible here; a build lists all nodes concerned at once."""
    status = _abi.Status.UNSUPPORTED


class NoMemory(Error, MemoryError):
    """Memory, or a limit, is exhausted."""
    status = _abi.Status.NO_MEMORY


class DeviceError(Error, RuntimeError):
    """A device reported a failure."""
    status = _abi.Status.DEVICE


class FileError(Error, OSError):
    """A file could not be read or written."""
    status = _abi.Status.IO


class Incompatible(Error, RuntimeError):
    """Build the engine again for this library or machine."""
    status = _abi.Status.INCOMPATIBLE


class InternalError(Error, RuntimeError):
    """A bug of sinter: please report it."""
    status = _abi.Status.INTERNAL


class Cancelled(Error, RuntimeError):
    """A callback, or Context.cancel, ended the work."""
    status = _abi.Status.CANCELLED


ERRORS = {int(c.status): c for c in (InvalidArgument, InvalidModel, Unsupported, NoMemory, DeviceError, FileError,
                                     Incompatible, InternalError, Cancelled)}


def candidates():
    """Where the library may be, in order: SINTER_LIBRARY alone, if it is set; the package; the tree's build folder;
    where the system's loader looks."""
    named = os.environ.get("SINTER_LIBRARY")
    if named:
        return [named]
    here = os.path.dirname(os.path.abspath(__file__))
    name = "libsinter.so"
    found = [os.path.join(here, name), os.path.join(here, "..", "..", "build", name)]
    return [path for path in found if os.path.exists(path)] + [f"{name}.{_abi.VERSION_MAJOR}"]


def load():
    reasons = []
    for path in candidates():
        try:
            found = ctypes.CDLL(path)
        except OSError as e:
            reasons.append(f"{path}: {e}")
            continue
        if not hasattr(found, "sinter_version"):
            raise ImportError(f"{path} is no library of sinter: it has no sinter_version")
        found.sinter_version.restype = ctypes.c_char_p
        version = found.sinter_version().decode()
        wanted = f"{_abi.VERSION_MAJOR}.{_abi.VERSION_MINOR}."
        if not version.startswith(wanted):
            raise ImportError(f"{path} is version {version}, this package needs {wanted}*: SINTER_LIBRARY names another")
        for function, (result, arguments, _, _) in _abi.FUNCTIONS.items():
            try:
                symbol = getattr(found, function)
            except AttributeError:
                raise ImportError(f"{path} has no {function}: it is older than this package") from None
            symbol.restype, symbol.argtypes = result, arguments
        return found, os.path.abspath(path) if os.path.exists(path) else path
    raise ImportError("libsinter.so was not found; SINTER_LIBRARY may name the file. Tried: " + "; ".join(reasons))


lib, path = load()


def quick(function, *types):
    """The function for calls in which each microsecond counts: pointers are addresses, nothing is converted."""
    made = lib._FuncPtr((function, lib))
    made.restype, made.argtypes = ctypes.c_int, types or None
    return made


version = lib.sinter_version().decode()


# What functions of plugins raised lately: (its text as the library was given it, "plugin 'NAME'", the exception).
recent_failures = collections.deque(maxlen=16)


def failure(status, error=None):
    """The exception for a status that is not OK. What a callback raised is its cause."""
    text = error.text.decode(errors="replace").strip() if error is not None else ""
    if not text:
        text = lib.sinter_status_text(status).decode()
    made = ERRORS.get(status, InternalError)(text, _abi.Status(status) if status in ERRORS else None)
    for part in (0, 1):                                 # in the text itself; else that of the plugin that the text names
        for row in reversed(list(recent_failures)):     # the newest first
            if row[part] in text and made.__cause__ is None:
                recent_failures.remove(row)
                if not isinstance(row[2], Exception):   # Ctrl-C
                    return row[2]
                if part:
                    made = type(made)(f"{text}\n  {row[1]} failed with {row[0]}", made.status)
                made.__cause__ = row[2]
    return made


def call(function, *arguments):
    """Calls a function whose last argument is a sinter_error, and raises what it reports."""
    error = _abi.sinter_error()
    status = getattr(lib, function)(*arguments, byref(error))
    if status:
        raise failure(status, error)


def collect_text(function, *arguments):
    """The text that a function prints through a sinter_write_fn. `arguments` stand before the callback."""
    parts = []

    @_abi.sinter_write_fn
    def write(_user, text, length):
        parts.append(ctypes.string_at(text, length))

    call(function, *arguments, write, None)
    return b"".join(parts).decode(errors="replace")


def choice(enum, value):
    """A member of an enum for a member, a number or a word."""
    if isinstance(value, str):
        if value.upper() not in enum.__members__:
            raise ValueError(f"'{value}' is none of {', '.join(m.lower() for m in enum.__members__)}")
        return enum[value.upper()]
    return int(value)


# ---- options ----

def option_rows(function):
    rows, index = {}, 0
    while True:
        row = function(index)
        if not row:
            return rows
        rows[row.contents.name.decode()] = row
        index += 1


_rows = {}


def set_options(struct, table, values, keep):
    """Sets fields of an options struct from keywords. Texts that the struct borrows are added to `keep`."""
    if table not in _rows:
        _rows[table] = option_rows(getattr(lib, f"sinter_{table}_option"))
    rows = _rows[table]
    for name, value in values.items():
        row = rows.get(name)
        if row is None:
            raise TypeError(f"there is no option '{name}'; options are {', '.join(rows)}")
        if value is None:
            continue
        if isinstance(value, bool):
            text = "1" if value else "0"
        elif isinstance(value, (list, tuple, set, frozenset)):
            text = ",".join(str(v) for v in value)
        elif isinstance(value, int) and row.contents.kind in (_abi.OptionKind.CHOICE, _abi.OptionKind.SET):
            words = row.contents.words.decode().split("|")
            if row.contents.kind == _abi.OptionKind.CHOICE:
                text = words[value] if 0 <= value < len(words) else str(int(value))
            else:
                text = ",".join(w for i, w in enumerate(words) if value >> i & 1)
                if not text:
                    continue
        elif isinstance(value, int):
            text = str(int(value))
        elif isinstance(value, os.PathLike):
            text = os.fspath(value)
        else:
            text = str(value)
        encoded = text.encode()
        keep.append(encoded)
        call("sinter_option_set", row, byref(struct), encoded)


def describe_options(table):
    """A paragraph an option, for docstrings."""
    lines = []
    for name, kind, _, initial, _, words, text in getattr(_abi, table):
        takes = {"FLAG": "bool", "COUNT": "int", "REAL": "float", "CHOICE": words, "SET": words + ", or several",
                 "WORD": words, "DEVICE": words}.get(kind, "str")
        lines.append(f"    {name} ({takes}): {text}")
    return "\n".join(lines)


class Env:
    """Log, limits and plugins, as the C structs that objects keep."""

    def __init__(self, log=None, log_topics=None, limits=None, plugins=None):
        self.struct = struct = _abi.sinter_env_options()
        struct.struct_size = ctypes.sizeof(struct)
        self.plugins = None
        if plugins is not None:
            from ._plugin import registry
            self.plugins = registry(plugins)
            struct.plugins = self.plugins._handle
        if log is None and os.environ.get("SINTER_LOG"):
            log = log_to_stderr
        if log is not None:
            self.log = _abi.sinter_log_fn(lambda _user, topic, line: log(topic.decode(errors="replace"),
                                                                         line.decode(errors="replace")))
            struct.log = self.log
            self.topics = None if log_topics is None else ",".join([log_topics] if isinstance(log_topics, str)
                                                                   else log_topics).encode()
            if self.topics is None and not os.environ.get("SINTER_LOG"):
                self.topics = b"all"
            struct.log_topics = self.topics
        if limits:
            self.limits = _abi.sinter_limits()
            for name, value in limits.items():
                if not hasattr(self.limits, name):
                    raise TypeError(f"there is no limit '{name}'; limits are {', '.join(n for n, _, _ in _abi.LIMITS)}")
                setattr(self.limits, name, value)
            struct.limits = ctypes.pointer(self.limits)

    @contextlib.contextmanager
    def callbacks(self):
        """A call in which functions of plugins may fail that have no status of their own."""
        if self.plugins is None:
            yield
            return
        self.plugins.forget_failures()
        try:
            yield
        finally:
            self.plugins.raise_failures()


def log_to_stderr(topic, line):
    import sys
    print(f"{topic}: {line}", file=sys.stderr)
