# SPDX-License-Identifier: Apache-2.0
"""A whole aten graph: what an engine can compute becomes partitions, the rest stays in PyTorch."""
import copy
import logging
import operator
import re
import threading
from collections import Counter

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import sinter

from ._lowering import SYMBOLIC, Unsupported, converter_of, is_view, why_not
from ._partition import Partition

log = logging.getLogger("sinter.torch")


class Report:
    """What became of a graph. `partitions`: a list of (name, number of operators). `fallback`: name of the node ->
    (operator, reason) of all that stays in PyTorch. str() is a table."""

    def __init__(self):
        self.partitions, self.fallback = [], {}

    def __str__(self):
        lines = [f"{len(self.partitions)} engines: " + ", ".join(f"{name} of {count} operators" for name, count in self.partitions)
                 if self.partitions else "no engine"]
        counts = Counter(self.fallback.values())
        for (op, reason), count in sorted(counts.items()):
            lines.append(f"  in PyTorch: {count} x {op}: {reason}")
        return "\n".join(lines)


class Support(OperatorSupportBase):
    def __init__(self, reasons):
        self.reasons = reasons

    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.name not in self.reasons


def target_name(node):
    return converter_of(node.target)[1] if node.op == "call_function" else str(node.target)


def device_of(graph):
    """The device that engines of a graph run on: that of its tensors with axes."""
    for node in graph.nodes:
        val = node.meta.get("val")
        for v in val if isinstance(val, (list, tuple)) else [val]:
            if isinstance(v, torch.Tensor) and v.dim():
                return v.device
    return torch.device("cpu")


def is_scalar(value):
    return isinstance(value, SYMBOLIC + (int, float, bool))


def tensors_of(node):
    val = node.meta.get("val")
    return [v for v in (val if isinstance(val, (list, tuple)) else [val]) if isinstance(v, torch.Tensor)]


def constants_elsewhere(graph, device):
    """Names of the nodes that depend on no input and lie on another device than the engine's, such as numbers that a model
    writes into a mask. An engine holds them as weights or computes them itself, as long as nobody else wants them."""
    constants, found = set(), set()
    for node in graph.nodes:
        if node.op == "get_attr" or node.op == "call_function" and all(n.name in constants for n in node.all_input_nodes):
            constants.add(node.name)
            if any(v.device != device for v in tensors_of(node)):
                found.add(node.name)
    return found


def reasons_of(graph, settings, device):
    """name of the node -> why an engine cannot compute it."""
    found, elsewhere = {}, constants_elsewhere(graph, device)
    writer = next((n for n in graph.nodes if n.op == "call_function" and getattr(getattr(n.target, "_schema", None),
                                                                                 "is_mutable", False)), None)
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = target_name(node)
        reason = why_not(node) if writer is None else f"the graph writes to a tensor: {target_name(writer)}"
        if reason is None and (name in settings.torch_executed_ops or name.rpartition(".")[0] in settings.torch_executed_ops):
            reason = "torch_executed_ops says so"
        if reason is None:
            for n in [node] + node.all_input_nodes:
                for v in tensors_of(n):
                    if v.device != device and n.name not in elsewhere:
                        reason = f"on {v.device}, the engine is on {device}"
        if reason is not None:
            found[node.name] = reason
    spread(graph, found, device)
    return found


def spread(graph, found, device):
    """A list and its elements stay together. What reads memory by strides needs torch's own layout of its input. A constant of
    another device is computed where all that use it are."""
    for node in graph.nodes:
        if node.target is operator.getitem and node.args[0].name in found:
            found[node.name] = found[node.args[0].name]
    for node in reversed(list(graph.nodes)):
        if node.name in found and target_name(node).startswith(("aten.as_strided", "aten.set_")):
            for arg in node.all_input_nodes:
                while arg.op == "call_function" and arg.name not in found:
                    found[arg.name] = f"'{node.name}' reads its memory by strides"
                    arg = arg.all_input_nodes[0] if is_view(arg.target) and arg.all_input_nodes else arg
    elsewhere, is_new = constants_elsewhere(graph, device), True
    while is_new:
        is_new = False
        for node in graph.nodes:
            if node.name not in elsewhere or node.op != "call_function":
                continue
            is_wanted = node.name in found or any(u.op != "call_function" or u.name in found for u in node.users)
            for n in [node, *(u for u in node.users if u.op == "call_function")] if is_wanted else []:
                is_new = is_new or n.name not in found
                found.setdefault(n.name, f"'{node.name}' is on {tensors_of(node)[0].device}, the engine is on {device}")


