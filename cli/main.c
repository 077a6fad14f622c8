/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command `sinter`: a table of verbs. Exit status 0: done; 1: it failed; 2: the command line is wrong. */
#include "args.h"
#include "cli_plugin.h"
#include "print.h"

#include <errno.h>
#include <string.h>

const cli_verb cli_verbs[] = {
    { .name = "build",
      .usage = "MODEL.onnx -o ENGINE [options]",
      .about = "Builds an engine from a model: optimised, its kernels chosen, its memory planned.",
      .bit = V_BUILD,
      .file_min = 1,
      .file_max = 1,
      .tune = SINTER_TUNE_FAST,
      .run = verb_build },
    { .name = "run",
      .usage = "MODEL.onnx|ENGINE [options]",
      .about =
          "Runs once and shows the outputs. A model is built in memory first, with the shapes of the inputs given;\n"
          "inputs that are not given are random.",
      .bit = V_RUN,
      .file_min = 1,
      .file_max = 1,
      .run = verb_run },
    { .name = "bench",
      .usage = "MODEL.onnx|ENGINE [options]",
      .about = "Runs again and again and shows how long a run takes: median, least and 99th percentile.",
      .bit = V_BENCH,
      .file_min = 1,
      .file_max = 1,
      .tune = SINTER_TUNE_FAST,
      .run = verb_bench },
    { .name = "test",
      .usage = "DIR... [options]",
      .about = "Runs every case under the folders: a folder with model.onnx and, in it or in folders of it, input_0, "
               "input_1 ...\n"
               "and output_0, output_1 ... as .npy or as ONNX's .pb. (sample_0.npy in place of an output holds every "
               "s-th value\n"
               "of it; s is the `stride` in the model's case.json, else it follows from the sizes.)\n\n"
               "The folders of one model run on one engine, whose profile covers all their shapes. Where an operator "
               "must know an\n"
               "input while the engine is built (axes, scales), the small inputs' values are promised to the build.\n\n"
               "A value passes where |got - want| <= atol + rtol * |want|; NaN equals NaN. By output type:\n"
               "  f32, f64             rtol 1e-3   atol 1e-7\n"
               "  f16                  rtol 5e-3   atol 1e-3\n"
               "  bf16                 rtol 2e-2   atol 1e-2\n"
               "  f8e4m3, f8e5m2, f4   one step of the type: rtol 0.13, 0.26, 0.5\n"
               "  i8, u8               may differ by 1\n"
               "  other integers, bool must be equal\n"
               "A tolerance.json beside the outputs overrides them: {\"output_0\": {\"atol\": A, \"rtol\": R, "
               "\"nrms\": N}}, where\n"
               "rms(got - want) <= N * rms(want). Outputs that have no file are run and not compared; a folder of "
               "inputs alone\n"
               "counts as skipped.",
      .bit = V_TEST,
      .file_min = 1,
      .file_max = ARG_LIST_MAX,
      .run = verb_test },
    { .name = "inspect",
      .usage = "MODEL.onnx|ENGINE [options]",
      .about = "Shows inputs, outputs, steps, memory, sizes and the kernels chosen. A model is built in memory first.",
      .bit = V_INSPECT,
      .file_min = 1,
      .file_max = 1,
      .run = verb_inspect },
    { .name = "refit",
      .usage = "ENGINE --weights MODEL.onnx|--strip -o ENGINE",
      .about =
          "Gives an engine other weights, without building it again, or leaves them out. What the engine was built\n"
          "with --refittable for takes any; else some weights' values have decided what the engine is.",
      .bit = V_REFIT,
      .file_min = 1,
      .file_max = 1,
      .run = verb_refit },
    { .name = "report",
      .usage = "MODEL.onnx|ENGINE -o FILE.html [options]",
      .about =
          "Writes one page of HTML, which needs nothing else: the graph of steps, kernels, times, and memory over the\n"
          "steps; with --expect how far outputs are from what they should be.",
      .bit = V_REPORT,
      .file_min = 1,
      .file_max = 1,
      .tune = SINTER_TUNE_FAST,
      .run = verb_report },
    { .name = "compare",
      .usage = "A B [options]",
      .about =
          "Gives A and B the same inputs and says how far the outputs of A are from those of B, what is right. Each is "
          "one of\n"
          "  MODEL.onnx                 built here\n"
          "  ENGINE                     loaded\n"
          "  reference:MODEL.onnx       the reference kernels, without optimisation\n"
          "  onnxruntime:MODEL.onnx     ONNX Runtime, where python3 has it\n"
          "  DIR                        saved outputs: NAME.npy, or output_0.npy ... in the order of the other side\n"
          "  FILE.npz                   saved outputs: arrays NAME, or output_0 ... or arr_0 ... in that order\n"
          "Options of building are for A. B is built without them, for the CPU, but with the same shapes and "
          "states.\n\n"
          "Without --atol and --rtol the types decide, as in `sinter test`, but atol is 1e-5 at least. NaN equals NaN. "
          "Exit status\n"
          "1: outputs differ. With -o FILE.html the report is a page with plots, too.",
      .bit = V_COMPARE,
      .file_min = 2,
      .file_max = 2,
      .run = verb_compare },
    { .name = "debug",
      .usage = "precision MODEL.onnx [-o ENGINE] | reduce MODEL.onnx -o OUT.onnx [--check CMD]",
      .about =
          "precision: says which layers have to stay f32 so that the outputs stay within the tolerances (those of "
          "compare) while\n"
          "all others are computed in fp16 or bf16, and writes the engine that is built so.\n"
          "reduce: writes the smallest part of a model that still fails in the same way. Without --check the failure "
          "is "
          "what\n"
          "sinter compare MODEL reference:MODEL says with the same options: an error, a crash, or outputs that differ.",
      .bit = V_DEBUG,
      .file_min = 2,
      .file_max = 2,
      .run = verb_debug },
    { .name = "simplify",
      .usage = "MODEL.onnx -o OUT.onnx|OUT.onnx [N] [options]",
      .about = "Writes a smaller model that any runtime takes: constants folded, nodes merged and removed, nothing "
               "lowered. Prints\nhow many nodes of each operator there were and are.",
      .bit = V_SIMPLIFY,
      .file_min = 1,
      .file_max = 3,
      .run = verb_simplify },
    { .name = "calibrate",
      .usage = "MODEL.onnx --data NAME=FILE... -o CACHE [options]",
      .about = "Runs a model on data and writes how far 8-bit numbers are to reach for each tensor, as a calibration "
               "cache that\n`sinter build --calib` and TensorRT read. The same data gives the same file.",
      .bit = V_CALIBRATE,
      .file_min = 1,
      .file_max = 1,
      .run = verb_calibrate },
    { .name = "quantize",
      .usage = "MODEL.onnx --calib CACHE|--data NAME=FILE...|--quantize-mode int4 -o OUT.onnx [options]",
      .about = "Writes a model with QuantizeLinear and DequantizeLinear around its products, which any runtime takes: "
               "data by the\nranges of a calibration cache, or of data that is run here; weights by channel. int4: "
               "weights alone, in blocks.",
      .bit = V_QUANTIZE,
      .file_min = 0,
      .file_max = 1,
      .run = verb_quantize },
    { .name = "plugin",
      .usage = "new NAME [--cu] | list LIB",
      .about =
          "new: writes a folder NAME with a plugin, its CMakeLists.txt and a test of it, which builds and passes.\n"
          "list: shows the plugins of a shared library or of a CUDA source file.",
      .bit = V_PLUGIN,
      .file_min = 2,
      .file_max = 2,
      .run = verb_plugin },
    { .name = "ops",
      .usage = "[options]",
      .about = "Lists the ONNX operators that are taken, and the canonical ops that they become.",
      .bit = V_OPS,
      .file_min = 0,
      .file_max = 0,
      .run = verb_ops },
    { .name = "completion",
      .usage = "bash|zsh|fish",
      .about = "Prints what a shell has to read so that it completes verbs, options and their words:\n"
               "  bash: source <(sinter completion bash)\n"
               "  zsh:  sinter completion zsh >\"${fpath[1]}/_sinter\"\n"
               "  fish: sinter completion fish | source",
      .bit = V_COMPLETION,
      .file_min = 1,
      .file_max = 1,
      .run = verb_completion },
    { .name = "man",
      .usage = "[options]",
      .about = "Prints the manual page: sinter man | man -l -",
      .bit = V_MAN,
      .file_min = 0,
      .file_max = 0,
      .run = verb_man },
    { .name = "doctor",
      .usage = "[options]",
      .about = "Shows the machine as the library sees it, what is missing and what to do.",
      .bit = V_DOCTOR,
      .file_min = 0,
      .file_max = 0,
      .run = verb_doctor },
};
const uint32_t cli_verb_count = sizeof cli_verbs / sizeof cli_verbs[0];

