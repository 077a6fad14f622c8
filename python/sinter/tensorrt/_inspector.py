# SPDX-License-Identifier: Apache-2.0
"""The engine inspector: steps as TensorRT's layers, in the library's words."""
from .._library import Error
from ._core import Reporter
from ._names import LayerInformationFormat


def layer_names(names, profile):
    """The names of a profile's steps, each once: a name that is taken gets " #2" behind it."""
    suffix = profile_suffix(profile)
    taken, made = set(), []
    for first in names:
        name, number = first, 2
        while name in taken:
            name, number = f"{first} #{number}", number + 1
        taken.add(name)
        made.append(name + suffix)
    return made


def profile_suffix(profile):
    return f" [profile {profile}]" if profile else ""


class EngineInspector(Reporter):
    """Describes an engine and its layers, as its profiling_verbosity permits. With an execution context, sizes are those of its
    shapes."""
    ATTRIBUTES = "execution_context"

    def __init__(self, engine):
        self.engine, self.logger, self.execution_context = engine, engine.logger, None

    def _layers(self, index, format):
        try:
            shown = self.execution_context._with_shapes() if self.execution_context is not None else self.engine._engine
            return shown.layers(index, "json" if format == LayerInformationFormat.JSON else "text")
        except Error as e:
            return self.fail(e)

    def get_layer_information(self, layer_index, format):
        return self._layers(layer_index, format)

    def get_engine_information(self, format):
        return self._layers(None, format)
