/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - ops from outside: a plugin is a struct of functions, a registry is an object that holds plugins.
 *
 * The caller makes a registry, adds plugins to it, and names the registry in sinter_env_options.plugins when a model is
 * built and when its engine is loaded. A node of a model whose operator sinter does not have is looked up in the
 * registry by name. An engine stores the plugin's name, version, namespace and fields, and no code of the plugin.
 *
 * A shared library with plugins exports one function, sinter_plugin_entry. It needs this header and no library to link
 * with. docs/plugins.md is a guide.
 *
 * Rules for all functions of a plugin, unless stated otherwise:
 *   - Any thread may call them, several at the same time.
 *   - They depend on their arguments alone: equal arguments give equal answers. Loading an engine asks again what
 *     building has asked.
 *   - They must accept any types, ranks, sizes and fields: these can come from a damaged or hostile engine file. They
 *     refuse what they do not support. Only `run` can rely on shapes: those of its operands are the ones that
 *     `shapes` gives.
 *   - They must not call sinter.
 *   - Functions that return sinter_status may write a reason to `error`: NUL-terminated text of at most `error_size`
 *     bytes. The caller of sinter then sees the reason together with the names of the plugin and of the node. */
#ifndef SINTER_PLUGIN_H
#define SINTER_PLUGIN_H

#include "option.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fields: what a node's attributes become ---- */

typedef enum sinter_plugin_type {
    SINTER_PLUGIN_INT = 1,          /* one int64_t */
    SINTER_PLUGIN_REAL = 2,         /* one double */
    SINTER_PLUGIN_TEXT = 3,         /* `count` chars without a NUL; a NUL follows */
    SINTER_PLUGIN_BYTES = 4,        /* `count` bytes of any value */
    SINTER_PLUGIN_INTS = 5,         /* `count` int64_t */
    SINTER_PLUGIN_REALS = 6         /* `count` double */
} sinter_plugin_type;

/* A field as a plugin declares it (data: the default value; NULL: the node must give a value), and as its functions
 * receive it (data is never NULL). `count` of INT and REAL is 1. Names are letters, digits and '_', and begin with a
 * letter or '_'. */
typedef struct sinter_plugin_field {
    const char        *name;
    sinter_plugin_type type;
    uint64_t           count;
    const void        *data;
} sinter_plugin_field;
/* A TEXT field of this name gets the name of the node or layer that calls the plugin, where no value is given. */
#define SINTER_PLUGIN_NODE "sinter_node_name"

/* ---- shapes: sizes of the outputs as expressions over the sizes of the inputs ---- */

/* An expression is a number, which has a meaning only in the call that gave it. 0: an operation failed, and so
 * does each operation on it. */
typedef enum sinter_dim_op {
    SINTER_DIM_ADD = 0, SINTER_DIM_SUB = 1, SINTER_DIM_MUL = 2,
    SINTER_DIM_FLOORDIV = 3,        /* rounded towards minus infinity */
    SINTER_DIM_CEILDIV = 4,
    SINTER_DIM_MOD = 5,             /* a - b * floordiv(a, b) */
    SINTER_DIM_MIN = 6, SINTER_DIM_MAX = 7,
    SINTER_DIM_BROADCAST = 8        /* equal sizes, or the one that is not 1 */
} sinter_dim_op;

typedef struct sinter_plugin_value {
    sinter_dtype dtype;             /* NONE: an optional input that is absent */
    uint32_t     rank;
    uint32_t     dim[SINTER_RANK_MAX];
} sinter_plugin_value;

