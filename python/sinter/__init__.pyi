# SPDX-License-Identifier: Apache-2.0
# Types of the package. What stands between the lines OPTIONS and END is written by tools/write_python.py.
from concurrent.futures import Future
from os import PathLike
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, MutableMapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._abi import Dtype as Dtype
from ._abi import LayerKind as LayerKind
from ._abi import Part, ParamKind
from ._abi import Place as Place
from ._abi import Status as Status

__version__: str
library_path: str
__all__: List[str]

Path = Union[str, "PathLike[str]"]
Array = Any                     # NumPy arrays, Tensors, DLPack, __cuda_array_interface__, buffers, lists, numbers
Shape = Sequence[int]
Range = Union[int, Tuple[int, int, int], Shape, Tuple[Shape, Shape, Shape], Mapping[str, Shape]]
Profile = Mapping[str, Range]
Words = Union[str, Iterable[str], int]
Log = Callable[[str, str], Any]

class Error(Exception):
    status: Status
    causes: List[Tuple[str, str]]
class InvalidArgument(Error, ValueError): ...
class InvalidModel(Error, ValueError): ...
class Unsupported(Error, NotImplementedError): ...
class NoMemory(Error, MemoryError): ...
class DeviceError(Error, RuntimeError): ...
class FileError(Error, OSError): ...
class Incompatible(Error, RuntimeError): ...
class InternalError(Error, RuntimeError): ...
class Cancelled(Error, RuntimeError): ...

class ModelIO(NamedTuple):
    name: str
    is_input: bool
    dtype: Dtype
    shape: Tuple[int, ...]
    dim_names: Tuple[Optional[str], ...]
    part: Part

class IO(NamedTuple):
    name: str
    is_input: bool
    dtype: Dtype
    shape: Tuple[int, ...]
    dim_text: Tuple[str, ...]
    min: Tuple[int, ...]
    opt: Tuple[int, ...]
    max: Tuple[int, ...]
    value_range: Optional[Tuple[int, int]]

class WeightInfo(NamedTuple):
    name: str
    dtype: Dtype
    size: int
    is_fixed: bool

class StepTime(NamedTuple):
    name: str
    problem: str
    kernel: str
    runs: int
    total_ns: int
    min_ns: int

class RunTime(NamedTuple):
    copy_in_ns: int
    compute_ns: int
    copy_out_ns: int

class State(NamedTuple):
    bytes: int
    rows: int
    capacity: int

