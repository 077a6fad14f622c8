/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the command line. Options of the library are the rows of its own tables (sinter/option.h); the command's are
 * rows here. The parser, --help and docs/options.md come from both. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "sinter/sinter.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* Verbs as bits: which options a verb takes. */
enum {
    V_BUILD = 1, V_RUN = 2, V_BENCH = 4, V_TEST = 8, V_INSPECT = 16, V_OPS = 32, V_DOCTOR = 64,
    V_REFIT = 256, V_REPORT = 512, V_COMPLETION = 1024, V_MAN = 2048, V_SIMPLIFY = 4096, V_PLUGIN = 8192,
    V_COMPARE = 16384, V_DEBUG = 32768, V_CALIBRATE = 65536, V_QUANTIZE = 1 << 17,
    V_MODEL = V_BUILD | V_RUN | V_BENCH | V_INSPECT | V_REPORT | V_COMPARE | V_DEBUG,       /* build a model */
    V_ALL = 127 | V_REFIT | V_REPORT | V_SIMPLIFY | V_PLUGIN | V_COMPARE | V_DEBUG | V_CALIBRATE | V_QUANTIZE,
    V_GIVEN = V_CALIBRATE | V_QUANTIZE,
    V_BUILDING = 128,                   /* no verb: of building alone, so an engine cannot honour it */
    V_MADE = V_MODEL | V_TEST | V_BUILDING
};

/* TEXT is not empty; WORD is one of the words of its row; LIMITS are a sinter_limits. The others are lists: PATHS of
 * files, PAIRS of two names, FILES of a name and a file, or an archive .npz of many, DIMS a shape, COLONS a shape as
 * other tools write it, RANGES a profile; NUMBERS and WORDS are for all outputs, or NAME:... for one. */
typedef enum arg_kind {
    ARG_FLAG, ARG_TEXT, ARG_WORD, ARG_COUNT, ARG_REAL,
    ARG_PATHS, ARG_PAIRS, ARG_FILES, ARG_DIMS, ARG_COLONS, ARG_RANGES, ARG_LIMITS, ARG_NUMBERS, ARG_WORDS
} arg_kind;

enum { ARG_LIST_MAX = 256 };
typedef struct arg_list { const char *at[ARG_LIST_MAX]; uint32_t count; } arg_list;

