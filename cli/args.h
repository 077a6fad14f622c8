/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the command line: one row an option, from which the parser, --help and docs/options.md come. */
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
    V_MODEL = V_BUILD | V_RUN | V_BENCH | V_INSPECT,    /* build one model */
    V_ALL = 127,
    V_BUILDING = 128,                   /* no verb: of building alone, so an engine cannot honour it */
    V_MADE = V_MODEL | V_TEST | V_BUILDING
};

/* TEXT is not empty, ANY may be. The last four are lists: PAIRS name files, DIMS a shape, RANGES a profile, LIMITS
 * numbers. */
typedef enum arg_kind {
    ARG_FLAG, ARG_TEXT, ARG_ANY, ARG_COUNT, ARG_REAL, ARG_CHOICE, ARG_PAIRS, ARG_DIMS, ARG_RANGES, ARG_LIMITS
} arg_kind;

enum { ARG_LIST_MAX = 256 };
typedef struct arg_list { const char *at[ARG_LIST_MAX]; uint32_t count; } arg_list;

/* X(field, kind, "--name", verbs, "METAVAR" or its choices, "help"). In `bench`, --profile is a flag of its own. */
#define CLI_OPTIONS(X)                                                                                                \
    X(output, TEXT, "output", V_BUILD, "FILE", "The engine file to write (also -o).")                                 \
    X(shape, DIMS, "shape", V_MODEL, "NAME=1x3x224x224",                                                              \
      "Fixes the dims of an input, or the value of a named dim (N=4); of an engine, within its ranges. May be "       \
      "repeated.")                                                                                                    \
    X(profile, RANGES, "profile", V_BUILD | V_RUN | V_INSPECT | V_BUILDING, "NAME=MIN,OPT,MAX",                       \
      "The range of an input's dims (each as 1x3x224x224) or of a named dim. May be repeated; naming one a "          \
      "second time starts the next profile.")                                                                         \
    X(steps, FLAG, "profile", V_BENCH, "", "Adds a table of steps, sorted by time.")                                  \
    X(use_profile, COUNT, "use-profile", V_RUN | V_BENCH, "N",                                                        \
      "Runs profile N. Default: the first that takes the shapes.")                                                    \
    X(input, PAIRS, "input", V_RUN | V_BENCH, "NAME=FILE",                                                            \
      "Data of an input, .npy or .pb; random where not given. May be repeated.")                                      \
    X(value, PAIRS, "value", V_MODEL | V_BUILDING, "NAME=FILE",                                                       \
      "Builds for an input that always holds this: axes or scales that operators must know. May be repeated.")        \
    X(output_dir, TEXT, "output-dir", V_RUN, "DIR",                                                                   \
      "Writes each output to DIR/output_I.npy, as `sinter test` reads them.")                                         \
    X(threads, COUNT, "threads", V_MODEL | V_TEST, "N",                                                               \
      "Threads to tune for and to run with; 0: as many as there are CPUs.")                                           \
    X(tune, CHOICE, "tune", V_MADE, "off|fast|full",                                                                  \
      "off: the cost model chooses kernels; fast: the clock decides among the best few; full: among all. "            \
      "Default: fast for build and bench, else off.")                                                                 \
    X(timing_cache, TEXT, "timing-cache", V_MADE, "FILE",                                                             \
      "Measurements to use again: read, merged and replaced.")                                                        \
    X(cache_only, FLAG, "cache-only", V_MADE, "", "A measurement that the timing cache lacks is an error.")           \
    X(device, TEXT, "device", V_MODEL | V_TEST, "cpu|reference|cuda[:N|:sm_XX]",                                      \
      "cpu (default); reference: the reference kernels alone, without optimisation; cuda: a GPU, :1 the second, "     \
      ":sm_90a a chip that need not be here (with --tune off). An engine knows its kind.")                            \
    X(kernel_cache, ANY, "kernel-cache", V_MODEL | V_TEST, "DIR",                                                     \
      "The folder of compiled GPU kernels (also SINTER_KERNEL_CACHE); \"\": none.")                                   \
    X(branches, CHOICE, "branches", V_MADE, "auto|off|small|all",                                                     \
      "Steps that do not need each other at the same time on a GPU. auto (default): as measured, with --tune off as " \
      "small; off: one after the other; small: where their kernels leave a part of it free; all.")                    \
    X(no_code, FLAG, "no-code", V_BUILD, "", "Leaves compiled GPU kernels out of the engine.")                        \
    X(trust_code, FLAG, "trust-code", V_RUN | V_BENCH, "",                                                            \
      "Runs the compiled GPU kernels that an engine carries: for files of those whose programs you would run.")       \
    X(math, CHOICE, "math", V_MADE, "fp32|exact", "exact: only rewrites that keep every bit.")                        \
    X(allow, TEXT, "allow", V_MADE, "fp16,bf16,tf32,int8",                                                            \
      "Types that f32 work may be lowered to where that is faster; sums stay f32. int8: products with constant "      \
      "weights.")                                                                                                     \
    X(lower, CHOICE, "lower", V_MADE, "faster|always",                                                                \
      "faster (default): of what --allow permits, what is faster on the device; always: all of it, for a look on "    \
      "one device at the numbers of another.")                                                                        \
    X(calib, PAIRS, "calib", V_MODEL | V_BUILDING, "NAME=FILE",                                                       \
      "Data of an input, .npy or .pb, on which --allow finds ranges of 8-bit numbers and measures what it does to "   \
      "the outputs; else it is seeded. The n-th file of each input is of the n-th sample. May be repeated.")          \
    X(budget, REAL, "budget", V_MADE, "R",                                                                            \
      "How far outputs may move by --allow: rms of the difference over rms of the output. Default 0.01 for fp16, "    \
      "0.06 for bf16, 0.1 for int8, more where the model rounds to a few bits itself.")                               \
    X(rules, TEXT, "rules", V_MADE, "-NAME,-NAME", "Rewrite rules not to use.")                                       \
    X(rule_limit, COUNT, "rule-limit", V_MADE, "N", "Stops rewriting after N firings; 0: never.")                     \
    X(isa, CHOICE, "isa", V_MODEL | V_TEST, "plain|avx2|avx512",                                                      \
      "The highest instruction set to use (also SINTER_ISA).")                                                        \
    X(limit, LIMITS, "limit", V_MODEL | V_TEST, "NAME=N",                                                             \
      "Raises or lowers a limit on what a model may cost. May be repeated.")                                          \
    X(verify, FLAG, "verify", V_MADE, "", "Checks the graph after every pass.")                                       \
    X(seed, COUNT, "seed", V_RUN | V_BENCH, "N", "Of random inputs. Default 0.")                                      \
    X(duration, REAL, "duration", V_BENCH, "S", "Seconds to measure, after a warm-up. Default 3.")                    \
    X(no_data_transfers, FLAG, "no-data-transfers", V_BENCH, "",                                                      \
      "Keeps inputs and outputs in the device's memory, so that runs copy neither.")                                  \
    X(rtol, REAL, "rtol", V_TEST, "R", "Relative tolerance of every output without a tolerance.json.")                \
    X(atol, REAL, "atol", V_TEST, "A", "Absolute tolerance of every output without a tolerance.json.")                \
    X(why, FLAG, "why", V_INSPECT, "",                                                                                \
      "Adds the kernels that were considered: rejected and why, measured, or taken. Needs a model.")                  \
    X(stage, TEXT, "stage", V_INSPECT, "NAME", "Prints the graph after that pass, and nothing else. Needs a model.")  \
    X(markdown, FLAG, "markdown", V_OPS | V_DOCTOR, "",                                                               \
      "Prints the page of the documentation: docs/ops.md, docs/options.md.")                                          \
    X(json, FLAG, "json", V_ALL, "", "Reports as JSON.")