static void usage(FILE *to)
{
    (void)fprintf(to, "usage: sinter VERB ...\n\n");
    for (uint32_t i = 0; i < cli_verb_count; i++) {
        const cli_verb *v = &cli_verbs[i];
        (void)fprintf(to, "  sinter %s %s\n", v->name, v->usage);
    }
    (void)fprintf(to, "  sinter exec FLAG...\n");
    (void)fprintf(to, "\nsinter VERB --help says more; sinter --version prints the version\n");
}

static int unknown(const char *word)
{
    const char *name[1 + sizeof cli_verbs / sizeof cli_verbs[0]] = { "exec" };
    for (uint32_t i = 0; i < cli_verb_count; i++) name[1 + i] = cli_verbs[i].name;
    const char *near = args_nearest(word, name, 1 + cli_verb_count);
    (void)fprintf(stderr, "sinter: unknown verb '%s'%s%s%s\n", word, near ? ": did you mean " : "", near ? near : "",
                  near ? "?" : "");
    usage(stderr);
    return STATUS_USAGE;
}

/* The command's own name, without its folder. */
static bool is_called(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return !strcmp(slash ? slash + 1 : path, name);
}

static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    return cli_fail("cannot write the report to stdout");
}

/* False: reported. The file stays open until the process ends. */
static bool log_begin(const args *a)
{
    log_style style = *log_get();
    if (a->log_level) style.most = log_level_of(a->log_level);
    style.has_time = a->log_times;
    if (a->log_file && !(style.file = fopen(a->log_file, "ae")))
        return cli_fail("--log-file: cannot write '%s': %s", a->log_file, strerror(errno)) == 0;
    log_set(&style);
    return true;
}

int main(int argc, char **argv)
{
    if (argc && is_called(argv[0], "trtexec")) return finish(verb_exec(argc, argv, 1));
    if (argc < 2) {
        usage(stderr);
        return STATUS_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return STATUS_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        (void)printf("sinter %s\n", sinter_version());
        return STATUS_OK;
    }
    if (!strcmp(argv[1], "exec")) return finish(verb_exec(argc, argv, 2));
    for (uint32_t i = 0; i < cli_verb_count; i++) {
        const cli_verb *v = &cli_verbs[i];
        if (strcmp(argv[1], v->name) != 0) continue;
        static args a; /* with texts of its own, which live as long as the command */
        if (!args_parse(v, argc, argv, &a)) return STATUS_USAGE;
        if (a.help) {
            args_help(v, stdout);
            return STATUS_OK;
        }
        if (!log_begin(&a)) return STATUS_FAILED;
        if (!cli_plugins_open(&a.plugin, a.check_plugins)) return STATUS_FAILED;
        return finish(v->run(&a));
    }
    return unknown(argv[1]);
}