/* X(field, kind, "--name", verbs, "METAVAR" or its choices, "help"). */
#define CLI_OPTIONS(X)                                                                                                \
    X(output, TEXT, "output",                                                                                         \
      V_BUILD | V_BENCH | V_REFIT | V_REPORT | V_SIMPLIFY | V_COMPARE | V_DEBUG | V_GIVEN, "FILE",                    \
      "The file to write (also -o): the engine, the model, the calibration cache, or the report as a page of HTML.")  \
    X(shape, DIMS, "shape", V_MODEL | V_SIMPLIFY | V_GIVEN, "NAME=1x3x224x224",                                       \
      "Fixes the dims of an input, or the value of a named dim (N=4); of an engine, within its ranges; of simplify, " \
      "in the comparison. May be repeated.")                                                                          \
    X(overwrite_input_shape, COLONS, "overwrite-input-shape", V_SIMPLIFY, "NAME:1,3,224,224",                         \
      "Gives an input of the model a fixed shape. May be repeated.")                                                  \
    X(input_data_path, FILES, "input-data-path", V_SIMPLIFY, "NAME=FILE",                                             \
      "Data of an input for the comparison, .npy or .pb; random where not given. May be repeated.")                   \
    X(profile, RANGES, "profile", V_BUILD | V_RUN | V_BENCH | V_INSPECT | V_REPORT | V_BUILDING, "NAME=MIN,OPT,MAX",  \
      "The range of an input's dims (each as 1x3x224x224) or of a named dim. May be repeated; naming one a "          \
      "second time starts the next profile.")                                                                         \
    X(steps, FLAG, "steps", V_BENCH, "", "Adds a table of steps, sorted by time.")                                    \
    X(roofline, FLAG, "roofline", V_BENCH, "",                                                                        \
      "Adds a table of steps in order, each with the least time that its operations and bytes could take on this "    \
      "machine, which is measured first. With -o FILE the table is a page of HTML, too.")                             \
    X(use_profile, COUNT, "use-profile", V_RUN | V_BENCH | V_REPORT | V_COMPARE, "N",                                 \
      "Runs profile N. Default: the first that takes the shapes.")                                                    \
    X(input, FILES, "input", V_RUN | V_BENCH | V_REPORT | V_COMPARE | V_DEBUG, "NAME=FILE",                           \
      "Data of an input, .npy or .pb; random where not given. FILE.npz alone: of all inputs, by name. May be "         \
      "repeated.")                                                                                                    \
    X(state, PAIRS, "state", V_MODEL | V_GIVEN | V_BUILDING, "INPUT=OUTPUT",                                          \
      "A tensor that stays in the context between runs: the input before a run and the output after it, such as "     \
      "'past_key_values.*=present.*' ('*' stands for the same text in both). May be repeated.")                       \
    X(equal, PAIRS, "equal", V_MODEL | V_GIVEN | V_BUILDING, "NAME=EXPRESSION",                                       \
      "A named dim that is always computed from others, such as T=P+S. May be repeated.")                             \
    X(value, FILES, "value", V_MODEL | V_GIVEN | V_BUILDING, "NAME=FILE",                                             \
      "Builds for an input that always holds this: axes or scales that operators must know. May be repeated.")        \
    X(output_dir, TEXT, "output-dir", V_RUN, "DIR",                                                                   \
      "Writes each output to DIR/output_I.npy, as `sinter test` reads them.")                                         \
    X(data, FILES, "data", V_MODEL | V_GIVEN | V_BUILDING, "NAME=FILE",                                               \
      "Data of an input on which --allow finds ranges of 8-bit numbers and measures what it does to the outputs; "    \
      "else it is seeded. A .npy or .pb file, a .bin or .raw file of the numbers alone, or a folder of such files, "  \
      "in the order of their names. The n-th file of each input is of the n-th sample. FILE.npz alone has data of "   \
      "inputs by name, whose first axis counts samples. May be repeated.")                                            \
    X(calib, TEXT, "calib", V_MODEL | V_QUANTIZE | V_BUILDING, "CACHE",                                               \
      "A calibration cache, as `sinter calibrate` and TensorRT write it: with --allow int8 its ranges are taken.")    \
    X(onnx_path, TEXT, "onnx-path", V_QUANTIZE, "MODEL", "The model; the same as MODEL.onnx.")                        \
    X(output_path, TEXT, "output-path", V_QUANTIZE, "OUT", "The file to write; the same as --output.")                \
    X(calibration_method, WORD, "calibration-method", V_QUANTIZE, "max|entropy|rtn_dq|awq_clip|awq_lite|awq_full",    \
      "max is --method minmax, entropy is --method entropy2. Default: entropy for int8, max for fp8. The others are "  \
      "of int4: the same as --weight-method.")                                                                        \
    X(calibration_data_path, TEXT, "calibration-data-path", V_QUANTIZE, "FILE.npz", "The same as --data FILE.npz.")   \
    X(calibration_cache_path, TEXT, "calibration-cache-path", V_QUANTIZE, "CACHE", "The same as --calib.")            \
    X(op_types_to_quantize, TEXT, "op-types-to-quantize", V_QUANTIZE, "OP,OP",                                        \
      "Conv, MatMul, Gemm: what is quantised. Default: all.")                                                         \
    X(op_types_to_exclude, TEXT, "op-types-to-exclude", V_QUANTIZE, "OP,OP", "What stays in f32.")                    \
    X(nodes_to_quantize, PATHS, "nodes-to-quantize", V_QUANTIZE, "REGEX",                                             \
      "Nodes that are quantised, by name. May be repeated.")                                                          \
    X(nodes_to_exclude, PATHS, "nodes-to-exclude", V_QUANTIZE, "REGEX",                                               \
      "Nodes that stay in f32, by name. May be repeated.")                                                            \
    X(lint, FLAG, "lint", V_QUANTIZE, "",                                                                             \
      "Writes nothing, and says which rules for QuantizeLinear and DequantizeLinear the nodes of a model break.")     \
    X(dq_only, FLAG, "dq-only", V_QUANTIZE, "", "Weights are stored as codes before a DequantizeLinear: always so.") \
    X(high_precision_dtype, WORD, "high-precision-dtype", V_QUANTIZE, "fp32",                                         \
      "What is not quantised stays in fp32: no other type is written.")                                               \
    X(weights, TEXT, "weights", V_REFIT, "FILE",                                                                      \
      "The model that the engine was built from, with other weights.")                                                \
    X(strip, FLAG, "strip", V_REFIT, "", "Leaves the weights out: the engine has to be refitted before it runs.")     \
    X(plugin, PATHS, "plugin", V_MODEL | V_TEST | V_REFIT | V_GIVEN, "LIB",                                           \
      "A shared library with plugins for operators that sinter does not have, or a CUDA source file that is a "       \
      "plugin (.cu). Its code runs in this process. May be repeated.")                                                \
    X(check_plugins, FLAG, "check-plugins", V_MODEL | V_TEST, "",                                                     \
      "Finds plugins that write past a buffer or to an input. Slower.")                                               \
    X(cu, FLAG, "cu", V_PLUGIN, "", "new: writes a plugin that is a CUDA source alone.")                              \
    X(limit, LIMITS, "limit", V_MODEL | V_TEST | V_SIMPLIFY | V_GIVEN, "NAME=N",                                      \
      "Raises or lowers a limit on what a model may cost. May be repeated.")                                          \
    X(seed, COUNT, "seed", V_RUN | V_BENCH | V_REPORT | V_SIMPLIFY | V_COMPARE | V_DEBUG, "N",                        \
      "Of random inputs. Default 0.")                                                                                 \
    X(duration, REAL, "duration", V_BENCH | V_REPORT, "S", "Seconds to measure, after a warm-up. Default 3.")         \
    X(warmup, REAL, "warmup", V_BENCH, "S", "Seconds of runs before it measures. Default 0.2.")                       \
    X(iterations, COUNT, "iterations", V_BENCH, "N", "Runs at least, of each stream.")                                \
    X(percentile, TEXT, "percentile", V_BENCH, "P,P", "More percentiles of the time of a run, 0 to 100.")             \
    X(streams, COUNT, "streams", V_BENCH, "N",                                                                        \
      "Contexts that run at the same time, each in a thread of its own. Default 1.")                                  \
    X(no_data_transfers, FLAG, "no-data-transfers", V_BENCH, "",                                                      \
      "Keeps inputs and outputs in the device's memory, so that runs copy neither.")                                  \
    X(rtol, NUMBERS, "rtol", V_TEST | V_COMPARE | V_DEBUG, "[NAME:]R",                                                \
      "Relative tolerance of all outputs, or of one: |got - want| <= atol + rtol * |want|. A tolerance.json wins. "   \
      "May be repeated.")                                                                                             \
    X(atol, NUMBERS, "atol", V_TEST | V_COMPARE | V_DEBUG, "[NAME:]A",                                                \
      "Absolute tolerance of all outputs, or of one. A tolerance.json wins. May be repeated.")                        \
    X(check_error_stat, WORDS, "check-error-stat", V_COMPARE | V_DEBUG, "elemwise|max|mean|median|quantile",          \
      "elemwise (default): each value is within the tolerances; else this figure of the absolute errors is within "   \
      "atol, or that of the relative errors within rtol. NAME:STAT for one output. May be repeated.")                 \
    X(error_quantile, NUMBERS, "error-quantile", V_COMPARE | V_DEBUG, "[NAME:]Q",                                     \
      "Which quantile of the errors is shown and checked, 0 to 1. Default 0.99. May be repeated.")                    \
    X(cosine_similarity_threshold, NUMBERS, "cosine-similarity-threshold", V_COMPARE | V_DEBUG, "[NAME:]C",           \
      "The cosine similarity of both results has to be this at least. May be repeated.")                              \
    X(psnr_threshold, NUMBERS, "psnr-threshold", V_COMPARE | V_DEBUG, "[NAME:]DB",                                    \
      "The ratio of the range of what is wanted to the error has to be this at least. May be repeated.")              \
    X(validate, FLAG, "validate", V_COMPARE | V_DEBUG, "", "A NaN or an infinite value in an output is a failure.")   \
    X(mode, WORD, "mode", V_DEBUG, "bisect|linear",                                                                   \
      "bisect (default): layers are tried in halves, then in ever smaller groups; linear: one by one.")               \
    X(dir, WORD, "dir", V_DEBUG, "forward|reverse",                                                                   \
      "Which layers are tried first: those near the inputs, or those near the outputs. Default: forward; of reduce, " \
      "reverse.")                                                                                                     \
    X(precision, WORD, "precision", V_DEBUG, "fp16|bf16", "precision: the narrower type. Default fp16.")              \
    X(check_with, TEXT, "check", V_DEBUG, "CMD",                                                                      \
      "reduce: a shell command that fails where the model fails. {} in it is the model's file, {data} the folder with "\
      "its inputs, input_0.pb and so on. Default: sinter compare with the reference kernels.")                        \
    X(fail_regex, TEXT, "fail-regex", V_DEBUG, "REGEX",                                                               \
      "reduce: a failure counts only if what the check prints has a match.")                                          \
    X(all_layers, FLAG, "all-layers", V_COMPARE, "",                                                                  \
      "Makes every value of both models an output, compares those that both have, and names the first layer that "    \
      "diverges. Fusions are fewer then.")                                                                            \
    X(why, FLAG, "why", V_INSPECT, "",                                                                                \
      "Adds the kernels that were considered: rejected and why, measured, or taken. Needs a model.")                  \
    X(stage, TEXT, "stage", V_INSPECT, "NAME", "Prints the graph after that pass, and nothing else. Needs a model.")  \
    X(markdown, FLAG, "markdown", V_OPS | V_DOCTOR, "",                                                               \
      "Prints the page of the documentation: docs/ops.md, docs/options.md.")                                          \
    X(output_names, FLAG, "output-names", V_RUN, "",                                                                  \
      "Names the files of --output-dir as the outputs: DIR/NAME.npy, '_' for what a file's name should not hold.")    \
    X(log_level, WORD, "log-level", V_ALL, "error|warning|info|verbose",                                              \
      "The most that is said on stderr; verbose adds the log of the library. Default: info, and what SINTER_LOG asks "\
      "for.")                                                                                                         \
    X(log_file, TEXT, "log-file", V_ALL, "FILE", "Adds all that is said to a file, with times.")                      \
    X(log_times, FLAG, "log-times", V_ALL, "", "Begins each line on stderr with the time and the severity.")          \
    X(expect, PAIRS, "expect", V_REPORT, "NAME=FILE",                                                                 \
      "What an output should be, .npy or .pb: adds a table of differences. May be repeated.")                         \
    X(against, TEXT, "against", V_REPORT, "SIDE",                                                                     \
      "What is right, as B of sinter compare: adds how far the outputs are from it.")                                 \
    X(no_run, FLAG, "no-run", V_REPORT, "", "Runs nothing: a report without times, on any machine.")                  \
    X(json, FLAG, "json", V_ALL & ~V_REPORT, "", "Reports as JSON.")