class CompiledGraph:
    """A callable for a functional aten graph. Engines are built at the first call.

    weights     indices of the placeholders that are weights: every call gives the same tensors
    names       index of a placeholder -> its name in the model, for refitting
    bounds      symbol -> (least, usual, most), where the caller set them
    plans       name of a partition -> bytes of its engine, where those were built before; is_stale: with other values of the weights
    is_file     engines are for files: outputs are row-major, and named output0, output1 and so on"""

    def __init__(self, graph_module, weights, settings, name="graph", names=None, bounds=None):
        self.source, self.weights, self.settings, self.name = graph_module, frozenset(weights), settings, name
        for node in list(graph_module.graph.nodes):
            if node.op == "call_function" and target_name(node) == "aten._assert_tensor_metadata.default":
                graph_module.graph.erase_node(node)         # what it asserts is known since the graph was traced
        graph_module.graph.eliminate_dead_code()
        self.lock, self.function, self.report, self.partitions = threading.RLock(), None, Report(), []
        self.names, self.bounds, self.plans, self.is_stale, self.is_file = names or {}, bounds or {}, {}, False, False

    def ready(self, args):
        """Builds the engines. Of `args` only the weights are looked at."""
        with self.lock:
            if self.function is None:
                with torch.no_grad(), torch._subclasses.fake_tensor.unset_fake_temporarily():
                    self.function = self.build(args)

    def __call__(self, *args):
        if self.function is None:
            self.ready(args)
        return self.function(*args)

    def build(self, args):
        graph, settings = self.source.graph, self.settings
        device = device_of(graph)
        reasons = reasons_of(graph, settings, device)
        for _ in range(20):
            try:
                return self.try_build(args, reasons, device)
            except BuildFailure as e:
                if settings.pass_through_build_failures or settings.require_full_compilation:
                    raise e.error from None
                reasons.update(e.reasons)
                spread(graph, reasons, device)
        raise RuntimeError(f"'{self.name}' has no partition that can be built:\n{self.report}")

    def try_build(self, args, reasons, device):
        module = fx.GraphModule(self.source, copy.deepcopy(self.source.graph))
        self.report = report = Report()
        self.partitions = []
        by_name = {n.name: n for n in self.source.graph.nodes}
        report.fallback = {name: (target_name(by_name[name]), reason) for name, reason in reasons.items()
                           if by_name[name].target is not operator.getitem and not is_scalar(by_name[name].meta.get("val"))}
        chosen = []
        partitioner = CapabilityBasedPartitioner(module, Support(reasons), allows_single_node_partition=True)
        for partition in partitioner.propose_partitions():
            nodes = list(partition.nodes)
            count = sum(not is_view(n.target) for n in nodes)
            whole = not report.fallback and count
            if count >= self.settings.min_block_size or whole:
                chosen.append(partition)
                continue
            for n in nodes:
                if n.target is not operator.getitem and not is_scalar(n.meta.get("val")):
                    report.fallback[n.name] = (target_name(n), f"a partition of {count} operators, min_block_size is "
                                                               f"{self.settings.min_block_size}")
        kept = {n.name for p in chosen for n in p.nodes}
        torn = {name for name in constants_elsewhere(module.graph, device) & kept
                if any(u.name not in kept for u in by_name[name].users)}
        if torn:
            reasons.update((name, f"on another device than the engine's, {device}, and wanted outside of it") for name in torn)
            spread(self.source.graph, reasons, device)
            return self.try_build(args, reasons, device)
        if self.settings.require_full_compilation and report.fallback:
            raise Unsupported(f"'{self.name}' cannot be compiled as a whole:\n{report}")
        report.partitions = [(f"fused_{p.id}", sum(not is_view(n.target) for n in p.nodes)) for p in chosen]
        if self.settings.dryrun or self.settings.report:
            print(f"sinter.torch: {self.name}: {report}")
        log.info("%s: %s", self.name, report)
        if self.settings.dryrun or not chosen:
            return self.source
        partitioner.fuse_partitions(chosen)
        self.put_engines(module, args, device)
        return self.shortest(module)

    def put_engines(self, module, args, device):
        """Replaces the fused submodules by engines."""
        places = {n: i for i, n in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
        for node in [n for n in module.graph.nodes if n.op == "call_module"]:
            if not str(node.target).startswith("fused_"):
                continue
            constants, names = {}, {}
            for i, arg in enumerate(node.args):
                if arg in places and places[arg] in self.weights and is_trackable(args[places[arg]]):
                    constants[i], names[i] = args[places[arg]], self.names.get(places[arg])
                elif arg.op == "get_attr":
                    constants[i] = getattr(module, arg.target)
            part, name = getattr(module, node.target), f"{self.name}.{node.target}"
            try:
                made = Partition(name, part, constants, self.settings, device, names, self.bounds, self.plans.get(name),
                                 self.is_stale, self.is_file)
            except (sinter.Error, Unsupported) as e:
                raise BuildFailure(e, part.graph) from e
            delattr(module, node.target)
            setattr(module, node.target, made)
            self.partitions.append(made)
        module.recompile()

    def shortest(self, module):
        """The partition itself, where it is all there is, else the graph with its engines."""
        nodes = list(module.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder"]
        calls = [n for n in nodes if n.op not in ("placeholder", "output")]
        result = nodes[-1].args[0]
        if len(self.partitions) == 1 and calls and calls[0].op == "call_module" and \
                all(c.target is operator.getitem and c.args[0] is calls[0] for c in calls[1:]):
            partition, call = self.partitions[0], calls[0]
            if list(call.args) == inputs:
                picked = [c.args[1] for c in calls[1:]]
                if isinstance(result, (list, tuple)) and list(result) == calls[1:] and picked == list(range(len(partition.results))):
                    return partition
                if isinstance(result, (list, tuple)) and list(result) == [call] and partition.is_single:
                    partition.is_single = partition.built.is_single = False
                    return partition
        return module.forward


class BuildFailure(Exception):
    """An engine could not be built. `reasons`: the nodes that are to stay in PyTorch."""

    def __init__(self, error, graph):
        super().__init__(str(error))
        self.error = error
        text, names = str(error), {n.name for n in graph.nodes if n.op == "call_function"}
        named = set(re.findall(r"(\w+)#\d+", text)) & names
        first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
        self.reasons = {name: first for name in (named or names)}


def is_trackable(tensor):
    """Whether changes of a tensor can be noticed: tensors of inference mode count no versions. Those are inputs."""
    return isinstance(tensor, torch.Tensor) and not tensor.is_inference()
