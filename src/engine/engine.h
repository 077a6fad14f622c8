/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - writing engine files, and engines in memory after the verifier has seen every byte.
 *
 * `engine_open` is the only way to an `engine`: bytes are checked once, in linear time, and after that code asserts.
 * Loading runs nothing from the file and opens nothing that the file names. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "base/text.h"
#include "core/order.h"
#include "core/storage.h"
#include "base/hash.h"
#include "engine/format.h"
#include "sinter/engine.h"

/* What the executor needs of a step, checked: ids are in range, the problem parsed, the kernel takes it. */
typedef struct engine_code {
    const kernel  *kernel;              /* NULL for calls */
    const problem *problem;             /* of a call: attributes only */
    bool           is_late;             /* something about its shapes is known only while running */
    bool           is_inferred;         /* static, and its output dims follow from its input dims */
} engine_code;

/* Where a weight is: in device_weights, or streamed from host_weights. */
typedef struct engine_weight_place {
    uint64_t at;
    bool     is_streamed;
} engine_weight_place;

typedef struct engine {
    env                  e;             /* the loader's, kept */
    env_budget           budget;        /* the file, tables, weights on the device */
    sinter_error         error;         /* where e.error points between calls */
    uint32_t             references;    /* atomic */
    uint32_t             lock;          /* of `taken` */
    struct engine_block *taken;
    uint8_t             *bytes;         /* the file, in memory of our own */
    size_t               size;
    bool                 is_mapped;     /* only while a build checks its file: pages are given up once they were read */
    arena                a;             /* problems and code */
    const backend       *backend;
    device              *device;
    uint32_t             threads;
    kernel_target        target;
    dim_table           *dims;          /* for printing and for checks at load */

    const engine_header  *header;
    const char           *strings;      uint32_t string_size;
    const dim_node       *dim;          uint32_t dim_count;
    const engine_symbol  *symbol;       uint32_t symbol_count;
    const engine_range   *range;
    const engine_io      *io;           uint32_t io_count, input_count;
    const engine_profile *profile;      uint32_t profile_count;
    const engine_storage *storage;      uint32_t storage_count;
    const engine_value   *value;        uint32_t value_count;
    const uint32_t       *arg;          uint32_t arg_count;
    const engine_region  *region;       uint32_t region_count;
    const engine_step    *step;         uint32_t step_count;
    const engine_kernel  *kernel_ref;   uint32_t kernel_count;
    const engine_recipe  *recipe;       uint32_t recipe_count;
    const uint8_t        *weights;      uint64_t weights_size;
    const engine_notes   *notes;
    const char          **io_text;      /* [io_count * SINTER_RANK_MAX]: dims as text */
    uint32_t             *state_first;  /* [profile_count + 1]: where a profile's states begin in state_value */
    uint32_t             *state_value;  /* index into `value`, by state */
    const char          **state_text;   /* [by state * SINTER_RANK_MAX]: dims as text */
    engine_code          *code;         /* [step_count] */
    uint32_t             *binder;       /* [profile_count * symbol_count]: 1 + the step that binds it; 0: none */
    uint8_t              *symbol_late;  /* [dim_count]: the expression mentions a late symbol */
    uint8_t              *value_late;   /* [value_count]: so do dims, strides, offset, or the size of its storage */
    size_t               *workspace;    /* [profile_count]: bytes, for `threads` */
    size_t               *host_workspace;                   /* [profile_count]: of steps on the host */
    const uint8_t        *binary;       uint64_t binary_size;       /* SECTION_CODE */
    const engine_input   *input;        uint32_t input_records;     /* SECTION_INPUTS; NULL: none, else input_count */
    const engine_state   *state;        /* SECTION_STATE; NULL: there is no state */
    const engine_detail_record *detail; /* SECTION_DETAIL; NULL: all */
    bool                  is_stripped;  /* weights are missing: it has to be refitted before it runs */
    bool                  is_offline;   /* there is no device: for looking at, not for running */
    /* Where the backend has memory of its own: the weights there, and those that runs stream from the host. */
    uint8_t              *device_weights, *host_weights;        /* host_weights: pinned; NULL: there is no room */
    uint64_t              device_size, streamed_size, weight_budget;
    engine_weight_place  *weight_place; /* [storage_count] */
    size_t               *slot_size;    /* [profile_count]: bytes of one of two slots for streamed weights; 0: none */
    uint32_t              contexts;     /* atomic: how many there are */
    bool                  has_no_weights;       /* a change of the budget failed */
} engine;

/* What a file says of itself before anything in it is verified: wishes, on which nothing but the choice of a device may
 * depend. False: no notes can be found, and verifying will say why. */
typedef struct engine_hint { uint32_t threads, isa; char backend[16]; } engine_hint;
bool engine_peek(const uint8_t *bytes, size_t size, engine_hint *out);