#define ARG_FIELD_FLAG(field) bool field;
#define ARG_FIELD_TEXT(field) const char *field;
#define ARG_FIELD_WORD(field) const char *field;
#define ARG_FIELD_PATHS(field) arg_list field;
#define ARG_FIELD_PAIRS(field) arg_list field;
#define ARG_FIELD_FILES(field) arg_list field;
#define ARG_FIELD_DIMS(field) arg_list field;
#define ARG_FIELD_COLONS(field) arg_list field;
#define ARG_FIELD_RANGES(field) arg_list field;
#define ARG_FIELD_LIMITS(field) sinter_limits field;
#define ARG_FIELD_NUMBERS(field) arg_list field;
#define ARG_FIELD_WORDS(field) arg_list field;
#define ARG_FIELD_COUNT(field) uint64_t field; bool has_##field;
#define ARG_FIELD_REAL(field) double field; bool has_##field;

typedef struct args {
    const char *verb;
    unsigned    verb_bit;
#define X(field, kind, name, verbs, value, help) ARG_FIELD_##kind(field)
    CLI_OPTIONS(X)
#undef X
    bool        help;
    sinter_build_options  build;    /* with the options of the library that were given */
    sinter_engine_options load;
    sinter_simplify_options simplify;
    sinter_calibrate_options calibrate;
    sinter_quantize_options quantize;
    const char *building;           /* the first option given that is of building alone; NULL: none */
    arg_list    file;               /* what is no option */
    arg_list    said;               /* the options as "--name=value" or "--name" */
} args;