typedef struct sinter_plugin_shapes {
    size_t                     struct_size;
    void                      *user;            /* sinter_plugin.user */
    uint32_t                   count_field, count_in, count_out;
    const sinter_plugin_field *field;           /* all that the plugin declares, in its order */
    const sinter_plugin_value *in;
    sinter_plugin_value       *out;             /* zeroed; the function fills each */
    void                      *dims;            /* the first argument of the functions below */
    uint32_t                 (*constant)(void *dims, int64_t value);
    uint32_t                 (*apply)(void *dims, sinter_dim_op op, uint32_t a, uint32_t b);
    /* Non-zero, and *value: the expression is a constant. */
    int                      (*known)(void *dims, uint32_t d, int64_t *value);
    char                      *error;
    size_t                     error_size;
    /* A size that the data decide, and that is at most `most`: `run` writes it to output `output`, a scalar of type I32
     * or I64 whose type and rank the function states like those of others. The expression may stand in the sizes of
     * the other outputs. The memory of such an output has the sizes that `most` gives (`out[i].dim` in a run), its
     * elements lie as in a tensor of that shape, and what is behind the size is cut off. A size that is negative or
     * larger fails the run. */
    uint32_t                 (*declare_size)(void *dims, uint32_t output, uint32_t most);
} sinter_plugin_shapes;

/* ---- problems: a call as it is while kernels are chosen ---- */

typedef struct sinter_plugin_operand {
    sinter_dtype dtype;                         /* NONE: absent */
    uint32_t     rank;
    int64_t      min[SINTER_RANK_MAX], opt[SINTER_RANK_MAX];
    int64_t      max[SINTER_RANK_MAX];          /* INT64_MAX: no bound is known */
    uint32_t     order[SINTER_RANK_MAX];        /* axes from the outermost to the innermost in memory; dense */
} sinter_plugin_operand;

typedef struct sinter_plugin_problem {
    size_t                       struct_size;
    void                        *user;
    uint32_t                     count_field, count_in, count_out;
    const sinter_plugin_field   *field;
    const sinter_plugin_operand *in, *out;
    char                        *error;         /* used by `create` alone */
    size_t                       error_size;
    /* create: the library's memory, for the state; valid until `destroy` returns. NULL elsewhere. */
    const sinter_allocator      *allocator;
    uint32_t                     is_cuda;       /* create: non-zero where the state is for `cuda_run` */
} sinter_plugin_problem;

/* ---- runs ---- */

typedef struct sinter_plugin_tensor {
    sinter_dtype dtype;                         /* NONE: absent */
    uint32_t     rank;
    int64_t      dim[SINTER_RANK_MAX];
    int64_t      stride[SINTER_RANK_MAX];       /* elements; dense in the order that `supports` accepted */
    void        *data;                          /* run: host memory; cuda_run: device memory. Inputs are read only */
} sinter_plugin_tensor;

/* A part of a run's work: [begin, end) of a count. */
typedef void (*sinter_plugin_body_fn)(void *arg, uint32_t begin, uint32_t end);

typedef struct sinter_plugin_run {
    size_t                      struct_size;
    void                       *user;
    uint32_t                    count_field, count_in, count_out;
    const sinter_plugin_field  *field;
    const sinter_plugin_tensor *in, *out;
    void                       *workspace;      /* what `workspace` asked for, aligned to 64 bytes */
    size_t                      workspace_size;
    void                       *state;          /* what `create` made, or NULL */
    uint32_t                    tactic;         /* one that `tactics` listed; 0 if there is no `tactics` */
    void                       *stream;         /* cuda_run: the CUstream on which the work goes; run: NULL */
    /* run: calls body(arg, begin, end) for disjoint ranges that cover [0, count), on several threads if the machine and
     * the caller permit it, and returns when all calls have returned. Results must not depend on the ranges. `pool` is
     * the first argument. */
    const void                 *pool;
    void                      (*parallel)(const void *pool, uint32_t count, sinter_plugin_body_fn body, void *arg);
    char                       *error;
    size_t                      error_size;
    const sinter_allocator     *allocator;      /* the library's memory; a run that allocates is refused by checks */
} sinter_plugin_run;

/* ---- kernels for GPUs ---- */