/* Verifies `bytes` (taken over on success and on failure: freed with the engine) and loads them for `b`: weights are
 * copied to the device where it has memory of its own, and code is imported where the options trust it. */
sinter_status engine_open(const env *e, uint8_t *bytes, size_t size, const backend *b, const device_options *options,
                          uint64_t weight_budget, engine **out, sinter_error *error);
/* The same to look at: no device is needed, and no context can be made. A backend with memory of its own is asked for
 * the class of device that the engine was built for. */
sinter_status engine_open_offline(const env *e, uint8_t *bytes, size_t size, const backend *b,
                                  const device_options *options, engine **out, sinter_error *error);
/* Verifies bytes, aligned to ENGINE_ALIGN, as opening does, and keeps nothing. */
sinter_status engine_check(env *e, const uint8_t *bytes, size_t size, bool is_mapped, const backend *b,
                           const kernel_target *target);
void          engine_retain(engine *g);
void          engine_release(engine *g);
static inline const char *engine_text(const engine *g, uint32_t at) { return g->strings + at; }

static inline sinter_detail engine_detail(const engine *g)
{
    return g->detail ? (sinter_detail)g->detail->detail : SINTER_DETAIL_ALL;
}

/* Where steps that run on the host have their operands. */
static inline storage_place engine_host_place(const engine *g) { return g->backend->copy ? PLACE_HOST : PLACE_DEVICE; }

/* verify.c: structure, references, types and kernels. `g` has env, bytes, backend, device set. */
sinter_status engine_verify(env *e, engine *g);
extern const size_t engine_record_size[SECTION_KIND_COUNT];
/* engine_code.c: the records of SECTION_CODE are whole; and, given to the device. */
sinter_status engine_verify_code(env *e, const engine *g);
sinter_status engine_import_code(env *e, const engine *g);

/* verify_plan.c: the data flow in the shape that the symbols have; late ones may not be known so far. */
sinter_status engine_check_shape(env *e, const engine *g, uint32_t profile, arena *scratch, const int64_t *symbol);

/* waits.c: what each of `count` steps from `first` on, relative to the profile, has to wait for among them if they run
 * as one program; at the opt shapes. Appends, by the step that waits; at most ORDER_WORKS_MAX steps. */
sinter_status engine_waits(env *e, const engine *g, uint32_t profile, uint32_t first, uint32_t count, arena *a,
                           order_edges *out);

/* engine_info.c: sizes and counts, and the states. */
sinter_status engine_describe(env *e, const engine *g, sinter_engine_info *out);
sinter_status engine_describe_profile(env *e, const engine *g, uint32_t profile, sinter_profile_info *out);
/* Fills state_first, state_value and state_text. canonical: by expression of the file, its id in g->dims. */
sinter_status engine_list_states(env *e, engine *g, const dim *canonical);
static inline uint32_t engine_state_count(const engine *g, uint32_t profile)
{
    return g->state_first[profile + 1] - g->state_first[profile];
}
void          engine_state_describe(const engine *g, uint32_t index, uint32_t profile, sinter_io *out);
/* Bytes of a context's activation memory where programs run: [workspace | slots | slab]; and where the two slots for
 * streamed weights and the slab begin. */
size_t        engine_memory_size(const engine *g, uint32_t profile);
size_t        engine_slots_at(const engine *g, uint32_t profile);
size_t        engine_slab_at(const engine *g, uint32_t profile);
/* Programs of a profile: launches of a run without repetitions. */
uint32_t      engine_program_count(const engine *g, uint32_t profile);

/* engine_weights.c: puts weights on the device: at most `budget` bytes, the others are streamed. 0: all. There must be
 * no context. */
sinter_status engine_place_weights(engine *g, uint64_t budget);
void          engine_drop_weights(engine *g);
uint64_t      engine_streamable_size(env *e, const engine *g);

/* engine_print.c: what `sinter inspect` shows, and an input or output in public words. */
void          engine_print(const engine *g, bool json, text *out);
void          engine_json_text(text *out, const char *s);           /* as a JSON string */
/* Of a step, counted over all profiles: the name of its kernel, its tactic as text, and where it runs: "device" for
 * launches of a graph, "call" for a function that puts work on the stream. */
const char   *engine_step_kernel(const engine *g, uint32_t id);
void          engine_step_tactic(const engine *g, uint32_t id, text *out);
const char   *engine_step_where(const engine *g, const engine_profile *p, uint32_t id);
/* engine_layers.c: sinter_engine_print_layers. */
typedef struct engine_layers {
    uint32_t       index;               /* SINTER_ALL_LAYERS, or of a step over all profiles */
    bool           is_json;
    uint32_t       profile;             /* whose sizes `dim` has, by expression, negative where unknown */
    const int64_t *dim;                 /* NULL: no sizes but the fixed ones are known */
} engine_layers;
sinter_status engine_print_layers(env *e, const engine *g, const engine_layers *o, sinter_write_fn write, void *user);
/* engine_tensors.c, of the JSON report: what a step reads and writes, and the storages of a profile's slab. `name` is
 * what engine_storage_names made, or NULL. */
