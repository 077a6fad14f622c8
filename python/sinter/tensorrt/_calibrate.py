# SPDX-License-Identifier: Apache-2.0
"""INT8 as scripts ask for it: calibrators, calibration caches and dynamic ranges of tensors, as the ranges that a build takes."""
import inspect

from .._calibration import Calibration
from .._dtype import Dtype
from .._tensor import Tensor
from ._core import FROM_TRT
from ._names import CalibrationAlgoType, Severity

# Of an algorithm: the method of sinter.calibrate, and the word in the first line of its caches.
METHODS = {CalibrationAlgoType.ENTROPY_CALIBRATION: ("entropy", "EntropyCalibration"),
           CalibrationAlgoType.ENTROPY_CALIBRATION_2: ("entropy2", "EntropyCalibration2"),
           CalibrationAlgoType.MINMAX_CALIBRATION: ("minmax", "MinMaxCalibration"),
           CalibrationAlgoType.LEGACY_CALIBRATION: ("legacy", "LegacyCalibration")}


def ranges_of(builder, network, config):
    """The ranges that config and network give: a Calibration, or None where there are none."""
    calibrator, own = config.int8_calibrator, network._dynamic_ranges()
    if calibrator is None and not own:
        return None
    if network._is_quantized():
        builder.say(Severity.WARNING, "the network has layers that quantise: the calibrator and dynamic ranges are not used")
        return None
    found = Calibration() if calibrator is None else _read(builder, calibrator) or _calibrate(builder, network, config)
    for name, most in own.items():
        found[name] = most
    return found


def _read(builder, calibrator):
    cache = calibrator.read_calibration_cache()
    if not cache:
        return None
    found, wanted = Calibration(bytes(cache)), METHODS[calibrator.get_algorithm()][1]
    if found.header.split("-", 2)[2] != wanted:
        builder.say(Severity.WARNING, f"the calibration cache is '{found.header}', the calibrator's are '{wanted}': it is not used")
        return None
    builder.say(Severity.INFO, f"the calibration cache '{found.header}' has the ranges of {len(found)} tensors")
    return found


def _shapes(network, config):
    """name -> shape of a batch: where an axis is free, that of the calibration profile, else the first profile's opt, else the
    batch size, and 1 behind the first axis."""
    profile = config.calibration_profile or (config.profiles[0] if config.profiles else None)
    made = {}
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if network._hidden:
            made[tensor.name] = (config.int8_calibrator.get_batch_size(), *tensor.shape)
            continue
        usual = profile.shapes[tensor.name][1] if profile is not None and tensor.name in profile.shapes else None
        made[tensor.name] = tuple(d if d >= 0 else usual[k] if usual is not None else config.int8_calibrator.get_batch_size()
                                  if k == 0 else 1 for k, d in enumerate(tensor.shape))
    return made


def _host(builder, address, dtype, shape, name):
    """A copy of a batch. Inputs of 16 bits are given in 32."""
    given = Dtype.F32 if dtype in (Dtype.F16, Dtype.BF16) else dtype
    if not address:
        raise ValueError(f"get_batch gave no address for '{name}'")
    copy = Tensor(bytearray(builder._read(Tensor(int(address), given, shape))), given, shape)
    if given == dtype:
        return copy
    if dtype == Dtype.BF16:
        raise NotImplementedError(f"input '{name}' is bf16: a calibrator gives float32, f16 or integers")
    return copy.numpy().astype("f2")


def _batches(builder, network, config):
    calibrator, shapes = config.int8_calibrator, _shapes(network, config)
    types = {network.get_input(i).name: FROM_TRT[network.get_input(i).dtype] for i in range(network.num_inputs)}
    names = list(shapes)
    # Scripts for old versions take p_str, too.
    more = (None,) if len(inspect.signature(calibrator.get_batch).parameters) == 2 else ()
    while True:
        given = calibrator.get_batch(names, *more)
        if not given:
            return
        if len(given) != len(names):
            raise ValueError(f"get_batch gave {len(given)} addresses for {len(names)} inputs: {', '.join(names)}")
        yield {name: _host(builder, address, types[name], shapes[name], name) for name, address in zip(names, given)}


def _calibrate(builder, network, config):
    calibrator = config.int8_calibrator
    options = {"method": METHODS[calibrator.get_algorithm()][0]}
    if options["method"] == "legacy":
        options.update(quantile=calibrator.get_quantile(), cutoff=calibrator.get_regression_cutoff())
    shapes = _shapes(network, config)
    batches = list(_batches(builder, network, config))
    if not batches:
        raise ValueError("the calibrator gave no batch")
    found = network._calibrate(batches, profile=shapes, **options)
    builder.say(Severity.INFO, f"Calibrated with {len(batches)} batches: the ranges of {len(found)} tensors.")
    calibrator.write_calibration_cache(memoryview(bytes(found)))
    return found
