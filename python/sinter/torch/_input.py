# SPDX-License-Identifier: Apache-2.0
"""What a compilation knows of an input: shape or range of shapes, element type, name."""
import enum

import torch


class Input:
    """An input of a model, as torch_tensorrt describes one.

        Input((1, 3, 224, 224))                                        a fixed shape
        Input(min_shape=(1, 3), opt_shape=(8, 3), max_shape=(64, 3))   sizes that each call chooses
        Input(..., dtype=torch.int64, name="tokens")

    format: torch.contiguous_format or torch.channels_last; calls take tensors of any strides. tensor_domain: [low, high) of example numbers.
    shared_dims is not needed: sizes that have to be equal are found to be."""

    def __init__(self, *args, shape=None, min_shape=None, opt_shape=None, max_shape=None, dtype=torch.float32,
                 format=torch.contiguous_format, tensor_domain=(0.0, 2.0), name="", shared_dims=None, **unknown):
        if unknown:
            raise TypeError(f"Input takes no {', '.join(unknown)}")
        if len(args) > 1:
            raise TypeError("Input takes one shape; ranges are given by min_shape, opt_shape, max_shape")
        shape = args[0] if args else shape
        ranges = (min_shape, opt_shape, max_shape)
        if (shape is None and None in ranges) or (shape is not None and ranges != (None,) * 3):
            raise ValueError("Input takes a shape, or all of min_shape, opt_shape, max_shape")
        if format not in (torch.contiguous_format, torch.channels_last, "contiguous"):
            raise ValueError(f"the format is {format}, only torch.contiguous_format and torch.channels_last are taken")
        self.min_shape, self.opt_shape, self.max_shape = (tuple(int(d) for d in (shape if shape is not None else r))
                                                          for r in (ranges if shape is None else (shape,) * 3))
        if not len(self.min_shape) == len(self.opt_shape) == len(self.max_shape):
            raise ValueError(f"the shapes {self.min_shape}, {self.opt_shape}, {self.max_shape} have different ranks")
        if any(not a <= b <= c for a, b, c in zip(self.min_shape, self.opt_shape, self.max_shape)):
            raise ValueError(f"{self.min_shape} <= {self.opt_shape} <= {self.max_shape} does not hold for every axis")
        self.dtype, self.tensor_domain, self.name = dtype, tuple(tensor_domain), name

    shape = property(lambda self: {"min_shape": self.min_shape, "opt_shape": self.opt_shape, "max_shape": self.max_shape} if self.is_dynamic
                     else self.opt_shape)

    class _ShapeMode(enum.Enum):
        STATIC = 0
        DYNAMIC = 1

    shape_mode = property(lambda self: self._ShapeMode.DYNAMIC if self.is_dynamic else self._ShapeMode.STATIC)

    @classmethod
    def from_tensor(cls, tensor, **_):
        """The Input of a tensor's shape and type."""
        return cls(tuple(tensor.shape), dtype=tensor.dtype)

    @classmethod
    def from_tensors(cls, tensors, **_):
        return [cls.from_tensor(tensor) for tensor in tensors]

    is_dynamic = property(lambda self: self.min_shape != self.max_shape)

    def example_tensor(self, optimization_profile_field=None, device="cpu"):
        """Random numbers of the shape that optimization_profile_field names ("min_shape", "opt_shape", "max_shape"). None: the usual shape;
        a free size of 1 is 2 there, because torch.export takes 1 for a fixed size."""
        low, high = self.tensor_domain
        shape = getattr(self, optimization_profile_field) if optimization_profile_field else [max(opt, 2) if least != most else opt
                 for least, opt, most in zip(self.min_shape, self.opt_shape, self.max_shape)]
        return (torch.rand(shape, device=device) * (high - low) + low).to(self.dtype)

    def __repr__(self):
        shape = f"{self.min_shape}..{self.opt_shape}..{self.max_shape}" if self.is_dynamic else str(self.opt_shape)
        return f"Input({shape}, {self.dtype})"


def example_of(value, device):
    """A tensor for an Input, a shape or a tensor; other values as they are."""
    if isinstance(value, Input):
        return value.example_tensor(device=device)
    if isinstance(value, torch.Tensor) and value.device != device:
        return value.to(device)
    return value


def dims_of(value):
    """torch.export's dynamic_shapes of an input; None: its shape is fixed."""
    if not isinstance(value, Input) or not value.is_dynamic:
        return None
    return {axis: torch.export.Dim.DYNAMIC(min=low, max=high)
            for axis, (low, high) in enumerate(zip(value.min_shape, value.max_shape)) if low != high}
