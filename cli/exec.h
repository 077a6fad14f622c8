/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - the parts of `sinter exec`, in the order in which they work: flags (exec_flags.h), shapes, options, build,
 * layers, runs, report, files. What goes wrong is said with cli_say; the functions then return false. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include "cli_model.h"
#include "exec_flags.h"
#include "bench_runs.h"

/* A tensor whose memory has another format than chw. */
typedef struct exec_layout { char *name; const struct exec_format *format; int64_t channels; } exec_layout;
typedef struct exec_layouts { exec_layout *at; uint32_t count; } exec_layouts;

/* Names of tensors. */
typedef struct exec_names { char **at; uint32_t count; } exec_names;

typedef struct exec {
    exec_args    x;
    args         a;             /* what sinter's own verbs would have been given */
    model_setup  setup;
    model_engine m;
    kept_text    machine;       /* sinter_print_machine, JSON */
    int          gpu;           /* that runs the engine; -1: the CPU */
    char         device[64];
    kept_text    report;        /* sinter_engine_print, JSON */
    bool         is_stripped;   /* the engine that was saved has no weights */
    exec_layouts layouts;       /* of the network, then of the engine */
    exec_names   unfused;       /* tensors that --markUnfusedTensorsAsDebugTensors has made outputs */
} exec;

/* ---- exec_shapes.c: NAME:VALUE lists ---- */
typedef struct exec_pair { char *name, *value; bool is_used; } exec_pair;
typedef struct exec_pairs { exec_pair *at; uint32_t count; } exec_pairs;
/* Adds the pairs of one flag's value. Names may be quoted with '; the last ':' divides. False: reported. */
bool exec_pairs_read(exec_id id, const char *text, exec_pairs *out);
void exec_pairs_free(exec_pairs *p);
/* The pair whose name is `name`, else the one whose name has a '*' and matches. NULL: none. Marks it as used. */
exec_pair *exec_pairs_find(exec_pairs *p, const char *name);
/* --minShapes, --optShapes, --maxShapes and --profile, else --shapes, as a.profile, for the inputs of the model. */
bool exec_profiles_make(exec *e, const model_face *face);
/* --shapes as a.shape, for the inputs of the engine. */
bool exec_shapes_make(exec *e);
/* The values that --shapes, else --optShapes gives to an input of integers: out->at[0]. False: none. */
bool exec_values_given(const exec *e, const sinter_io *io, args_dims *out);

/* ---- exec_options.c: what is about to be done ---- */
bool exec_check(const exec *e);                 /* flags that go together or do not */
bool exec_device(exec *e);                      /* chooses the device */
void exec_print_options(const exec *e);
void exec_print_device(const exec *e);
sinter_detail exec_detail(const exec *e);        /* of the flags */
bool exec_skips_inference(const exec *e);
double exec_percent(const char **at);           /* the next of --percentile; advances */

/* ---- exec_network.c ---- */
/* Where flags change the model: the changed model as e->setup.network. False: reported. */
bool exec_network_make(exec *e);
/* --markUnfusedTensorsAsDebugTensors: marks what `engine`, a build of e->setup.network, keeps between its steps, as
 * e->unfused. False: reported. */
bool exec_unfused_mark(exec *e, const sinter_engine *engine);
/* "fp16" and the like. */
bool exec_type_read(const char *word, size_t length, sinter_dtype *out);

/* ---- exec_formats.c ---- */
/* Which of "FORMAT+FORMAT…" the tensor of that shape has: row-major, if it can be, else e->layouts has one more. False:
 * reported. */
bool exec_format_choose(exec *e, exec_id id, const char *name, const char *words, size_t length,
                        const sinter_network_shape *shape);
const exec_layout *exec_layout_of(const exec *e, const char *name);  /* NULL: row-major */
bool exec_is_mark(const char *name);            /* of an output that says the format of another tensor */
void exec_layouts_read(exec *e);                /* those of the engine */
void exec_layouts_free(exec_layouts *l);
/* The shape that a tensor has in memory, as text in `room`; `value` where it is row-major, or not of its shape. */
const char *exec_stored_text(const exec *e, const char *name, const char *value, shape_text *room);
/* Makes of an output as it lies in memory the model's tensor, row-major, in memory that replaces `own`. False: it is
 * that already. */
bool exec_format_unpack(const exec *e, const char *name, sinter_tensor *t, void **own);
/* Gives the input `t` the shape of its memory: what the model has to read instead. NULL: `error` says why. */
sinter_network_tensor *exec_format_show(exec *e, sinter_network_tensor *t, const exec_layout *l, sinter_error *error);
/* An output as it lies in memory. */
sinter_network_tensor *exec_format_store(exec *e, sinter_network_tensor *t, const exec_layout *l, sinter_error *error);
/* Adds the outputs that say formats. False: reported. */
bool exec_formats_mark(exec *e);

/* ---- exec_build.c: from files to e->m.engine ---- */
bool exec_engine_make(exec *e);

/* ---- exec_layers.c ---- */
/* --dumpLayerInfo, --exportLayerInfo, --dumpOptimizationProfile, --dumpRefit */
bool exec_layers(exec *e);
bool exec_profile_steps(exec *e);               /* --dumpProfile, --exportProfile */

/* ---- exec_infer.c ---- */
bool exec_inputs_make(exec *e);                 /* profile, shapes, --loadInputs */
bool exec_infer(exec *e);

/* ---- exec_report.c ---- */
void exec_report(const exec *e, const measured *r);

/* ---- exec_files.c ---- */
/* A file to write; NULL: reported. exec_file_close returns false where not all was written. */
FILE *exec_file_open(const char *path);
bool  exec_file_close(FILE *file, const char *path);
bool  exec_export_times(const char *path, const measured *r);
bool  exec_outputs(const exec *e, const measure_set *set);  /* --dumpOutput, --exportOutput, --dumpRawBindingsToFile */
bool  exec_compare(const exec *e, sinter_context *c);   /* --loadRefOutputs */

/* The bytes of a dense tensor, or .npy, whose type and shape `t` has. False: reported. The caller frees own. */
bool exec_tensor_read(const exec *e, const char *name, const char *path, model_input *out);

/* Times of a run in ms. */
typedef enum exec_time { EXEC_LATENCY, EXEC_ENQUEUE, EXEC_H2D, EXEC_COMPUTE, EXEC_D2H, EXEC_TIMES } exec_time;
double exec_time_of(const query *q, exec_time which);

#endif
