/* SPDX-License-Identifier: Apache-2.0 */
/* cli_model.h - from a file on the command line to an engine: options, shapes, and the inputs that were given. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "args.h"
#include "print.h"

/* Does the file begin as an engine does? */
bool model_is_engine(const char *path);

/* A model's inputs and outputs, copied. */
typedef struct model_io {
    char           *name, *dim_name[SINTER_RANK_MAX];
    sinter_model_io io;
    int64_t         usual[SINTER_RANK_MAX];     /* of free dims of which nothing is said: 1, or the engine's opt */
} model_io;
typedef struct model_face { model_io *at; uint32_t count, inputs; } model_face;
sinter_status model_face_read(const char *path, const sinter_env_options *env, model_face *out, sinter_error *error);
void          model_face_free(model_face *f);

/* A tensor of a file or of random numbers, and whose it is. */
typedef struct model_input {
    char         *name;
    sinter_tensor tensor;
    sinter_buffer memory;
    void         *own;              /* random data */
} model_input;
typedef struct model_inputs { model_input *at; uint32_t count; } model_inputs;
/* Adds what --input or --value name. False: reported. */
bool model_inputs_read(const arg_list *list, const sinter_env_options *env, model_inputs *out);
void model_inputs_free(model_inputs *in);
/* Adds the arrays of an archive. name: the one array of that name, or the only one there is; NULL: all. */
bool model_npz_read(const char *path, const char *name, const sinter_env_options *env, model_inputs *out);
const model_input *model_inputs_find(const model_inputs *in, const char *name);

/* model_shapes.c: profiles from --shape, --profile and what was given. Names of inputs win over names of dims. */
typedef struct model_shapes { sinter_profile *profile; uint32_t count; } model_shapes;
bool model_shapes_make(const args *a, const model_face *face, const model_inputs *given, model_shapes *out);
void model_shapes_free(model_shapes *s);

/* Everything that building and loading share; lives as long as what was made with it. */
typedef struct model_setup {
    sinter_limits        limits;
    sinter_env_options   env;
    sinter_build_options build;
    sinter_build_report  report;
    sinter_engine_options load;
    progress             bar;
    sinter_network      *network;   /* what is built in place of the model's file; NULL: the file */
} model_setup;
bool model_setup_make(const args *a, model_setup *out);

/* ---- outputs.c: before anything is built. False: reported. ---- */
bool  outputs_check_engine(const args *a);                      /* --output and --timing-cache */
bool  outputs_check_calibration(const args *a);                 /* --output */
bool  outputs_check_model(const args *a, const char *path);     /* a model to write */
bool  outputs_check_cache(const args *a);                       /* that cannot be written: a warning */
/* Makes --output-dir, and looks at the files of `count` outputs. */
bool  outputs_check_folder(const args *a, const char *const *names, uint32_t count);
/* DIR/output_I.npy, or DIR/NAME.npy with --output-names. The caller frees it. */
char *outputs_path(const args *a, const char *const *names, uint32_t index);
bool  outputs_is_stdout(const char *path);                      /* the same pipe or file */
/* sinter_build_file, or where `engine` names a file sinter_build_save, which SIGINT and SIGTERM end early: what was
 * measured is kept, then the signal takes its course. Of an engine in a file `out` has the size alone. */
sinter_status build_interruptible(const char *path, const sinter_build_options *options, const char *engine,
                                  sinter_buffer *out, sinter_error *error);
bool          build_is_interrupted(void);                       /* for functions that report progress */

/* What the command line gives beside options; setup->build points to it. */
typedef struct model_words { sinter_state *state; sinter_dim_equal *equal; } model_words;
typedef struct model_given {
    model_face          face;
    model_shapes        shapes;
    model_inputs        promised, data;
    sinter_input_value *value;
    sinter_sample      *sample;
    uint32_t            samples;
    model_words         words;
    sinter_calibration *calibration;
} model_given;
/* given: inputs whose shapes count; NULL: those of --data do. False: reported; free it anyway. */
bool model_given_make(const args *a, model_setup *setup, const model_inputs *given, model_given *g);
void model_given_free(model_given *g, model_setup *setup);

/* Builds the model that the command line names, with the shapes it gives, into the file `engine` (NULL: into memory).
 * `given`: inputs whose shapes count; NULL: those of --data do. False: reported. */
bool model_build(const args *a, model_setup *setup, const model_inputs *given, const char *engine, sinter_buffer *out,
                 double *seconds);
/* Where the build's time went: a line or two, or members of an object. */
void model_report_print(const sinter_build_report *r, FILE *to);
void model_report_json(const sinter_build_report *r, json *j);

/* An engine, loaded, or built first where the file is a model. */
typedef struct model_engine {
    uint32_t       profile;         /* that runs use, and the shape of each input in them: model_choose */
    sinter_tensor *shape;           /* by io; without data */
    sinter_engine *engine;
    model_inputs   inputs;          /* those of --input */
    sinter_memory  memory;          /* of contexts that run often; USER: bench_runs.c lends it */
    bool           is_given;        /* the inputs are somebody else's */
    bool           was_built;
    double         build_s, open_s;
    size_t         size;            /* bytes of the engine file */
} model_engine;
bool model_engine_open(const args *a, model_setup *setup, model_engine *out);   /* false: reported */
/* The same with `given` in place of --input: borrowed until the engine is closed. NULL: --input. */
bool model_engine_open_given(const args *a, model_setup *setup, const model_inputs *given, model_engine *out);
void model_engine_close(model_engine *m);
/* Takes --use-profile or the first profile that takes the shapes of --input and --shape. False: reported. */
bool model_choose(const args *a, model_engine *m);

/* What a context is for: one run, many, or timing the phases of a run or its steps. */
typedef enum model_use { MODEL_ONCE, MODEL_OFTEN, MODEL_PHASES, MODEL_STEPS } model_use;
/* A context of the chosen profile with all inputs; `made` receives random data for those that were not given. */
sinter_status model_context(const model_engine *m, uint64_t seed, model_use use, model_inputs *made,
                            sinter_context **out, sinter_error *error);

#endif