typedef enum sinter_plugin_arg_kind {
    SINTER_PLUGIN_ARG_IN = 0, SINTER_PLUGIN_ARG_OUT = 1,    /* the address of input or output `index`; NULL: absent */
    SINTER_PLUGIN_ARG_WORKSPACE = 2,                        /* the address of the workspace */
    SINTER_PLUGIN_ARG_INT = 3,                              /* `integer`, for a parameter of any integer type */
    SINTER_PLUGIN_ARG_F32 = 4, SINTER_PLUGIN_ARG_F64 = 5    /* `real`, for a parameter of type float or double */
} sinter_plugin_arg_kind;

typedef struct sinter_plugin_arg {
    sinter_plugin_arg_kind kind;
    uint32_t index;
    int64_t  integer;
    double   real;
} sinter_plugin_arg;

enum { SINTER_PLUGIN_ARGS = 24 };

/* How the kernel is launched for the sizes of a run. */
typedef struct sinter_plugin_launch {
    size_t            struct_size;
    uint32_t          tactic;                   /* given */
    uint64_t          grid[3];                  /* blocks; the second and third at most 65535; 0: nothing is launched */
    uint32_t          block;                    /* threads, 1 to 1024, along x */
    uint32_t          shared;                   /* bytes of dynamic shared memory */
    uint32_t          count_arg;
    sinter_plugin_arg arg[SINTER_PLUGIN_ARGS];  /* the parameters of the kernel, in order */
} sinter_plugin_launch;

/* ---- plugins ---- */

typedef struct sinter_plugin {
    size_t                     struct_size;
    const char                *name;            /* the operator's type in ONNX: letters, digits, '_' and '.' */
    const char                *version;         /* the same characters; NULL: "1" */
    const char                *space;           /* the namespace; the same characters, or ""; NULL: "" */
    void                      *user;            /* handed to every function */
    const sinter_plugin_field *field;           /* with defaults */
    uint32_t                   count_field;
    uint32_t                   in_min, in_max;  /* how many inputs a node has; at most 32 */
    uint32_t                   out_min, out_max;/* how many outputs; from 1 to 32 */

    /* Types and sizes of the outputs. Any status but OK refuses the node: UNSUPPORTED or INVALID_MODEL. Required. */
    sinter_status (*shapes)(sinter_plugin_shapes *s);
    /* Non-zero: the plugin takes these types in these layouts. Asked with row-major operands when a node is made, so
     * that a combination of types can be refused, and with other layouts when kernels are chosen. A plugin that takes
     * the layout of its neighbours saves conversions. NULL: all types that `shapes` accepts, row-major. */
    int           (*supports)(const sinter_plugin_problem *p);
    /* Bytes of scratch memory, from the largest sizes. NULL: none. A call with unbounded sizes is asked again in each
     * run, with the run's sizes as min, opt and max. */
    size_t        (*workspace)(const sinter_plugin_problem *p);
    /* Fills list[0 .. room) with numbers of tactics, the best guess first, and returns how many. The tuner times each.
     * The results of all tactics must agree up to rounding. NULL: one, 0. */
    uint32_t      (*tactics)(const sinter_plugin_problem *p, uint32_t *list, uint32_t room);
    /* State of a call: made for the sizes of a run (min, opt and max are equal) before the first run with these sizes,
     * and kept by the context, which uses it in one thread at a time. A call whose sizes depend on data makes its state
     * in each run. Results must not depend on earlier runs. `create` and `destroy` may allocate. NULL: no state. */
    sinter_status (*create)(const sinter_plugin_problem *p, void **state);
    void          (*destroy)(void *user, void *state);
    /* Computes the outputs on the CPU. It allocates nothing. NULL: the plugin does not run on the CPU. */
    sinter_status (*run)(const sinter_plugin_run *r);

    /* A kernel for NVIDIA GPUs: the text of a CUDA C++ source, which is compiled for the GPU in use (by NVRTC, once for
     * all shapes), the name of its `extern "C" __global__` function, and the function that says how the kernel is
     * launched for the sizes in p->in and p->out (min, opt and max are equal). The source includes no files, and its
     * static names are its own. NULL, all three: there is no such kernel. */
    const char    *cuda_source, *cuda_kernel;
    sinter_status (*cuda_launch)(const sinter_plugin_problem *p, sinter_plugin_launch *l);

    /* Another way to run on NVIDIA GPUs: puts the work on r->stream, by any means, and returns without waiting for it.
     * Operands and workspace are device memory; addresses and the stream may change from run to run. Called in each run
     * and while kernels are timed, with the context of the GPU current. The stream may be the caller's own
     * (sinter_context_options.stream); it is not captured by the library: the work stands between CUDA graphs, so it
     * may do what a graph cannot hold. `create` may have put its state into device memory; when `destroy` is called,
     * work on the stream may not have ended. NULL: there is no such function. If there is a source, too, the tuner
     * times both. Where a plugin has neither, `run` runs on the host between copies. */
    sinter_status (*cuda_run)(const sinter_plugin_run *r);
} sinter_plugin;

