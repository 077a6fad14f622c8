# SPDX-License-Identifier: Apache-2.0
"""Other weights for an engine that is loaded."""
import os

from .._abi import Status
from .._build import path_of
from .._dtype import BITS
from .._engine import load
from .._library import Error
from ._core import FROM_TRT, ILogger, Managed, Reporter, Weights, to_trt
from ._names import DataType, TensorLocation, WeightsRole
from ._parser import ProtoLoader, parser_error
from ._proto import Proto


# What a name of weights has behind the layer's name. The first is the name of the layer's parameter.
ENDINGS = {WeightsRole.KERNEL: (".kernel", ".weight"), WeightsRole.BIAS: (".bias",), WeightsRole.SCALE: (".scale", ".weight"),
           WeightsRole.SHIFT: (".shift", ".bias"), WeightsRole.CONSTANT: (".weights", "")}


def by_role(names):
    """Lists of layers and of roles, for names of weights."""
    roles = {ending: role for role, endings in reversed(ENDINGS.items()) for ending in endings if ending}
    found = []
    for name in names:
        layer, dot, ending = name.rpartition(".")
        role = roles.get(dot + ending)
        found.append((layer, role) if role is not None and layer else (name, WeightsRole.ANY))
    return [layer for layer, _ in found], [role for _, role in found]


class Refitter(Managed, Reporter):
    """Collects weights by name, then puts them into the engine: its contexts use them from their next run on. Names are those
    of the model's initializers."""
    ATTRIBUTES = "logger max_threads weights_validation error_recorder"

    def __init__(self, engine, logger):
        if not isinstance(logger, ILogger):
            raise TypeError(f"a {type(logger).__name__} is no ILogger")
        if not engine.refittable:                        # upstream's constructor gives none, which is this error
            self.logger, text = logger, "the engine is not refittable: BuilderFlag.REFIT makes it so"
            self.fail(text)
            raise TypeError(text)
        self.engine, self.logger, self.max_threads, self.weights_validation = engine, logger, 1, True
        self._weights, self._model, self.error_recorder = {}, None, None

    def _known(self):
        return {w.name: w for w in self.engine._engine.weights()}

    def set_named_weights(self, name, weights, location=TensorLocation.HOST):
        """Sets the weights of a name. False if the engine does not have it, or if type or size differ."""
        known = self._known().get(name)
        if known is None:
            return self.fail(f"the engine has no weights '{name}'", False)
        weights = weights if isinstance(weights, Weights) else Weights(weights)
        if weights.nbytes != known.size or FROM_TRT.get(weights.dtype) != known.dtype:
            return self.fail(f"weights '{name}' have {weights.nbytes} bytes of {weights.dtype}, the engine wants {known.size} of "
                             f"{to_trt(known.dtype, name)}", False)
        if location == TensorLocation.DEVICE and self.engine._engine.device != "cpu":
            return self.fail(f"weights '{name}' must lie on the host", False)
        self._weights[name] = weights
        return True

    def set_weights(self, layer_name, role, weights):
        """By layer and role. The weights' names are those of the layer with the role behind it, or the model's: conv1.weight."""
        for ending in ENDINGS.get(role, ("",)):
            if layer_name + ending in self._known():
                return self.set_named_weights(layer_name + ending, weights)
        return self.fail(f"layer '{layer_name}' has no weights of that name: use set_named_weights with the name of the initializer", False)

    def unset_named_weights(self, weights_name):
        return self._weights.pop(weights_name, None) is not None

    def get_named_weights(self, weights_name):
        return self._weights.get(weights_name) or Weights()

    def get_weights_location(self, weights_name):
        return TensorLocation.HOST

    def get_weights_prototype(self, weights_name):
        """Type and count of the weights; of a name that the engine does not have the count is -1, as upstream's."""
        known = self._known().get(weights_name)
        if known is None:
            return Weights(DataType.FLOAT, None, -1)
        return Weights(to_trt(known.dtype, weights_name), None, known.size * 8 // BITS[known.dtype])

    def get_all_weights(self):
        return [w.name for w in self.engine._engine.weights() if not w.is_fixed]

    def get_missing_weights(self):
        """Those that refit_cuda_engine wants beside the ones that were given: all of an engine without weights, else what is in one weight
        of the engine with one that was given."""
        if self._model is not None:
            return []
        return [w.name for w in self.engine._engine.missing_weights(self._weights)]

    def get_all(self):
        """(layers, roles), as set_weights takes them. Names that do not end in a role stand as they are, with WeightsRole.ANY."""
        return by_role(self.get_all_weights())

    def get_missing(self):
        return by_role(self.get_missing_weights())

    def get_tensors_with_dynamic_range(self):
        return []

    def get_dynamic_range(self, tensor_name):
        """No range is known of an engine's tensor."""
        return -1.0, -1.0

    def set_dynamic_range(self, tensor_name, range):
        return self.fail(f"'{tensor_name}' keeps the range that the engine was built with: ITensor.dynamic_range, or a calibrator, and a new "
                         "build", False)

    def refit_cuda_engine(self):
        """True: the engine has the new weights. After False it is as it was."""
        try:
            if self._model is not None:
                with path_of(self._model) as path:
                    plan = self.engine._engine.refit(os.fsdecode(path))
                if self._weights:
                    plan = load(plan).refit(self._given())
            else:
                plan = self.engine._engine.refit(self._given())
            self.engine._replaced(load(plan))
            return True
        except (Error, KeyError) as e:
            return self.fail(e, False)

    def _given(self):
        return {name: weights.tensor for name, weights in self._weights.items()}

    def refit_cuda_engine_async(self, stream_handle):
        return self.refit_cuda_engine()


class OnnxParserRefitter(ProtoLoader, Reporter):
    """Takes all weights from a model of the same graph."""

    def __init__(self, refitter, logger):
        self.refitter, self.logger, self._errors = refitter, logger, []

    def _take(self, model):
        self.refitter._model = model
        if isinstance(model, str) and not os.path.exists(model):
            self._errors.append(parser_error(Status.IO, f"{model} does not exist"))
            self.refitter._model = None
            return False
        return True

    def refit_from_file(self, model):
        return self._take(os.fspath(model))

    def refit_from_bytes(self, model, path=None):
        return self._take(path if path and os.path.exists(path) else bytes(model))

    def refit_model_proto(self):
        """Takes the weights of the model of load_model_proto."""
        parts = self._with_proto(Proto.parts)
        return bool(parts) and self.refit_from_bytes(*parts)

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index):
        return self._errors[index] if 0 <= index < len(self._errors) else None

    def clear_errors(self):
        self._errors = []