typedef struct cli_verb {
    const char *name, *usage, *about;
    unsigned    bit;
    uint32_t    file_min, file_max;
    sinter_tune tune;               /* where --tune is not given */
    int       (*run)(const args *a);
} cli_verb;

/* What stands behind the '=': "1x3x224x224", or min, opt and max of that rank with commas. False: neither. */
typedef struct args_dims { uint32_t rank, count; int64_t at[3][SINTER_RANK_MAX]; } args_dims;
bool args_dims_read(const char *text, args_dims *out);
/* "NAME=N" of a limit. False: `wanted` (of `size` bytes) receives what was expected. */
bool args_limit_read(const char *text, sinter_limits *out, char *wanted, size_t size);
/* The dims behind the ':', with commas or 'x' between them; none: a scalar. */
bool args_is_npz(const char *path);     /* by its ending */
bool args_colons_read(const char *text, uint32_t *rank, int64_t *dim);

/* Reads argv[2…] of that verb. False: a message has been written to stderr. */
bool args_parse(const cli_verb *verb, int argc, char **argv, args *out);
/* --help of a verb, and the option table as Markdown. */
void args_help(const cli_verb *verb, FILE *to);
void args_markdown(const cli_verb *verb, uint32_t count, FILE *to);
/* The option of this index, of all verbs. False: there are no more. */
typedef struct arg_info { const char *name, *value, *help; unsigned verbs; } arg_info;
bool args_info(uint32_t index, arg_info *out);
/* Is it one of the words of "a|b|c"? */
bool args_is_word_of(const char *list, const char *word);
/* The candidate that differs least from `word`, or NULL where none is near. */
const char *args_nearest(const char *word, const char *const *candidate, uint32_t count);

/* The verbs, one file each. */
int verb_build(const args *a);
int verb_refit(const args *a);
int verb_compare(const args *a);
int verb_debug(const args *a);
int verb_simplify(const args *a);
int verb_calibrate(const args *a);
int verb_quantize(const args *a);
int verb_run(const args *a);
int verb_bench(const args *a);
int verb_test(const args *a);
int verb_inspect(const args *a);
int verb_plugin(const args *a);
int verb_ops(const args *a);
int verb_doctor(const args *a);
int verb_report(const args *a);
int verb_completion(const args *a);
int verb_man(const args *a);
int verb_exec(int argc, char **argv, int first);    /* its flags are those of exec_flags.def: argv[first …] */
extern const cli_verb cli_verbs[];
extern const uint32_t cli_verb_count;

#endif
