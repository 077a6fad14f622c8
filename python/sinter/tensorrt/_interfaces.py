# SPDX-License-Identifier: Apache-2.0
"""The classes that scripts derive from. What a subclass must define raises NotImplementedError here."""
from ._names import APILanguage, CalibrationAlgoType, TempfileControlFlag


def wanted(name):
    def method(self, *_, **__):
        raise NotImplementedError(f"{type(self).__name__} must define {name}")
    method.__name__ = name
    return method


class InterfaceInfo:
    ATTRIBUTES = "kind major minor"

    def __init__(self, kind, major=1, minor=0):
        self.kind, self.major, self.minor = kind, major, minor


class IVersionedInterface:
    api_language = APILanguage.PYTHON

    @property
    def interface_info(self):
        return InterfaceInfo(type(self).__name__)


class IErrorRecorder:
    MAX_DESC_LENGTH = 127

    def __init__(self):
        pass

    clear, get_error_code, get_error_desc, has_overflowed, num_errors, report_error = map(
        wanted, ("clear", "get_error_code", "get_error_desc", "has_overflowed", "num_errors", "report_error"))


class IProfiler:
    """Receives the time of each step of a run."""

    def __init__(self):
        pass

    report_layer_time = wanted("report_layer_time")


class Profiler(IProfiler):
    """Prints the time of each step."""

    def report_layer_time(self, layer_name, ms):
        print(f"{layer_name}: {ms}ms")


class IProgressMonitor(IVersionedInterface):
    """Follows a build: phase_start(phase_name, parent_phase, num_steps), step_complete(phase_name, step), where False ends the
    build, phase_finish(phase_name)."""

    def __init__(self):
        pass

    phase_start, step_complete, phase_finish = map(wanted, ("phase_start", "step_complete", "phase_finish"))


class IOutputAllocator(IVersionedInterface):
    """Gives memory for outputs whose size data decide: reallocate_output(tensor_name, memory, size, alignment) gives an
    address; notify_shape(tensor_name, shape) says what came."""
    tensorrt_version = 0

    def __init__(self):
        pass

    def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
        return self.reallocate_output(tensor_name, memory, size, alignment)

    reallocate_output, notify_shape = map(wanted, ("reallocate_output", "notify_shape"))


class IDebugListener(IVersionedInterface):
    def __init__(self):
        pass

    process_debug_tensor = wanted("process_debug_tensor")


class IStreamReader(IVersionedInterface):
    """Gives the bytes of an engine: read(size)."""

    def __init__(self):
        pass

    read = wanted("read")


class IStreamReaderV2(IVersionedInterface):
    """Gives the bytes of an engine: read(num_bytes, stream), seek(offset, where)."""

    def __init__(self):
        pass

    read, seek = map(wanted, ("read", "seek"))


class IStreamWriter(IVersionedInterface):
    """Takes the bytes of an engine: write(data) gives how many it took."""

    def __init__(self):
        pass

    write = wanted("write")


class IGpuAllocator(IVersionedInterface):
    """Accepted by name; engines' memory is the library's own."""

    def __init__(self):
        pass

    allocate, reallocate, deallocate, free = map(wanted, ("allocate", "reallocate", "deallocate", "free"))

    def allocate_async(self, size, alignment, flags, stream):
        return self.allocate(size, alignment, flags)

    def deallocate_async(self, memory, stream):
        return self.deallocate(memory)


class IGpuAsyncAllocator(IGpuAllocator):
    allocate_async, deallocate_async = map(wanted, ("allocate_async", "deallocate_async"))

    def allocate(self, size, alignment, flags):
        return self.allocate_async(size, alignment, flags, 0)

    def deallocate(self, memory):
        return self.deallocate_async(memory, 0)


class IInt8Calibrator(IVersionedInterface):
    """Gives representative inputs: get_batch(names) gives an address for each name, or None at the end; get_batch_size();
    read_calibration_cache() and write_calibration_cache(cache)."""
    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION_2

    def __init__(self):
        pass

    get_batch, get_batch_size = map(wanted, ("get_batch", "get_batch_size"))

    def get_algorithm(self):
        return self.algorithm

    def read_calibration_cache(self):
        return None

    def write_calibration_cache(self, cache):
        return None


class IInt8EntropyCalibrator(IInt8Calibrator):
    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8EntropyCalibrator2(IInt8Calibrator):
    pass


class IInt8MinMaxCalibrator(IInt8Calibrator):
    algorithm = CalibrationAlgoType.MINMAX_CALIBRATION


class IInt8LegacyCalibrator(IInt8Calibrator):
    algorithm = CalibrationAlgoType.LEGACY_CALIBRATION

    get_quantile, get_regression_cutoff = map(wanted, ("get_quantile", "get_regression_cutoff"))


class FallbackString:
    def __init__(self, text=""):
        self.text = text

    def __str__(self):
        return self.text


TEMPFILES = 1 << int(TempfileControlFlag.ALLOW_IN_MEMORY_FILES) | 1 << int(TempfileControlFlag.ALLOW_TEMPORARY_FILES)