const uint32_t *engine_storage_names(const engine *g, uint32_t profile, arena *a);
void          engine_print_tensors(const engine *g, uint32_t profile, uint32_t step, const uint32_t *name, text *out);
void          engine_print_slab(const engine *g, uint32_t profile, text *out);
sinter_status engine_io_describe(const engine *g, uint32_t index, uint32_t profile, sinter_io *out);
/* An expression in a profile: at the symbols' min, opt and max. What is no number and no symbol has no range. */
dim_range     engine_range_of(const engine *g, uint32_t d, uint32_t profile);

/* write.c: sections into one file image. */
typedef struct engine_writer {
    env     *e;
    arena    a;
    struct { uint8_t *at; size_t size, capacity; } section[SECTION_KIND_COUNT];
    struct interned **bucket;           /* hash chains of strings and weights */
    uint32_t bucket_count, interned_count;
    struct engine_weight *first_weight, **next_weight;
    /* Called for each weight once the bytes in memory have it; then sections go, too, once the whole file is there.
     * NULL: both are wanted again */
    void   (*release)(void *user, const void *bytes, size_t size);
    void    *user;
    struct os_output *to;               /* takes weights as they come, and the rest at the end; NULL: bytes in memory */
    hash64_parts sum;                   /* of the weights that `to` has */
    uint8_t *room;                      /* for one weight at a time, where they go to a file */
    size_t   room_size;
    sinter_status status;               /* of the first write to the file that failed */
    bool     failed;
} engine_writer;
sinter_status engine_writer_init(env *e, engine_writer *w, struct os_output *to);
/* OK, or why a call before this one failed. */
sinter_status engine_writer_status(const engine_writer *w);
void          engine_writer_deinit(engine_writer *w);
/* Appends a record; returns its index in the section (by `size`), UINT32_MAX on failure. */
uint32_t      engine_writer_add(engine_writer *w, section_kind kind, const void *record, size_t size);
void          engine_writer_append(engine_writer *w, section_kind kind, const void *bytes, size_t size);
uint32_t      engine_writer_string(engine_writer *w, const char *text_at);          /* interned; 0: the empty string */
/* The offset of these bytes in SECTION_WEIGHTS; equal bytes are stored once. Without a file to write they stay where
 * they are until all is finished, and must live as long. */
uint64_t      engine_writer_weight(engine_writer *w, const void *bytes, size_t size);
/* Zeros for a weight that is going to be made, and the offset of what was made there. Each room is filled before the
 * next one is asked for. */
uint8_t      *engine_writer_room(engine_writer *w, size_t size);
uint64_t      engine_writer_made(engine_writer *w, uint8_t *room, size_t size);
/* Appends compiled code to SECTION_CODE. */
sinter_status engine_writer_code(engine_writer *w, const uint8_t key[32], const void *bytes, size_t size);
/* The whole file: allocated with the env's allocator, or, where it goes to `to`, its size alone (*out is NULL). */
sinter_status engine_writer_finish(engine_writer *w, const uint8_t digest[24], uint8_t **out, size_t *size);

/* ---- recipe.c: weights made again ---- */
/* Gives the `size` bytes of the model's initializer of this name, which live as long as the player; NULL: it has none.
 * digest: hash64 of those that the build had. */
typedef struct recipe_source {
    const void *(*find)(void *user, const char *name, uint64_t digest, uint64_t size);
    void       *user;
} recipe_source;
typedef struct recipe_player recipe_player;
sinter_status recipe_player_create(env *e, const engine *g, const recipe_source *from, recipe_player **out);
void          recipe_player_destroy(recipe_player *r);                              /* NULL is accepted */
/* recipe: 1 + index, as storages have it. The bytes live until the next call. INVALID_ARG: an initializer is wanted. */
sinter_status recipe_play(recipe_player *r, uint32_t recipe, const uint8_t **bytes, uint64_t *size);

/* ---- engine_memory.c: from any thread ---- */
/* Memory of the caller that runs of a context use. native: the caller's stream on which they are ordered, or NULL. */
typedef struct engine_block {
    const uint8_t *at;
    size_t         size;
    stream        *stream;
    const void    *native;
    bool           is_taken;
    struct engine_block *next;
} engine_block;
/* false: another block overlaps it, whose runs have not ended and are not ordered with this one's. */
bool          engine_block_take(engine *g, engine_block *b);
void          engine_block_give(engine *g, engine_block *b);
sinter_status engine_memory_alloc(engine *g, sinter_place place, size_t size, void **out, sinter_error *error);
void          engine_memory_free(engine *g, sinter_place place, void *data, size_t size);
sinter_status engine_memory_copy(engine *g, void *to, sinter_place to_place, const void *from, sinter_place from_place,
                                 size_t size, sinter_error *error);

#endif
