# SPDX-License-Identifier: Apache-2.0
"""Outputs of plugins that share the memory of an input. Here the output begins as a copy of the input, and the plugin gets the
output's memory for both. Readers of the input elsewhere in the network are not disturbed."""
import ctypes

from .._abi import Place


def copy(to, source, stream):
    """Copies a tensor: at once on the host, in the stream on a GPU."""
    if to.nbytes != source.nbytes or to.dtype != source.dtype:
        raise ValueError(f"an output of {to.nbytes} bytes of {to.dtype.name} cannot share the memory of an input of {source.nbytes} bytes of "
                         f"{source.dtype.name}")
    if not to.nbytes:
        return
    if to.place == Place.HOST and source.place == Place.HOST:
        ctypes.memmove(to.data, source.data, to.nbytes)
    else:
        from .. import _cuda
        _cuda.driver().cuMemcpyDtoDAsync(to.data, source.data, to.nbytes, stream or None)


def joined(inputs, outputs, aliases, stream):
    """The inputs as the plugin gets them. aliases: output -> input."""
    given = list(inputs)
    for output, source in aliases.items():
        copy(outputs[output], inputs[source], stream)
        given[source] = outputs[output]
    return given
