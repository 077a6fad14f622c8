# SPDX-License-Identifier: Apache-2.0
"""The names of TensorRT's Python module, of its versions 8.6, 10.16 and 11.1 together: enums with their values, classes with
their members.

Values are those of 10.16. A value that a name of 8.6 had, and that means something else since then, is not used: such
names have values from 40 (of LayerType: from 140) on."""
import enum


class Enum(enum.IntEnum):
    """Prints as upstream's enums do, and like those is true whatever its value: `dtype or default` keeps FLOAT, which is 0."""

    def __str__(self):
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}: {int(self)}>"

    def __bool__(self):
        return True

    __format__ = enum.Enum.__format__


# NAME: members in the order of their values; "=" where the value is not the one behind that of the member before.
ENUMS = """
APILanguage: CPP PYTHON
ActivationType: RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH THRESHOLDED_RELU
    GELU_ERF GELU_TANH
AllocatorFlag: RESIZABLE
AttentionIOForm: PADDED_BHND PACKED_NHD
AttentionNormalizationOp: NONE SOFTMAX
BoundingBoxFormat: CORNER_PAIRS CENTER_SIZES
BuilderFlag: FP16 INT8 DEBUG GPU_FALLBACK REFIT DISABLE_TIMING_CACHE TF32 SPARSE_WEIGHTS SAFETY_SCOPE
    OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS DIRECT_IO REJECT_EMPTY_ALGORITHMS VERSION_COMPATIBLE
    EXCLUDE_LEAN_RUNTIME FP8 ERROR_ON_TIMING_CACHE_MISS BF16 DISABLE_COMPILATION_CACHE WEIGHTLESS STRIP_PLAN=19
    REFIT_IDENTICAL WEIGHT_STREAMING INT4 REFIT_INDIVIDUAL STRICT_NANS MONITOR_MEMORY FP4 EDITABLE_TIMING_CACHE
    DISTRIBUTIVE_INDEPENDENCE STRICT_TYPES=40 ENABLE_TACTIC_HEURISTIC
CalibrationAlgoType: LEGACY_CALIBRATION ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 MINMAX_CALIBRATION
CausalMaskKind: NONE UPPER_LEFT LOWER_RIGHT
CollectiveOperation: ALL_REDUCE ALL_GATHER BROADCAST REDUCE REDUCE_SCATTER ALL_TO_ALL GATHER SCATTER
CumulativeOperation: SUM
DataType: FLOAT HALF INT8 INT32 BOOL UINT8 FP8 BF16 INT64 INT4 FP4 E8M0
DeviceType: GPU DLA
DimensionOperation: SUM PROD MAX MIN SUB EQUAL LESS FLOOR_DIV CEIL_DIV
ElementWiseOperation: SUM PROD MAX MIN SUB DIV POW FLOOR_DIV AND OR XOR EQUAL GREATER LESS
EngineCapability: STANDARD DEFAULT=0 SAFETY SAFE_GPU=1 DLA_STANDALONE SAFE_DLA=2
EngineStat: TOTAL_WEIGHTS_SIZE STRIPPED_WEIGHTS_SIZE
ErrorCode: SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH INVALID_NODE
    UNSUPPORTED_GRAPH UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR UNSUPPORTED_NODE_INPUT UNSUPPORTED_NODE_DATATYPE
    UNSUPPORTED_NODE_DYNAMIC UNSUPPORTED_NODE_SHAPE REFIT_FAILED
ErrorCodeTRT: SUCCESS=0 UNSPECIFIED_ERROR=1 INTERNAL_ERROR=2 INVALID_ARGUMENT=3 INVALID_CONFIG=4 FAILED_ALLOCATION=5
    FAILED_INITIALIZATION=6 FAILED_EXECUTION=7 FAILED_COMPUTATION=8 INVALID_STATE=9 UNSUPPORTED_STATE=10
ExecutionContextAllocationStrategy: STATIC ON_PROFILE_CHANGE USER_MANAGED
FieldType: FLOAT INT32 CHAR DIMS=4 DATATYPE UNKNOWN
FillOperation: LINSPACE RANDOM_UNIFORM RANDOM_NORMAL
GatherMode: DEFAULT ELEMENT ND
HardwareCompatibilityLevel: NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY
InterpolationMode: NEAREST LINEAR CUBIC
KVCacheMode: LINEAR
LayerInformationFormat: ONELINE JSON
LayerType: CONVOLUTION CAST ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION CONCATENATION ELEMENTWISE PLUGIN UNARY
    PADDING SHUFFLE REDUCE TOPK GATHER MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT IDENTITY PLUGIN_V2 SLICE SHAPE
    PARAMETRIC_RELU RESIZE TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT SELECT FILL QUANTIZE DEQUANTIZE CONDITION
    CONDITIONAL_INPUT CONDITIONAL_OUTPUT SCATTER EINSUM ASSERTION ONE_HOT NON_ZERO GRID_SAMPLE NMS REVERSE_SEQUENCE
    NORMALIZATION PLUGIN_V3 SQUEEZE UNSQUEEZE CUMULATIVE DYNAMIC_QUANTIZE ATTENTION_INPUT ATTENTION_OUTPUT
    ROTARY_EMBEDDING KV_CACHE_UPDATE MOE DIST_COLLECTIVE RNN_V2=140 FULLY_CONNECTED
LoopOutput: LAST_VALUE CONCATENATE REVERSE
MatrixOperation: NONE TRANSPOSE VECTOR
MemoryPoolType: WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY
MoEActType: NONE SILU
NetworkDefinitionCreationFlag: EXPLICIT_BATCH STRONGLY_TYPED PREFER_JIT_PYTHON_PLUGINS PREFER_AOT_PYTHON_PLUGINS
    EXPLICIT_PRECISION=40
OnnxParserFlag: NATIVE_INSTANCENORM ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA REPORT_CAPABILITY_DLA
    ENABLE_PLUGIN_OVERRIDE ADJUST_FOR_DLA
PaddingMode: EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER CAFFE_ROUND_DOWN CAFFE_ROUND_UP
PluginArgDataType: INT8 INT16 INT32
PluginArgType: INT
PluginCapabilityType: CORE BUILD RUNTIME
PluginCreatorVersion: V1 V1_PYTHON=64
PluginFieldType: FLOAT16 FLOAT32 FLOAT64 INT8 INT16 INT32 CHAR DIMS UNKNOWN BF16 INT64 FP8 INT4 FP4
PoolingType: MAX AVERAGE MAX_AVERAGE_BLEND
PreviewFeature: PROFILE_SHARING_0806 ALIASED_PLUGIN_IO_10_03 RUNTIME_ACTIVATION_RESIZE_10_10 MULTIDEVICE_RUNTIME_10_16
    FASTER_DYNAMIC_SHAPES_0805=40 DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805
ProfilingVerbosity: LAYER_NAMES_ONLY DEFAULT=0 NONE DETAILED VERBOSE=2
QuantizationFlag: CALIBRATE_BEFORE_FUSION
QuickPluginCreationRequest: UNKNOWN PREFER_JIT PREFER_AOT STRICT_JIT STRICT_AOT
RNNDirection: UNIDIRECTION BIDIRECTION
RNNGateType: INPUT OUTPUT FORGET UPDATE RESET CELL HIDDEN
RNNInputMode: LINEAR SKIP
RNNOperation: RELU TANH LSTM GRU
ReduceOperation: SUM PROD MAX MIN AVG NONE
ResizeCoordinateTransformation: ALIGN_CORNERS ASYMMETRIC HALF_PIXEL
ResizeRoundMode: HALF_UP HALF_DOWN FLOOR CEIL
ResizeSelector: FORMULA UPPER
RuntimePlatform: SAME_AS_BUILD WINDOWS_AMD64
SampleMode: STRICT_BOUNDS DEFAULT=0 WRAP CLAMP FILL REFLECT
ScaleMode: UNIFORM CHANNEL ELEMENTWISE
ScatterMode: ELEMENT ND
SeekPosition: SET CUR END
SerializationFlag: EXCLUDE_WEIGHTS EXCLUDE_LEAN_RUNTIME INCLUDE_REFIT
Severity: INTERNAL_ERROR ERROR WARNING INFO VERBOSE
TacticSource: CUBLAS CUBLAS_LT CUDNN EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS
TempfileControlFlag: ALLOW_IN_MEMORY_FILES ALLOW_TEMPORARY_FILES
TensorFormat: LINEAR CHW2 HWC8 CHW4 CHW16 CHW32 DHWC8 CDHW32 HWC DLA_LINEAR DLA_HWC4 HWC16 DHWC
TensorIOMode: NONE INPUT OUTPUT
TensorLocation: DEVICE HOST
TensorRTPhase: BUILD RUNTIME
TilingOptimizationLevel: NONE FAST MODERATE FULL
TopKOperation: MAX MIN
TripLimit: COUNT WHILE
UffInputOrder: NCHW NHWC NC
UnaryOperation: EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL FLOOR ERF NOT
    SIGN ROUND ISINF ISNAN
WeightsRole: KERNEL BIAS SHIFT SCALE CONSTANT ANY
"""

