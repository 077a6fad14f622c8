# SPDX-License-Identifier: Apache-2.0
"""OnnxParser and the errors that it reports."""
import itertools
import os
import re

from .._abi import Status
from .._library import Error
from .._parser import Parser
from ._core import ILogger, Managed, Reporter
from ._names import ErrorCode, OnnxParserFlag, Severity
from ._proto import Proto

CODES = {2: ErrorCode.INVALID_GRAPH, 3: ErrorCode.UNSUPPORTED_NODE, 4: ErrorCode.MEM_ALLOC_FAILED,
         6: ErrorCode.MODEL_DESERIALIZE_FAILED}


class ParserError:
    """One reason why a model was not taken."""

    def __init__(self, code, desc, node=-1, node_name="", node_operator="", place=""):
        self._code, self._desc, self._node, self._name, self._operator = code, desc, node, node_name, node_operator
        self._file, _, line = place.rpartition(":")
        self._line = int(line) if line.isdigit() else 0

    def code(self):
        return self._code

    def desc(self):
        return self._desc

    def node(self):
        return self._node

    def node_name(self):
        return self._name

    def node_operator(self):
        return self._operator

    def file(self):
        return self._file

    def line(self):
        return self._line

    def func(self):
        return ""

    def local_function_stack(self):
        return []

    def local_function_stack_size(self):
        return 0

    def __str__(self):
        where = f" node {self._node} (name: {self._name}, operator: {self._operator})" if self._node >= 0 else ""
        return f"In{where} {self._file}:{self._line}: [{int(self._code)}] {self._desc}"

    __repr__ = __str__


def parser_error(status, text, node=None, name="", operator=""):
    """A ParserError of a message that ends in its place, [FILE:LINE]."""
    found = re.fullmatch(r"(?:error: )?(.*?)(?:\s+\[([^]]*:\d+)\])?\s*", text, re.DOTALL)
    text = f"{operator}: {found.group(1)}" if operator and operator not in found.group(1) else found.group(1)
    return ParserError(CODES.get(int(status), ErrorCode.INTERNAL_ERROR), text, -1 if node is None else node, name, operator,
                       found.group(2) or "")


def known(parser):
    """[(indices of nodes, taken)]: of what was not taken, the nodes between those that errors name, which may do by themselves."""
    wrong = {error.node for error in parser.errors}
    for nodes, is_taken in parser.subgraphs:
        for is_wrong, part in itertools.groupby(nodes, wrong.__contains__):
            if not is_wrong:
                yield list(part), is_taken


class ProtoLoader:
    """Takes a model's bytes first and its weights then, for who reads both later."""
    _proto = None

    def load_model_proto(self, model, path=None):
        """Keeps a model's bytes, whose weights may come from load_initializer."""
        self._proto = Proto(bytes(model), path)
        return True

    def load_initializer(self, name, data, size):
        """The elements of a weight of the model that load_model_proto was given: `size` bytes at the address `data`, or of
        a buffer. They are copied. False, with an error, where there is no such weight."""
        return self._with_proto(lambda proto: proto.add(name, data, size))

    def _with_proto(self, action):
        try:
            if self._proto is None:
                raise ValueError("load_model_proto was not called")
            return action(self._proto)
        except (KeyError, ValueError, IndexError) as e:
            self._errors.append(parser_error(Status.INVALID_ARG, str(e.args[0] if len(e.args) == 1 else e)))
            return False


class OnnxParser(ProtoLoader, Managed, Reporter):
    """Reads an ONNX model into a network."""
    ATTRIBUTES = "flags"

    def __init__(self, network, logger):
        if not isinstance(logger, ILogger):
            raise TypeError(f"a {type(logger).__name__} is no ILogger")
        self.network, self.logger, self._errors = network, logger, []
        self.flags = 1 << int(OnnxParserFlag.NATIVE_INSTANCENORM)
        self._subgraphs, self._has_probed = [], False

    def parse(self, model, path=None):
        """Reads a model from bytes. `path`: the file it comes from, beside which external data lies. False after a failure:
        num_errors and get_error have the reasons."""
        data = bytes(model)
        if path and os.path.isfile(path):
            with open(path, "rb") as file:
                if file.read() == data:
                    return self._take(os.fspath(path))
        return self._take(data)

    def parse_from_file(self, model):
        """Reads a model from a file."""
        return self._take(os.fspath(model))

    def parse_with_weight_descriptors(self, model):
        return self.parse(model)

    def _take(self, model):
        network = self.network
        if self._has_probed:                             # a model that supports_model_v2 left there: a second one is not added to it
            network._restart()
        is_new, self._has_probed = not network._net.layers and not network._net.inputs, False
        network._bridges.current()
        parser = Parser(network._net)
        try:
            parser.parse(model)
            return True
        except Error as e:
            found = [parser_error(p.status, p.message, p.node, p.node_name, p.op_type) for p in parser.errors]
            found = found or [parser_error(e.status, str(e).split("\n")[0])]
        finally:
            self._subgraphs = list(known(parser))
        if is_new:
            network._restart()
        self._errors += found
        for error in found:
            self.say(Severity.ERROR, str(error))
        return False

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index):
        return self._errors[index] if 0 <= index < len(self._errors) else None

    def clear_errors(self):
        self._errors = []

    # ---- what is supported ----

    def supports_operator(self, op_name):
        from .. import operators
        return any(row["name"] == op_name for row in operators()["onnx"])

    def supports_model(self, model, path=None):
        """(taken as a whole, [(node indices, supported)])."""
        taken = self.supports_model_v2(model, path)
        return taken, [(list(nodes), is_supported) for nodes, is_supported in self._subgraphs]

    def supports_model_v2(self, model, path=None):
        """Is the model taken? As upstream, an empty network has the model then, and parse need not be called."""
        from ._layers import INetworkDefinition
        is_new = self._has_probed or not self.network._net.layers and not self.network._net.inputs
        probe = OnnxParser(self.network if is_new else INetworkDefinition(self.network.builder, 0), Silent())
        probe._has_probed = self._has_probed
        taken = probe.parse(model, path)
        self._has_probed = is_new and taken
        self._errors += probe._errors
        self._subgraphs = probe._subgraphs
        return taken

    num_subgraphs = property(lambda self: len(self._subgraphs))

    def is_subgraph_supported(self, index):
        return self._subgraphs[index][1]

    def get_subgraph_nodes(self, index):
        return self._subgraphs[index][0]

    # ---- flags and the rest ----

    def set_flag(self, flag):
        self.flags |= 1 << int(flag)

    def clear_flag(self, flag):
        self.flags &= ~(1 << int(flag))

    def get_flag(self, flag):
        return bool(self.flags >> int(flag) & 1)

    def get_used_vc_plugin_libraries(self):
        return []

    def set_builder_config(self, builder_config):
        return True

    def parse_model_proto(self):
        """Reads the model of load_model_proto."""
        parts = self._with_proto(Proto.parts)
        return bool(parts) and self.parse(*parts)

    def get_layer_output_tensor(self, name, i):
        layer = self.network._net.find_layer(name)
        return None if layer is None else self.network._wrap_layer(layer).get_output(i)


class Silent(ILogger):
    def log(self, severity, msg):
        return None
