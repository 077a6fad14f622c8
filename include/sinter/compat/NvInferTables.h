/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferTables.h - what the C++ headers here and the Python package have in common: the plugins that upstream ships
 * and that are operators of sinter, and what a build says of settings that have no meaning here.
 * tools/write_python.py copies the tables into python/sinter/_abi.py. */
#ifndef NV_INFER_TABLES_H
#define NV_INFER_TABLES_H

/* P(name, versions of IPluginV2, versions of IPluginV3, outputs, fields): each character of the versions is a version.
 * Fields: I(name, count) are integers, F(name, count) floats. count: elements; 0: weights of any number. */
/* clang-format off */
#define SINTER_BATCHED_NMS_FIELDS(I, F)                                                                                \
    I(shareLocation, 1) I(backgroundLabelId, 1) I(numClasses, 1) I(topK, 1) I(keepTopK, 1) F(scoreThreshold, 1)        \
    F(iouThreshold, 1) I(isNormalized, 1) I(clipBoxes, 1) I(scoreBits, 1) I(caffeSemantics, 1)
#define SINTER_SHIPPED_PLUGINS(P, I, F)                                                                                \
    P(EfficientNMS_TRT, "1", "", 4,                                                                                    \
      F(score_threshold, 1) F(iou_threshold, 1) I(max_output_boxes, 1) I(background_class, 1) I(score_activation, 1)   \
      I(class_agnostic, 1) I(box_coding, 1))                                                                           \
    P(BatchedNMS_TRT, "1", "", 4, SINTER_BATCHED_NMS_FIELDS(I, F))                                                     \
    P(BatchedNMSDynamic_TRT, "1", "", 4, SINTER_BATCHED_NMS_FIELDS(I, F))                                              \
    P(ROIAlign_TRT, "1", "2", 1,                                                                                       \
      I(coordinate_transformation_mode, 1) I(mode, 1) I(output_height, 1) I(output_width, 1) I(sampling_ratio, 1)      \
      F(spatial_scale, 1))                                                                                             \
    P(ModulatedDeformConv2d, "1", "2", 1,                                                                              \
      I(stride, 2) I(padding, 2) I(dilation, 2) I(group, 1) I(deformable_group, 1))                                    \
    P(MultiscaleDeformableAttnPlugin_TRT, "1", "2", 1, )                                                               \
    P(InstanceNormalization_TRT, "12", "3", 1,                                                                         \
      F(epsilon, 1) F(scales, 0) F(bias, 0) I(relu, 1) F(alpha, 1))

/* X(flag of BuilderFlag, why it changes nothing): a warning. */
#define SINTER_UNUSED_FLAGS(X)                                                                                         \
    X(SPARSE_WEIGHTS, "there are no kernels for 2:4 sparse weights")                                                   \
    X(VERSION_COMPATIBLE, "an engine is for one version of sinter: build it again, or keep the model")                 \
    X(WEIGHT_STREAMING, "every engine for a GPU can stream weights: set the engine's weight streaming budget")         \
    X(SAFETY_SCOPE, "there is no safety runtime")                                                                      \
    X(FP8, "8-bit floats are used where the model quantises to them")                                                  \
    X(INT4, "4-bit weights are used where the model quantises to them")

/* X(name, text): other settings that change nothing, each a warning. */
#define SINTER_UNUSED_SETTINGS(X)                                                                                      \
    X(HARDWARE, "the hardware compatibility level changes nothing: kernels are chosen for one chip; build an engine "  \
                "for each")                                                                                            \
    X(PLUGINS, "plugins to serialize change nothing: an engine carries no libraries; the program that runs it loads "  \
               "them")                                                                                                 \
    X(SELECTOR, "the algorithm selector changes nothing: kernels are chosen by their times, which a timing cache "     \
                "keeps")                                                                                               \
    X(INT8, "the flag INT8 changes nothing without ranges: a calibrator, dynamic ranges of tensors, or a model with "  \
            "QuantizeLinear and DequantizeLinear")

/* X(name, text): settings that a build refuses. */
#define SINTER_REFUSED_SETTINGS(X)                                                                                     \
    X(CAPABILITY, "the engine capability is not STANDARD: there is no safety runtime, and no DLA")                     \
    X(PLATFORM, "the runtime platform is not SAME_AS_BUILD: build on the system that runs the engine")                 \
    X(DLA, "there is no DLA: everything runs on the GPU or the CPU, which the flag GPU_FALLBACK permits")
/* clang-format on */

#endif