# CLASS: members, beside those with two underscores.
CLASSES = """
Builder: build_engine build_engine_with_config build_serialized_network build_serialized_network_to_stream
    create_builder_config create_network create_optimization_profile get_plugin_registry is_network_supported reset
    error_recorder gpu_allocator max_batch_size max_threads logger max_DLA_batch_size num_DLA_cores
    platform_has_fast_fp16 platform_has_fast_int8 platform_has_tf32
CaffeParser: parse parse_binary_proto parse_buffer error_recorder plugin_factory_v2 plugin_namespace
    protobuf_buffer_size
Dims: MAX_DIMS
Dims2:
Dims3:
Dims4:
DimsExprs:
DimsHW: h w
DynamicPluginTensorDesc: desc max min opt
EngineInspector: get_engine_information get_layer_information error_recorder execution_context
FallbackString:
FieldCollection: fields num_fields
FieldMap: data length name type
IActivationLayer: alpha beta type
IAlgorithm: get_algorithm_io_info algorithm_variant timing_msec workspace_size
IAlgorithmContext: get_shape name num_inputs num_outputs
IAlgorithmIOInfo: components_per_element dtype strides tensor_format vectorized_dim
IAlgorithmSelector: report_algorithms select_algorithms
IAlgorithmVariant: implementation tactic
IAssertionLayer: message
IAttention: get_input get_output set_input causal causal_kind decomposable key_value_form key_value_lengths mask
    metadata name norm_op normalization_quantize_scale normalization_quantize_to_type num_ranks query_form
    query_lengths num_inputs num_outputs
IAttentionBoundaryLayer: attention
IAttentionInputLayer:
IAttentionOutputLayer:
IBlobNameToTensor: find
IBuilderConfig: add_optimization_profile can_run_on_DLA clear_flag clear_quantization_flag create_timing_cache
    get_calibration_profile get_device_type get_flag get_memory_pool_limit get_preview_feature get_quantization_flag
    get_tactic_sources get_timing_cache is_device_type_set reset reset_device_type set_calibration_profile
    set_device_type set_flag set_memory_pool_limit set_preview_feature set_quantization_flag set_tactic_sources
    set_timing_cache DLA_core algorithm_selector avg_timing_iterations build_route builder_optimization_level
    default_device_type engine_capability flags hardware_compatibility_level int8_calibrator l2_limit_for_tiling
    max_aux_streams max_num_tactics max_workspace_size min_timing_iterations plugins_to_serialize profile_stream
    profiling_verbosity progress_monitor quantization_flags remote_auto_tuning_config runtime_platform
    tiling_optimization_level all_build_routes num_optimization_profiles
ICaffePluginFactoryV2: create_plugin is_plugin_v2
ICastLayer: to_type
IConcatenationLayer: axis
IConditionLayer:
IConstantLayer: shape weights
IConvolutionLayer: bias dilation dilation_nd kernel kernel_size kernel_size_nd num_groups num_output_maps padding
    padding_mode padding_nd post_padding pre_padding stride stride_nd
ICudaEngine: binding_is_input create_engine_inspector create_execution_context
    create_execution_context_without_device_memory create_runtime_config create_serialization_config
    get_aliased_input_tensor get_binding_bytes_per_component get_binding_components_per_element get_binding_dtype
    get_binding_format get_binding_format_desc get_binding_index get_binding_name get_binding_shape
    get_binding_vectorized_dim get_device_memory_size_for_profile get_device_memory_size_for_profile_v2
    get_engine_stat get_location get_profile_shape get_profile_shape_input get_tensor_bytes_per_component
    get_tensor_components_per_element get_tensor_dtype get_tensor_format get_tensor_format_desc get_tensor_location
    get_tensor_mode get_tensor_name get_tensor_profile_shape get_tensor_profile_values get_tensor_shape
    get_tensor_vectorized_dim get_weight_streaming_automatic_budget is_debug_tensor is_execution_binding
    is_shape_binding is_shape_inference_io serialize serialize_with_config error_recorder weight_streaming_budget
    weight_streaming_budget_v2 device_memory_size device_memory_size_v2 engine_capability hardware_compatibility_level
    has_implicit_batch_dimension max_batch_size minimum_weight_streaming_budget name num_aux_streams num_bindings
    num_io_tensors num_layers num_optimization_profiles profiling_verbosity refittable streamable_weights_size
    tactic_sources weight_streaming_scratch_memory_size
ICumulativeLayer: exclusive op reverse
IDebugListener: process_debug_tensor
IDeconvolutionLayer: bias dilation_nd kernel kernel_size kernel_size_nd num_groups num_output_maps padding
    padding_mode padding_nd post_padding pre_padding stride stride_nd
IDequantizeLayer: axis block_shape to_type
IDimensionExpr: get_constant_value is_constant is_size_tensor
IDistCollectiveLayer:
IDynamicQuantizeLayer: axis block_shape block_size scale_type to_type
IEinsumLayer: equation
IElementWiseLayer: op
IErrorRecorder: clear get_error_code get_error_desc has_overflowed num_errors report_error MAX_DESC_LENGTH
IExecutionContext: execute execute_async execute_async_v2 execute_async_v3 execute_v2 get_binding_shape
    get_debug_listener get_debug_state get_input_consumed_event get_max_output_size get_output_allocator
    get_runtime_config get_shape get_strides get_tensor_address get_tensor_shape get_tensor_strides infer_shapes
    report_to_profiler set_all_tensors_debug_state set_aux_streams set_binding_shape set_communicator
    set_debug_listener set_device_memory set_input_consumed_event set_input_shape set_optimization_profile_async
    set_output_allocator set_shape_input set_tensor_address set_tensor_debug_state
    update_device_memory_size_for_shapes active_optimization_profile debug_sync device_memory enqueue_emits_profile
    error_recorder name nvtx_verbosity persistent_cache_limit profiler temporary_allocator unfused_tensors_debug_state
    all_binding_shapes_specified all_shape_inputs_specified engine
IExprBuilder: constant declare_size_tensor operation
IFillLayer: is_alpha_beta_int64 set_input alpha beta operation shape to_type
IFullyConnectedLayer: bias kernel num_output_channels
IGatherLayer: axis mode num_elementwise_dims
IGpuAllocator: allocate allocate_async deallocate deallocate_async free reallocate
IGpuAsyncAllocator: allocate allocate_async deallocate deallocate_async
IGridSampleLayer: align_corners interpolation_mode sample_mode
IHostMemory: dtype nbytes
IIdentityLayer:
IIfConditional: add_input add_output set_condition name
IIfConditionalBoundaryLayer: conditional
IIfConditionalInputLayer:
IIfConditionalOutputLayer:
IInt8Calibrator: get_algorithm get_batch get_batch_size read_calibration_cache write_calibration_cache
IInt8EntropyCalibrator: get_algorithm get_batch get_batch_size read_calibration_cache write_calibration_cache
IInt8EntropyCalibrator2: get_algorithm get_batch get_batch_size read_calibration_cache write_calibration_cache
IInt8LegacyCalibrator: get_algorithm get_batch get_batch_size read_calibration_cache write_calibration_cache
IInt8MinMaxCalibrator: get_algorithm get_batch get_batch_size read_calibration_cache write_calibration_cache
IIteratorLayer: axis reverse
IKVCacheUpdateLayer: set_input cache_mode update_form update_lengths
ILRNLayer: alpha beta k window_size
ILayer: get_input get_output get_output_type output_type_is_set reset_output_type reset_precision set_input
    set_output_type metadata name num_ranks precision num_inputs num_outputs precision_is_set type
ILogger:
ILoop: add_iterator add_loop_output add_recurrence add_trip_limit name
ILoopBoundaryLayer: loop
ILoopOutputLayer: set_input axis kind
IMatrixMultiplyLayer: op0 op1
IMoELayer: set_gated_biases set_gated_weights set_input set_quantization_dynamic_dbl_q set_quantization_static
    set_swiglu_params activation_type dyn_q_output_scale_type quantization_block_shape quantization_to_type
    swiglu_param_alpha swiglu_param_beta swiglu_param_limit
INMSLayer: set_input bounding_box_format indices_type topk_box_limit
INetworkDefinition: add_activation add_assertion add_attention add_attention_v2 add_cast add_concatenation
    add_constant add_convolution add_convolution_nd add_cumulative add_deconvolution add_deconvolution_nd
    add_dequantize add_dist_collective add_dynamic_quantize add_dynamic_quantize_v2 add_einsum add_elementwise
    add_fill add_fully_connected add_gather add_gather_v2 add_grid_sample add_identity add_if_conditional add_input
    add_kv_cache_update add_loop add_lrn add_matrix_multiply add_moe add_nms add_non_zero add_normalization
    add_normalization_v2 add_one_hot add_padding add_padding_nd add_parametric_relu add_plugin add_plugin_v2
    add_plugin_v3 add_pooling add_pooling_nd add_quantize add_ragged_softmax add_reduce add_resize
    add_reverse_sequence add_rnn_v2 add_rotary_embedding add_scale add_scale_nd add_scatter add_select add_shape
    add_shuffle add_slice add_softmax add_squeeze add_topk add_unary add_unsqueeze are_weights_marked_refittable
    get_flag get_input get_layer get_output is_debug_tensor mark_debug mark_output mark_output_for_shapes
    mark_unfused_tensors_as_debug_tensors mark_weights_refittable remove_tensor set_weights_name unmark_debug
    unmark_output unmark_output_for_shapes unmark_unfused_tensors_as_debug_tensors unmark_weights_refittable
    error_recorder name builder flags has_explicit_precision has_implicit_batch_dimension num_inputs num_layers
    num_outputs
INonZeroLayer: indices_type
INormalizationLayer: axes compute_precision epsilon num_groups is_v2
IOneHotLayer: axis
IOptimizationProfile: __bool__ __nonzero__ get_shape get_shape_input set_shape set_shape_input extra_memory_target
IOutputAllocator: notify_shape reallocate_output tensorrt_version
IPaddingLayer: post_padding post_padding_nd pre_padding pre_padding_nd
IParametricReLULayer:
IPluginCapability:
IPluginCreator: create_plugin deserialize_plugin field_names name plugin_namespace plugin_version tensorrt_version
IPluginCreatorInterface:
IPluginCreatorV3One: create_plugin field_names name plugin_namespace plugin_version
IPluginCreatorV3Quick: create_plugin field_names name plugin_namespace plugin_version
IPluginRegistry: acquire_plugin_resource deregister_creator deregister_library get_creator get_plugin_creator
    load_library register_creator release_plugin_resource error_recorder parent_search_enabled all_creators
    all_creators_recursive plugin_creator_list
IPluginResource: clone release
IPluginResourceContext: error_recorder gpu_allocator
IPluginV2: clone configure_with_format destroy execute_async get_output_shape get_workspace_size initialize serialize
    supports_format terminate num_outputs plugin_namespace plugin_type plugin_version serialization_size
    tensorrt_version
IPluginV2DynamicExt: clone configure_plugin destroy enqueue get_output_datatype get_output_dimensions
    get_serialization_size get_workspace_size initialize serialize supports_format_combination terminate
    FORMAT_COMBINATION_LIMIT
IPluginV2DynamicExtBase:
IPluginV2Ext: attach_to_context clone configure_plugin detach_from_context get_output_data_type
IPluginV2Layer: plugin
IPluginV3: clone destroy get_capability_interface
IPluginV3Layer: plugin
IPluginV3OneBuild: configure_plugin get_output_data_types get_output_shapes get_valid_tactics get_workspace_size
    supports_format_combination format_combination_limit metadata_string num_outputs timing_cache_id
    DEFAULT_FORMAT_COMBINATION_LIMIT
IPluginV3OneBuildV2: get_aliased_input
IPluginV3OneCore: plugin_name plugin_namespace plugin_version
IPluginV3OneRuntime: attach_to_context enqueue get_fields_to_serialize on_shape_change set_tactic
IPluginV3QuickAOTBuild:
IPluginV3QuickBuild:
IPluginV3QuickCore: plugin_name plugin_namespace plugin_version
IPluginV3QuickRuntime:
IPoolingLayer: average_count_excludes_padding blend_factor padding padding_mode padding_nd post_padding pre_padding
    stride stride_nd type window_size window_size_nd
IProfiler: report_layer_time
IProgressMonitor: phase_finish phase_start step_complete
IQuantizeLayer: axis block_shape to_type
IRNNv2Layer: get_bias_for_gate get_weights_for_gate set_bias_for_gate set_weights_for_gate cell_state direction
    hidden_state input_mode op seq_lengths data_length hidden_size max_seq_length num_layers
IRaggedSoftMaxLayer:
IRecurrenceLayer: set_input
IReduceLayer: axes keep_dims op
IResizeLayer: set_input coordinate_transformation cubic_coeff exclude_outside nearest_rounding resize_mode scales
    selector_for_single_pixel shape
IReverseSequenceLayer: batch_axis sequence_axis
IRotaryEmbeddingLayer: set_input interleaved rotary_embedding_dim
IRuntimeConfig: get_execution_context_allocation_strategy set_execution_context_allocation_strategy
IScaleLayer: channel_axis mode power scale shift
IScatterLayer: axis mode
ISelectLayer:
ISerializationConfig: clear_flag get_flag set_flag flags
IShapeLayer:
IShuffleLayer: set_input first_transpose reshape_dims second_transpose zero_is_placeholder
ISliceLayer: set_input axes mode shape start stride
ISoftMaxLayer: axes
ISqueezeLayer: set_input
IStreamReader: read
IStreamReaderV2: read seek
IStreamWriter: write
ISymExpr: dtype expr type
ISymExprs: nbSymExprs
ITensor: get_dimension_name reset_dynamic_range set_dimension_name set_dynamic_range allowed_formats
    broadcast_across_batch dtype dynamic_range location name shape is_execution_tensor is_network_input
    is_network_output is_shape_tensor
ITimingCache: combine query queryKeys reset serialize update
ITopKLayer: set_input axes indices_type k op
ITripLimitLayer: kind
IUnaryLayer: op
IUnsqueezeLayer: set_input
IVersionedInterface: api_language interface_info
InterfaceInfo: kind major minor
KernelLaunchParams: block_x block_y block_z grid_x grid_y grid_z shared_mem
Logger: log min_severity
OnnxParser: clear_errors clear_flag get_error get_flag get_layer_output_tensor get_subgraph_nodes
    get_used_vc_plugin_libraries is_subgraph_supported load_initializer load_model_proto parse parse_from_file
    parse_model_proto parse_with_weight_descriptors set_builder_config set_flag supports_model supports_model_v2
    supports_operator flags num_errors num_subgraphs
OnnxParserRefitter: clear_errors get_error load_initializer load_model_proto refit_from_bytes refit_from_file
    refit_model_proto num_errors
ParserError: code desc file func line local_function_stack local_function_stack_size node node_name node_operator
Permutation:
PluginField: data name size type
PluginFieldCollection_:
PluginTensorDesc: dims format scale type
Profiler: report_layer_time
Refitter: get_all get_all_weights get_dynamic_range get_missing get_missing_weights get_named_weights
    get_tensors_with_dynamic_range get_weights_location get_weights_prototype refit_cuda_engine
    refit_cuda_engine_async set_dynamic_range set_named_weights set_weights unset_named_weights error_recorder
    max_threads weights_validation logger
Runtime: deserialize_cuda_engine get_plugin_registry load_runtime DLA_core engine_host_code_allowed error_recorder
    gpu_allocator max_threads tempfile_control_flags temporary_directory logger num_DLA_cores
TimingCacheKey: parse
TimingCacheValue: tacticHash timingMSec
UffParser: parse parse_buffer register_input register_output error_recorder plugin_namespace
    uff_required_version_major uff_required_version_minor uff_required_version_patch
Weights: numpy dtype nbytes size
"""