class Tensor:
    dtype: Dtype
    shape: Tuple[int, ...]
    data: int
    place: Place
    owner: Any
    engine: Optional[Engine]
    def __init__(self, source: Array, dtype: Any = ..., shape: Optional[Shape] = ...) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    def __len__(self) -> int: ...
    def tobytes(self) -> bytes: ...
    def memoryview(self) -> memoryview: ...
    def numpy(self) -> Any: ...
    def copy_from(self, source: Array) -> None: ...
    def __dlpack__(self, *, stream: Any = ..., max_version: Any = ..., dl_device: Any = ..., copy: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...

class Plan:
    report: Dict[str, Any]
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    @property
    def view(self) -> memoryview: ...
    def save(self, path: Path) -> None: ...
    def load(self, **options: Any) -> Engine: ...

class Engine:
    device: str
    ordinal: int
    profile_count: int
    inputs: Tuple[IO, ...]
    outputs: Tuple[IO, ...]
    def io(self, profile: int = ...) -> List[IO]: ...
    def context(
        self,
        profile: int = ...,
        stream: Optional[int] = ...,
        *,
        memory: Union[str, int] = ...,
        # OPTIONS CONTEXT
        timing: bool = ...,
        phases: bool = ...,
        lazy: bool = ...,
        # END
    ) -> Context: ...
    def empty(self, shape: Shape, dtype: Any, place: str = ...) -> Tensor: ...
    def put(self, source: Array, place: str = ...) -> Tensor: ...
    def profile(self, is_on: bool) -> None: ...
    def describe(self, profile: Optional[int] = ...) -> Dict[str, int]: ...
    def set_weight_budget(self, size: int) -> None: ...
    def automatic_weight_budget(self) -> int: ...
    def inspect(self, format: str = ...) -> Any: ...
    def layers(self, index: Optional[int] = ..., format: str = ...) -> Any: ...
    @property
    def is_stripped(self) -> bool: ...
    @property
    def detail(self) -> Any: ...
    @property
    def info(self) -> Dict[str, Any]: ...
    def weights(self) -> List[WeightInfo]: ...
    def refit(self, weights: Union[Path, Mapping[str, Array]]) -> Plan: ...
    def strip(self) -> Plan: ...
    def plan(self) -> Plan: ...
    def save(self, path: Path) -> None: ...

class Context:
    engine: Engine
    profile: int
    def __init__(
        self,
        engine: Engine,
        profile: int = ...,
        stream: Optional[int] = ...,
        memory: Union[str, int] = ...,
        *,
        # OPTIONS CONTEXT
        timing: bool = ...,
        phases: bool = ...,
        lazy: bool = ...,
        # END
    ) -> None: ...
    def __enter__(self) -> Context: ...
    def __exit__(self, *_: Any) -> None: ...
    def close(self) -> None: ...
    def set_input(self, name: str, value: Array) -> None: ...
    def set_output(self, name: str, value: Optional[Array]) -> None: ...
    def output(self, name: str) -> Tensor: ...
    def run(self, inputs: Any = ..., outputs: Optional[Mapping[str, Array]] = ..., **named: Array) -> Dict[str, Any]: ...
    def __call__(self, inputs: Any = ..., outputs: Optional[Mapping[str, Array]] = ..., **named: Array) -> Dict[str, Any]: ...
    def run_async(self, inputs: Any = ..., outputs: Optional[Mapping[str, Array]] = ..., **named: Array) -> Future[Dict[str, Any]]: ...
    def start(self, inputs: Any = ..., outputs: Optional[Mapping[str, Array]] = ..., **named: Array) -> None: ...
    def wait(self) -> Dict[str, Any]: ...
    @property
    def is_done(self) -> bool: ...
    def cancel(self) -> None: ...
    @property
    def state(self) -> State: ...
    def reset_state(self) -> None: ...
    def set_rows(self, rows: int) -> None: ...
    def layers(self, index: Optional[int] = ..., format: str = ...) -> Any: ...
    @property
    def steps(self) -> List[StepTime]: ...
    def set_profile(self, profile: int) -> None: ...
    def set_input_shape(self, name: str, shape: Shape) -> None: ...
    def output_shape(self, name: str) -> tuple[int, ...]: ...
    def max_output_size(self, name: str) -> int: ...
    def memory_size(self) -> int: ...
    def set_memory(self, tensor: Optional[Tensor]) -> None: ...
    @property
    def run_time(self) -> RunTime: ...
    @property
    def memory(self) -> int: ...

class Dim:
    value: Optional[int]
    def ceildiv(self, other: Union[int, "Dim"]) -> "Dim": ...
    def min(self, other: Union[int, "Dim"]) -> "Dim": ...
    def max(self, other: Union[int, "Dim"]) -> "Dim": ...
    def broadcast(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __add__(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __sub__(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __mul__(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __floordiv__(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __mod__(self, other: Union[int, "Dim"]) -> "Dim": ...
    def __index__(self) -> int: ...

class Spec(NamedTuple):
    dtype: Any
    shape: Sequence[Union[int, Dim]]

class Operand(NamedTuple):
    dtype: Dtype
    min: Tuple[int, ...]
    opt: Tuple[int, ...]
    max: Tuple[int, ...]
    order: Tuple[int, ...]

class Launch(NamedTuple):
    grid: Union[int, Sequence[int]]
    block: int
    args: Sequence[Any]
    shared: int = ...

class Plugin:
    name: str
    version: str
    namespace: str
    def __init__(self, name: str, shapes: Callable[..., Any], *, run: Optional[Callable[..., Any]] = ...,
                 torch: Optional[Callable[..., Any]] = ..., tensors: Optional[Callable[..., Any]] = ...,
                 cuda: Optional[Callable[..., Any]] = ..., cuda_source: Optional[str] = ..., cuda_kernel: Optional[str] = ...,
                 cuda_launch: Optional[Callable[..., Any]] = ..., supports: Optional[Callable[..., Any]] = ...,
                 workspace: Optional[Callable[..., int]] = ..., tactics: Optional[Callable[..., Iterable[int]]] = ...,
                 state: Optional[Callable[..., Any]] = ..., version: str = ..., namespace: str = ...,
                 fields: Optional[Mapping[str, Any]] = ..., inputs: Union[int, Tuple[int, int]] = ...,
                 outputs: Union[int, Tuple[int, int]] = ...) -> None: ...

def plugin(name: str, **options: Any) -> Callable[[Callable[..., Any]], Plugin]: ...

class Plugins:
    names: List[Tuple[str, str, str]]
    def __init__(self, *plugins: Union[Plugin, Path], check: bool = ...) -> None: ...
    def add(self, plugin: Union[Plugin, Path]) -> None: ...
    def check(self, is_on: bool = ...) -> None: ...

class Spread:
    engines: List[Engine]
    batched: List[str]
    whole: List[str]
    least: int
    most: int
    def __init__(self, engines: Union[Sequence[Engine], Plan, Path, bytes], devices: Optional[Sequence[str]] = ..., **options: Any) -> None: ...
    def parts(self, rows: int) -> List[int]: ...
    def run(self, inputs: Optional[Mapping[str, Array]] = ..., **named: Array) -> Dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Spread: ...
    def __exit__(self, *_: Any) -> None: ...

class NetworkTensor:
    network: Network
    name: str
    shape: Tuple[int, ...]
    dtype: Dtype
    is_input: bool
    is_output: bool
    is_shape_output: bool
    is_debug: bool
    @property
    def dim_names(self) -> Tuple[Optional[str], ...]: ...
    @property
    def producer(self) -> Optional[Layer]: ...
    def set_dim_name(self, axis: int, name: Optional[str]) -> None: ...
    def values(self, count: int) -> List[int]: ...

class Layer:
    network: Network
    kind: LayerKind
    nearest_kind: LayerKind
    inputs: List[Optional[NetworkTensor]]
    outputs: List[NetworkTensor]
    output: NetworkTensor
    name: str
    metadata: str
    precision: Optional[Dtype]
    loop: Optional[Loop]
    conditional: Optional[Conditional]
    @property
    def operator(self) -> Tuple[str, str, int]: ...
    def set_weights_name(self, name: str, text: str) -> None: ...
    def parameters(self) -> Dict[str, Tuple[ParamKind, str, str]]: ...
    def set_input(self, index: int, tensor: Optional[NetworkTensor]) -> None: ...
    def set_output_type(self, index: int, dtype: Any) -> None: ...
    def output_type(self, index: int) -> Optional[Dtype]: ...
    def set(self, name: str, value: Any) -> None: ...
    def get(self, name: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Loop:
    network: Network
    name: str
    def add_trip_limit(self, tensor: NetworkTensor, kind: Union[str, int] = ...) -> Layer: ...
    def add_recurrence(self, initial: NetworkTensor) -> Layer: ...
    def add_iterator(self, tensor: NetworkTensor, axis: int = ..., reverse: bool = ...) -> Layer: ...
    def add_output(self, tensor: NetworkTensor, kind: Union[str, int] = ..., axis: int = ...) -> Layer: ...

class Conditional:
    network: Network
    name: str
    def set_condition(self, condition: NetworkTensor) -> Layer: ...
    def add_input(self, input: NetworkTensor) -> Layer: ...
    def add_output(self, then_value: NetworkTensor, else_value: NetworkTensor) -> Layer: ...

class Network:
    plugins: Optional[Plugins]
    def __init__(self, plugins: Any = ...) -> None: ...
    name: str
    strongly_typed: bool
    layers: List[Layer]
    inputs: List[NetworkTensor]
    outputs: List[NetworkTensor]
    def add_input(self, name: str, dtype: Any, shape: Shape, dim_names: Optional[Sequence[Optional[str]]] = ...) -> NetworkTensor: ...
    def add(self, kind: str, *inputs: Optional[NetworkTensor], **parameters: Any) -> Layer: ...
    def add_plugin(self, name: str, *inputs: Optional[NetworkTensor], outputs: int = ..., version: Optional[str] = ...,
                   namespace: Optional[str] = ..., **fields: Any) -> Layer: ...
    def add_constant(self, value: Array) -> NetworkTensor: ...
    def add_op(
        self, type: str, *inputs: Optional[NetworkTensor], outputs: int = ..., domain: str = ..., version: int = ..., **attributes: Any
    ) -> Layer: ...
    def add_loop(self) -> Loop: ...
    def add_conditional(self) -> Conditional: ...
    def mark_shape_output(self, tensor: NetworkTensor, is_marked: bool = ...) -> None: ...
    def mark_debug(self, tensor: NetworkTensor, is_marked: bool = ...) -> None: ...
    def unfused(self, engine: Engine) -> list[NetworkTensor]: ...
    def set_precision_mode(self, mode: Union[str, int]) -> None: ...
    def write_onnx(self, path: Path) -> None: ...
    def find_layer(self, name: str) -> Optional[Layer]: ...
    def find_tensor(self, name: str) -> Optional[NetworkTensor]: ...
    def mark_output(self, tensor: NetworkTensor, is_marked: bool = ...) -> None: ...
    def remove(self, thing: Union[Layer, NetworkTensor]) -> None: ...

class ParserError(NamedTuple):
    status: Status
    node: Optional[int]
    node_name: str
    op_type: str
    message: str

class Parser:
    network: Network
    errors: List[ParserError]
    subgraphs: List[Tuple[List[int], bool]]
    def __init__(self, network: Network) -> None: ...
    def parse(self, model: Any) -> None: ...
    def clear_errors(self) -> None: ...

def build(
    model: Any,
    *,
    profiles: Union[Profile, Sequence[Profile], None] = ...,
    values: Optional[Mapping[str, Array]] = ...,
    samples: Optional[Sequence[Mapping[str, Array]]] = ...,
    calibration: Union["Calibration", bytes, Path, None] = ...,
    state: Union[Mapping[str, str], Sequence[Tuple[str, str]], None] = ...,
    equal: Optional[Mapping[str, str]] = ...,
    replaceable: Optional[Iterable[str]] = ...,
    progress: Optional[Callable[[str, float], Any]] = ...,
    stage: Optional[Log] = ...,
    log: Optional[Log] = ...,
    log_topics: Optional[Words] = ...,
    limits: Optional[Mapping[str, int]] = ...,
    plugins: Any = ...,
    plugins: Any = ...,
    # OPTIONS BUILD
    device: str = ...,
    threads: int = ...,
    tune: str = ...,
    timing_cache: str = ...,
    cache_only: bool = ...,
    kernel_cache: str = ...,
    branches: str = ...,
    no_code: bool = ...,
    math: str = ...,
    allow: Words = ...,
    lower: str = ...,
    budget: float = ...,
    capacity: int = ...,
    rules: str = ...,
    rule_limit: int = ...,
    isa: str = ...,
    refittable: bool = ...,
    verify: bool = ...,
    detail: str = ...,
    workspace: int = ...,
    # END
) -> Plan: ...
def build_save(
    model: Any,
    path: Path,
    *,
    profiles: Union[Profile, Sequence[Profile], None] = ...,
    values: Optional[Mapping[str, Array]] = ...,
    samples: Optional[Sequence[Mapping[str, Array]]] = ...,
    calibration: Union["Calibration", bytes, Path, None] = ...,
    state: Union[Mapping[str, str], Sequence[Tuple[str, str]], None] = ...,
    equal: Optional[Mapping[str, str]] = ...,
    replaceable: Optional[Iterable[str]] = ...,
    progress: Optional[Callable[[str, float], Any]] = ...,
    stage: Optional[Log] = ...,
    log: Optional[Log] = ...,
    log_topics: Optional[Words] = ...,
    limits: Optional[Mapping[str, int]] = ...,
    plugins: Any = ...,
    # OPTIONS BUILD
    device: str = ...,
    threads: int = ...,
    tune: str = ...,
    timing_cache: str = ...,
    cache_only: bool = ...,
    kernel_cache: str = ...,
    branches: str = ...,
    no_code: bool = ...,
    math: str = ...,
    allow: Words = ...,
    lower: str = ...,
    budget: float = ...,
    capacity: int = ...,
    rules: str = ...,
    rule_limit: int = ...,
    isa: str = ...,
    refittable: bool = ...,
    verify: bool = ...,
    detail: str = ...,
    workspace: int = ...,
    # END
) -> Dict[str, Any]: ...
class Calibration(MutableMapping[str, float]):
    header: str
    scales: Dict[str, float]
    def __init__(self, cache: Union[bytes, bytearray, Path, None] = ...) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str) -> float: ...
    def __setitem__(self, name: str, value: float) -> None: ...
    def __delitem__(self, name: str) -> None: ...
    def __bytes__(self) -> bytes: ...
    def save(self, path: Path) -> None: ...

def calibrate(
    model: Any,
    samples: Iterable[Mapping[str, Array]],
    *,
    profile: Optional[Profile] = ...,
    values: Optional[Mapping[str, Array]] = ...,
    state: Union[Mapping[str, str], Sequence[Tuple[str, str]], None] = ...,
    equal: Optional[Mapping[str, str]] = ...,
    progress: Optional[Callable[[str, float], Any]] = ...,
    log: Optional[Log] = ...,
    log_topics: Optional[Words] = ...,
    limits: Optional[Mapping[str, int]] = ...,
    # OPTIONS CALIBRATE
    method: str = ...,
    percentile: float = ...,
    quantile: float = ...,
    cutoff: float = ...,
    # END
    # OPTIONS BUILD
    device: str = ...,
    threads: int = ...,
    tune: str = ...,
    timing_cache: str = ...,
    cache_only: bool = ...,
    kernel_cache: str = ...,
    branches: str = ...,
    no_code: bool = ...,
    math: str = ...,
    allow: Words = ...,
    lower: str = ...,
    budget: float = ...,
    capacity: int = ...,
    rules: str = ...,
    rule_limit: int = ...,
    isa: str = ...,
    refittable: bool = ...,
    verify: bool = ...,
    detail: str = ...,
    workspace: int = ...,
    # END
) -> Calibration: ...
def load(
    source: Union[Path, bytes, bytearray, memoryview, Plan],
    *,
    log: Optional[Log] = ...,
    log_topics: Optional[Words] = ...,
    limits: Optional[Mapping[str, int]] = ...,
    # OPTIONS ENGINE
    device: str = ...,
    threads: int = ...,
    spin: int = ...,
    pin: bool = ...,
    kernel_cache: str = ...,
    isa: str = ...,
    trust_code: bool = ...,
    no_device: bool = ...,
    weight_budget: int = ...,
    # END
) -> Engine: ...
def model_inputs(model: Any) -> List[ModelIO]: ...
def machine() -> Dict[str, Any]: ...
def operators() -> Dict[str, Any]: ...
def read(path: Path) -> Tensor: ...
def write(path: Path, tensor: Array) -> None: ...
