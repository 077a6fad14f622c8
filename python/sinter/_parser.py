# SPDX-License-Identifier: Apache-2.0
"""ONNX models as layers of a network."""
import ctypes
import os
from collections import namedtuple
from ctypes import byref

from . import _abi
from ._build import model_bytes
from ._library import call, lib

ParserError = namedtuple("ParserError", "status node node_name op_type message")
ParserError.__doc__ = "One thing that is wrong with a model. node: its index in the model's graph; None: it is no node."


class Parser:
    """Adds ONNX models to a network, whose layers can then be walked, changed and added to.

        net = sinter.Network()
        sinter.Parser(net).parse("model.onnx")
        for layer in net.layers: ...

    It belongs to the network's thread."""

    def __init__(self, network):
        handle = ctypes.c_void_p()
        call("sinter_parser_create", network.handle, byref(handle))
        self.network, self.handle = network, handle.value

    def __del__(self):
        handle, self.handle = getattr(self, "handle", None), None
        if handle:
            lib.sinter_parser_destroy(handle)

    def parse(self, model):
        """Adds a model: a path, bytes, or an onnx.ModelProto. External data is read from the path's folder. Outputs of the model
        are marked. Where nodes cannot be taken, the rest is added, and the call fails: `errors` has all reasons."""
        if isinstance(model, (str, os.PathLike)):
            call("sinter_parser_parse_file", self.handle, os.fsencode(model))
        else:
            data = bytes(model_bytes(model))
            call("sinter_parser_parse_memory", self.handle, ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))

    @property
    def errors(self):
        """A ParserError for each thing that was wrong, of all calls."""
        found = []
        for i in range(lib.sinter_parser_error_count(self.handle)):
            e = _abi.sinter_parser_error()
            lib.sinter_parser_error_at(self.handle, i, byref(e))
            found.append(ParserError(_abi.Status(e.status), None if e.node == 0xFFFFFFFF else e.node, (e.node_name or b"").decode(),
                                     (e.op_type or b"").decode(), (e.message or b"").decode(errors="replace")))
        return found

    def clear_errors(self):
        lib.sinter_parser_clear_errors(self.handle)

    @property
    def subgraphs(self):
        """[(indices of nodes, supported)] of the last model, in the order in which its nodes run."""
        found = []
        for i in range(lib.sinter_parser_subgraph_count(self.handle)):
            count, is_supported = ctypes.c_uint32(), ctypes.c_uint32()
            lib.sinter_parser_subgraph(self.handle, i, None, 0, byref(count), byref(is_supported))
            nodes = (ctypes.c_uint32 * max(count.value, 1))()
            lib.sinter_parser_subgraph(self.handle, i, nodes, count.value, byref(count), byref(is_supported))
            found.append((list(nodes[:count.value]), bool(is_supported.value)))
        return found