# What version 8.6 alone has of classes that are still there.
GONE = """
Builder: build_engine max_batch_size
IBuilderConfig: max_workspace_size min_timing_iterations
IConvolutionLayer: dilation kernel_size padding stride
ICudaEngine: __len__ binding_is_input get_binding_bytes_per_component get_binding_components_per_element get_binding_dtype
    get_binding_format get_binding_format_desc get_binding_index get_binding_name get_binding_shape get_binding_vectorized_dim
    get_location get_profile_shape get_profile_shape_input is_execution_binding is_shape_binding max_batch_size num_bindings
IDeconvolutionLayer: kernel_size padding stride
IExecutionContext: execute execute_async execute_async_v2 get_binding_shape get_shape get_strides set_binding_shape set_shape_input
INetworkDefinition: add_convolution add_deconvolution add_fully_connected add_padding add_pooling add_rnn_v2 has_explicit_precision
IPaddingLayer: post_padding pre_padding
IPoolingLayer: padding stride window_size
"""


def rows(table):
    """(name, words) of each entry; lines that begin with blanks continue the entry before."""
    for entry in table.strip().replace("\n    ", " ").split("\n"):
        name, _, words = entry.partition(":")
        yield name.rsplit(".", 1)[-1], words.split()


def make_enums():
    made = {}
    for name, words in rows(ENUMS):
        members, value = {}, -1
        for word in words:
            member, _, given = word.partition("=")
            value = int(given) if given else value + 1
            members[member] = value
        made[name] = Enum(name, members, module="sinter.tensorrt")
        setattr(made[name], "__entries", {n: (m, None) for n, m in made[name].__members__.items()})      # as pybind11's enums have it
    return made


globals().update(make_enums())