#define ARG_FIELD_FLAG(field) bool field;
#define ARG_FIELD_TEXT(field) const char *field;
#define ARG_FIELD_ANY(field) const char *field;
#define ARG_FIELD_PAIRS(field) arg_list field;
#define ARG_FIELD_DIMS(field) arg_list field;
#define ARG_FIELD_RANGES(field) arg_list field;
#define ARG_FIELD_LIMITS(field) arg_list field;
#define ARG_FIELD_COUNT(field) uint64_t field; bool has_##field;
#define ARG_FIELD_REAL(field) double field; bool has_##field;
#define ARG_FIELD_CHOICE(field) const char *field; int field##_at;     /* the word, its index; not given: NULL, -1 */

typedef struct args {
    const char *verb;
    unsigned    verb_bit;
#define X(field, kind, name, verbs, value, help) ARG_FIELD_##kind(field)
    CLI_OPTIONS(X)
#undef X
    bool        help;
    const char *building;           /* the first option given that is of building alone; NULL: none */
    arg_list    file;               /* what is no option */
} args;

typedef struct cli_verb {
    const char *name, *usage, *about;
    unsigned    bit;
    uint32_t    file_min, file_max;
    int       (*run)(const args *a);
} cli_verb;

/* What stands behind the '=': "1x3x224x224", or min, opt and max of that rank with commas. False: neither. */
typedef struct args_dims { uint32_t rank, count; int64_t at[3][SINTER_RANK_MAX]; } args_dims;
bool args_dims_read(const char *text, args_dims *out);

/* Reads argv[2…] of that verb. False: a message has been written to stderr. */
bool args_parse(const cli_verb *verb, int argc, char **argv, args *out);
/* --help of a verb, and the option table as Markdown. */
void args_help(const cli_verb *verb, FILE *to);
void args_markdown(const cli_verb *verb, uint32_t count, FILE *to);
/* The candidate that differs least from `word`, or NULL where none is near. */
const char *args_nearest(const char *word, const char *const *candidate, uint32_t count);

/* The verbs, one file each. */
int verb_build(const args *a);
int verb_run(const args *a);
int verb_bench(const args *a);
int verb_test(const args *a);
int verb_inspect(const args *a);
int verb_ops(const args *a);
int verb_doctor(const args *a);
extern const cli_verb cli_verbs[];
extern const uint32_t cli_verb_count;

#endif
