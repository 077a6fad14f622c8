# SPDX-License-Identifier: Apache-2.0
"""Members of layers that are no parameter: inputs with a name, groups of parameters, sizes that are computed. EXTRA has, for
each kind that needs some, what its class gets."""
from ._core import FROM_TRT, Dims, NoDims
from ._names import CausalMaskKind, DataType, ResizeCoordinateTransformation, Severity


def tensor_property(index):
    """Input `index` as a property; None: absent."""
    return property(lambda self: self.get_input(index), lambda self, tensor: self.set_input(index, tensor))


def inputs_setter(first, names, *parameters):
    """A method that sets inputs from `first` on, and then parameters."""
    words = names + tuple(name.replace("swiglu_param_", "") for name in parameters)

    def set(self, *values, **named):
        values += tuple(named[word] for word in words[len(values):] if word in named)
        if len(values) != len(names) + len(parameters):
            raise TypeError(f"wanted are {', '.join(names + parameters)}, not {len(values)} arguments")
        for i in range(len(names)):
            self.set_input(first + i, values[i])
        for name, value in zip(parameters, values[len(names):]):
            setattr(self, name, value)
    set.__doc__ = f"Takes {', '.join(names + parameters)}."
    return set


# ---- attention ----

def causal_kind(is_causal):
    return CausalMaskKind.UPPER_LEFT if is_causal else CausalMaskKind.NONE


ATTENTION = {"causal": property(lambda self: self.causal_kind != CausalMaskKind.NONE,
                                lambda self, value: setattr(self, "causal_kind", causal_kind(value))),
             "mask": tensor_property(3), "normalization_quantize_scale": tensor_property(4), "query_lengths": tensor_property(5),
             "key_value_lengths": tensor_property(6)}


# ---- softmax ----

def softmax_axes(self):
    """The mask of axes. Upstream's default is the axis max(0, rank - 3)."""
    return self._get("axes") or 1 << max(0, len(self.get_input(0).shape) - 3)


# ---- dynamic quantisation ----

def blocks(shape):
    """axis and block_size of a block's shape."""
    wide = [i for i, d in enumerate(shape) if d != 1]
    if len(wide) != 1:
        raise NotImplementedError(f"the blocks have the shape {Dims(shape)}; wanted are blocks along one axis, (1, 16) for one")
    return {"axis": wide[0], "block_size": int(shape[wide[0]])}


def block_shape(self):
    rank, axis = len(self.get_input(0).shape), self.axis
    return Dims(self.block_size if i == axis % rank else 1 for i in range(rank))


def set_block_shape(self, shape):
    for name, value in blocks(shape).items():
        setattr(self, name, value)


# ---- normalisation ----

def set_compute_precision(self, dtype):
    """Kept, but FLOAT is what there is: sums are f32 for every type of the input."""
    self._compute_precision = DataType(dtype)
    if dtype != DataType.FLOAT:
        self.network.say(Severity.WARNING, f"compute_precision {DataType(dtype)} of layer '{self.name}' changes nothing: a normalization "
                                           f"computes in {DataType.FLOAT}; ILayer.precision narrows the layer")


# ---- shuffle ----

def reshape_dims(self):
    found = self._get("reshape")
    return Dims(found) if found or self._is_reshaped and self.get_input(1) is None else NoDims()


def set_reshape_dims(self, dims):
    self._put("reshape", dims)
    self._is_reshaped = True


# ---- fill ----

def is_alpha_beta_int64(self):
    return FROM_TRT[DataType.INT64] in [t.dtype for t in self.layer.inputs[1:] if t is not None]


def set_quantization_static(self, fc_down_activation_scale, data_type):
    self.set_input(9, fc_down_activation_scale)
    self.quantization_to_type = data_type


# ---- resize ----

ALIGN_CORNERS = property(lambda self: self.coordinate_transformation == ResizeCoordinateTransformation.ALIGN_CORNERS,
                         lambda self, value: setattr(self, "coordinate_transformation", ResizeCoordinateTransformation.ALIGN_CORNERS if value
                                                     else ResizeCoordinateTransformation.ASYMMETRIC), doc="Version 7's.")


EXTRA = {
    "shuffle": {"reshape_dims": property(reshape_dims, set_reshape_dims), "_is_reshaped": False},
    "resize": {"align_corners": ALIGN_CORNERS},
    "attention": ATTENTION,
    "softmax": {"axes": property(softmax_axes, lambda self, mask: self._put("axes", mask))},
    "dynamic_quantize": {"block_shape": property(block_shape, set_block_shape)},
    "normalization": {"compute_precision": property(lambda self: getattr(self, "_compute_precision", DataType.FLOAT), set_compute_precision),
                      "is_v2": property(lambda self: self.added_by == "normalization_v2")},
    "fill": {"is_alpha_beta_int64": is_alpha_beta_int64},
    "moe": {"set_gated_weights": inputs_setter(3, ("fc_gate_weights", "fc_up_weights", "fc_down_weights"), "activation_type"),
            "set_gated_biases": inputs_setter(6, ("fc_gate_biases", "fc_up_biases", "fc_down_biases")),
            "set_swiglu_params": inputs_setter(0, (), "swiglu_param_limit", "swiglu_param_alpha", "swiglu_param_beta"),
            "set_quantization_static": set_quantization_static},
}
