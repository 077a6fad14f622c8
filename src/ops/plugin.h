/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - plugins behind the op `plugin`: the registry, the fields of a call as text, and calls of a plugin's
 * functions.
 *
 * The attributes of the op hold the plugin's name, version and namespace, and the value of every field:
 *     alpha=0.5 axes=[1,2] mode="edge" table=x00ff
 * They never hold pointers, so graphs, problem lines and engines carry them like other attributes. plugin_resolve()
 * finds the plugin in the registry of the env and reads the fields.
 *
 * To add a call of a plugin to a graph: plugin_attrs() makes the attributes, build_plugin() (ir/build.h) the node. */
#ifndef OPS_PLUGIN_H
#define OPS_PLUGIN_H

#include "ops/problem.h"
#include "sinter/plugin.h"

enum {
    PLUGIN_FIELDS_MAX = 1 << 20,        /* bytes of the fields of a call, as text */
    PLUGIN_FIELD_COUNT_MAX = 256, PLUGIN_OPERANDS_MAX = 32, PLUGIN_ERROR_SIZE = 512
};

/* A registry: sinter_plugins of the public header. */
struct sinter_plugins {
    env   e;
    arena a;
    VEC(sinter_plugin *) plugin;
    VEC(void *)          library;
    bool                 is_checked;    /* runs are on copies between guards */
};

/* A call of a plugin: what the attributes of a node or problem name. */
typedef struct plugin_use {
    const sinter_plugin       *plugin;
    const sinter_plugin_field *field;   /* as many as the plugin declares, in its order */
} plugin_use;

/* Adds a copy. Errors: INVALID_ARG, NO_MEMORY. */
sinter_status plugin_add(env *e, struct sinter_plugins *r, const sinter_plugin *plugin);

/* Finds the plugin and reads its fields. Errors: UNSUPPORTED (not registered; the text names the plugin and its
 * version), INVALID_MODEL (fields that the plugin does not declare, or values of another type). */
sinter_status plugin_resolve(env *e, arena *a, const attrs_plugin *attrs, plugin_use *out);

/* What a model or a caller asks for. NULL: any version; any namespace. */
typedef struct plugin_request {
    const char *name, *version, *space;
    const char *domain;                 /* preferred as namespace where `space` is NULL; may be NULL */
    const sinter_plugin_field *field;   /* what is given, in any order */
    uint32_t    count_field;
    const char *node;                   /* the value of the plugin's field SINTER_PLUGIN_NODE, if it declares one */
} plugin_request;

/* Is there a plugin of that name? */
bool          plugin_is_known(const env *e, const char *name);
/* The attributes of a call; text lives in `a`. INT is taken for a REAL, lists of one for a scalar. Errors: UNSUPPORTED
 * (no plugin, or several, fit), INVALID_MODEL (fields). */
sinter_status plugin_attrs(env *e, arena *a, const plugin_request *r, attrs_plugin *out);

/* ---- shapes (plugin_shapes.c) ---- */
/* Sizes that the data decide: the plugin writes each to an output, a scalar. `size` stands for it in the sizes of other
 * outputs: `most`, as infer_plugin has it, or what a caller has put there before. */
enum { PLUGIN_SIZES_MAX = 8 };
typedef struct plugin_sizes {
    uint32_t count;
    struct { uint32_t output; dim most, size; } at[PLUGIN_SIZES_MAX];
} plugin_sizes;
/* Calls `shapes`. out: types, ranks and sizes. sizes: read and filled. */
sinter_status plugin_shapes_of(env *e, dim_table *t, const plugin_use *u, const infer_value *in, uint32_t count_in,
                               infer_value *out, uint32_t count_out, plugin_sizes *sizes);

/* ---- fields as text (plugin_fields.c) ---- */
/* `given` in any order, and the plugin's defaults for the rest; text of `a`. */
sinter_status plugin_fields_write(env *e, arena *a, const sinter_plugin *plugin, const sinter_plugin_field *given,
                                  uint32_t count, const char **out);
sinter_status plugin_fields_read(env *e, arena *a, const sinter_plugin *plugin, const char *words,
                                 const sinter_plugin_field **out);
const char   *plugin_type_name(sinter_plugin_type type);                /* "an integer"; NULL: there is no such type */

/* ---- calls (plugin_call.c) ---- */
/* A problem as the plugin sees it; it refers to its own operands, so it is not copied. */
typedef struct plugin_problem {
    sinter_plugin_problem p;
    sinter_plugin_operand in[PLUGIN_OPERANDS_MAX], out[PLUGIN_OPERANDS_MAX];
    char error[PLUGIN_ERROR_SIZE];
} plugin_problem;
void          plugin_problem_init(plugin_problem *x, const problem *p);     /* p->plugin is set */
/* The sizes of a run in the place of ranges. */
void          plugin_problem_set(plugin_problem *x, const problem *p, const view *in, const view *out);
/* Why the plugin does not run it as it lies: not dense, or types or layouts that it does not take; NULL: it does. */
const char   *plugin_reject(const problem *p);
bool          plugin_is_bounded(const problem *p);                      /* the largest size of each operand is known */
size_t        plugin_workspace(const problem *p);                       /* bytes */
/* The numbers of its tactics: one at least. */
uint32_t      plugin_tactics(const problem *p, uint32_t *list, uint32_t room);
void          plugin_tensor_of(const view *v, sinter_plugin_tensor *out);
/* Calls `run`, or where the registry says so, checks it. r: all but the error. The caller rewinds the scratch. */
sinter_status plugin_run(env *e, arena *scratch, const sinter_plugin *plugin, sinter_plugin_run *r);
/* FAILs with the text that a plugin's function left, or without. */
sinter_status plugin_failed(env *e, const sinter_plugin *plugin, sinter_status s, const char *what, char *error);

#endif
