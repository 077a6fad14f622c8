# SPDX-License-Identifier: Apache-2.0
"""Modules and functions of TorchScript as exported programs. PyTorch converts them; what it makes is run once beside the original
before anything is built of it."""
import contextlib
import copy
import io
import logging
import warnings

import torch
from torch.utils import _pytree as pytree


def is_script(module):
    return isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction))


@contextlib.contextmanager
def quiet():
    """Without what the converter says of its own work."""
    loggers = [logging.getLogger(n) for n in ("torch._export", "torch.export", "torch.fx.experimental.symbolic_shapes")]
    before = [log.level for log in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for log in loggers:
            log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for log, level in zip(loggers, before):
                log.setLevel(level)


def exported_script(module, args, kwargs, dims):
    """The ExportedProgram of a script on these arguments, whose sizes become fixed.
    Errors: ValueError (an Input with a range), NotImplementedError (PyTorch cannot convert it, or converts it wrongly)."""
    if any(d is not None for d in pytree.tree_leaves(dims, is_leaf=lambda v: v is None)):
        raise ValueError("a module of TorchScript is compiled for fixed sizes: an Input has a range of shapes. Export the torch.nn.Module "
                         "that it was made of (ir='dynamo') for sizes that vary")
    try:
        from torch._export.converter import TS2EPConverter
    except ImportError:
        raise NotImplementedError(f"PyTorch {torch.__version__} cannot convert TorchScript: export the torch.nn.Module instead "
                                  "(ir='dynamo')") from None
    try:
        with torch.no_grad(), quiet():
            # The converter leaves sizes free of which nobody has shown that the program is right for them.
            program = TS2EPConverter(module, copy.deepcopy(args), copy.deepcopy(kwargs)).convert()
            program = torch.export.export(program.module(), copy.deepcopy(args), copy.deepcopy(kwargs) or None, strict=False)
            found = program.module()(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    except Exception as e:                                          # the converter raises what it likes
        raise NotImplementedError(f"PyTorch does not convert this TorchScript ({type(e).__name__}: {str(e).strip()[:300]}): export the "
                                  "torch.nn.Module that it was made of instead (ir='dynamo')") from e
    with torch.no_grad():
        wanted = module(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    if not alike(found, wanted):
        raise NotImplementedError("PyTorch's conversion of this TorchScript gives other results than the TorchScript itself: export the "
                                  "torch.nn.Module that it was made of instead (ir='dynamo')")
    return program


def alike(found, wanted):
    """The same structure but for lists and tuples, and near numbers. Random numbers differ, and are refused with the others."""
    a, b = pytree.tree_leaves(found), pytree.tree_leaves(wanted)
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if not isinstance(y, torch.Tensor):
            if isinstance(x, torch.Tensor) or x != y:
                return False
        elif not isinstance(x, torch.Tensor) or x.shape != y.shape or x.dtype != y.dtype:
            return False
        elif not torch.allclose(x.double(), y.double(), rtol=1e-3, atol=1e-5, equal_nan=True) if not y.is_complex() else not torch.equal(x, y):
            return False
    return True