/* Makes an empty registry. The registry must outlive every object whose sinter_env_options name it. Plugins are added
 * by one thread, before the registry is used; afterwards any number of threads may use it. env: allocator and limits;
 * its `plugins` is ignored. NULL: defaults. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_plugins_create(const sinter_env_options *env, sinter_plugins **out,
                                               sinter_error *error) SINTER_MUST_USE;
/* No object that uses the registry may exist any more. Closes the libraries that were loaded. NULL is accepted. */
SINTER_API void          sinter_plugins_destroy(sinter_plugins *plugins);

/* Adds a plugin. Its struct, strings, fields and default values are copied; `user` is not. Errors: INVALID_ARG (a name
 * that is not permitted, a missing function, or a plugin of this name, version and namespace is there already),
 * NO_MEMORY. */
SINTER_API sinter_status sinter_plugins_add(sinter_plugins *plugins, const sinter_plugin *plugin,
                                            sinter_error *error) SINTER_MUST_USE;

/* Turns checks on (non-zero) or off: every function `run` then works on copies of its operands, between guards.
 * A run that writes past an output or its workspace, that writes to an input, or that allocates from the library's
 * memory fails with INTERNAL, which names the plugin and the operand. Call it before the registry is used. Cost: copies
 * of all operands. Functions that run on a GPU are not checked. */
SINTER_API void                 sinter_plugins_check(sinter_plugins *plugins, int is_on);

SINTER_API uint32_t             sinter_plugins_count(const sinter_plugins *plugins);
/* The registry's copy of plugin `index`, in the order of adding. NULL: there is no such plugin. */
SINTER_API const sinter_plugin *sinter_plugins_at(const sinter_plugins *plugins, uint32_t index);

/* What a shared library's entry function receives. */
typedef struct sinter_plugin_host {
    size_t          struct_size;
    sinter_plugins *plugins;
    sinter_status (*add)(sinter_plugins *plugins, const sinter_plugin *plugin, sinter_error *error);
    sinter_error   *error;                      /* for `add`; never NULL */
} sinter_plugin_host;
/* The one function that a shared library with plugins exports: adds its plugins, and returns the first failure. */
typedef sinter_status (*sinter_plugin_entry_fn)(const sinter_plugin_host *host);
#define SINTER_PLUGIN_ENTRY "sinter_plugin_entry"

/* Opens a shared library and calls its entry function; or, where the name ends with ".cu", adds the plugin that a CUDA
 * source file describes in a comment (docs/plugins.md). The library's code runs with the rights of the process: load
 * only libraries whose programs you would run. Errors: IO (it cannot be opened, or exports no entry function), and what
 * the entry function returns. */
SINTER_API sinter_status sinter_plugins_load(sinter_plugins *plugins, const char *path,
                                             sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
