/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - the engine file: fixed little-endian records in checksummed sections.
 *
 * Ids and offsets only, never pointers; strings are offsets into one section of NUL-terminated text. Id 0 of values,
 * storages and regions is inert: absent. docs/engine-file.md is the specification. Problems are stored as their one
 * line of text: the parser that reads them is the one that logs, tests and the timing cache use, and it is fuzzed as
 * they are. */
#ifndef ENGINE_FORMAT_H
#define ENGINE_FORMAT_H

#include <stddef.h>
#include "sinter/tensor.h"
#include <stdint.h>

enum { ENGINE_MAJOR = 2, ENGINE_MINOR = 3, ENGINE_ALIGN = 64, ENGINE_SECTIONS_MAX = 64 };
#define ENGINE_MAGIC "\x89SINTER\n"

typedef enum section_kind {
    SECTION_NONE, SECTION_STRINGS, SECTION_DIMS, SECTION_SYMBOLS, SECTION_RANGES, SECTION_IOS, SECTION_PROFILES,
    SECTION_STORAGES, SECTION_VALUES, SECTION_ARGS, SECTION_REGIONS, SECTION_STEPS, SECTION_KERNELS, SECTION_RECIPES,
    SECTION_WEIGHTS, SECTION_NOTES, SECTION_CODE, SECTION_INPUTS, SECTION_STATE, SECTION_DETAIL,
    SECTION_KIND_COUNT
} section_kind;

enum { SECTION_REQUIRED = 1 };

typedef struct engine_header {
    uint8_t  magic[8];
    uint32_t header_size;           /* bytes: that of this struct */
    uint16_t major, minor;          /* major must match; any minor of it may be read */
    uint32_t byte_order;            /* 0x01020304 as stored by the writer */
    uint32_t section_count;
    uint64_t file_size;             /* bytes; a truncated file is refused before anything else is believed */
    uint8_t  model_digest[24];      /* first bytes of the model's SHA-256: which model this was */
    uint64_t header_sum;            /* of header and section table, this field as 0 */
} engine_header;
_Static_assert(sizeof(engine_header) == 64 && offsetof(engine_header, header_sum) == 56, "on-disk layout");

typedef struct engine_section {
    uint32_t kind, flags;
    /* bytes; at is a multiple of ENGINE_ALIGN; sections are in order, without holes but padding */
    uint64_t at, size;
    uint64_t sum;                   /* hash64 of the bytes */
} engine_section;
_Static_assert(sizeof(engine_section) == 32, "on-disk layout");

/* The shape program: an expression a record, operands before users; record 0 is DIM_NONE. */
typedef struct engine_dim { uint32_t kind, a, b, reserved; int64_t value; } engine_dim;
_Static_assert(sizeof(engine_dim) == 24, "on-disk layout");

typedef struct engine_symbol { uint32_t name, is_late; } engine_symbol;

/* One for each profile and symbol, profile by profile. */
typedef struct engine_range { int64_t min, max, opt, divisor; } engine_range;

/* promise_size > 0: the input must hold these bytes of SECTION_WEIGHTS, which the engine was built for. */
typedef struct engine_io {
    uint32_t name, is_input, dtype, rank;
    uint32_t dim[16];
    uint64_t promise_at, promise_size;
} engine_io;
_Static_assert(sizeof(engine_io) == 96 && SINTER_RANK_MAX == 16, "on-disk layout");

/* A profile's tables are consecutive parts of the shared ones; ids inside are relative to its `first`s. */
typedef struct engine_profile {
    uint32_t storage_first, storage_count, value_first, value_count, region_first, region_count, step_first, step_count;
    uint32_t io_first;              /* in args: the value of each io */
    uint32_t order;                 /* program_order: which steps of a program may run side by side */
    uint64_t slab_size;             /* of PLACE_DEVICE */
    uint64_t host_slab_size;        /* of PLACE_HOST: 0 where the backend has one place */
} engine_profile;
_Static_assert(sizeof(engine_profile) == 56, "on-disk layout");

typedef struct engine_storage {
    uint32_t kind, size_dim;        /* storage_kind; bytes as an expression */
    uint64_t bound;                 /* slab: bytes kept for it; weight: its size */
    uint64_t at;                    /* slab: offset; weight: offset in SECTION_WEIGHTS; input and output: io */
    uint32_t recipe;                /* weight: 1 + index into SECTION_RECIPES; 0: none */
    uint32_t place;                 /* storage_place; an input may have a storage in each */
} engine_storage;
_Static_assert(sizeof(engine_storage) == 32, "on-disk layout");

/* Of a value on a state: what the run before has left. No step may read it after another has written there. */
enum { VALUE_IS_OLD = 1 };
typedef struct engine_value {
    uint32_t name, dtype, rank, storage, offset, flags;         /* name 0: none; offset: expression, elements */
    uint32_t dim[16], stride[16];   /* expressions */
} engine_value;
_Static_assert(sizeof(engine_value) == 152, "on-disk layout");

/* Parameters and results: values, in args. */
typedef struct engine_region {
    uint32_t step_at, step_count, param_at, param_count, result_at, result_count;
} engine_region;

typedef struct engine_step {
    uint32_t kind, kernel;          /* step_kind; 1 + index into SECTION_KERNELS, 0 for calls */
    uint32_t problem, name;         /* strings */
    uint32_t in_at, in_count, out_at, out_count, dim_at, dim_count;     /* in args */
    uint32_t region[2];
    uint8_t  tactic[32];
} engine_step;
_Static_assert(sizeof(engine_step) == 80, "on-disk layout");

typedef struct engine_kernel { uint32_t name, abi; } engine_kernel;

/* `at` of a weight that a stripped engine leaves out: its recipe makes it. */
#define WEIGHT_ABSENT UINT64_MAX

/* How weights were made: an initializer, an op on earlier recipes, a packing of one, or bytes that the build made. */
typedef enum recipe_kind { RECIPE_INITIALIZER, RECIPE_OP, RECIPE_PACK, RECIPE_DATA } recipe_kind;
typedef struct engine_recipe {
    uint32_t kind, text;            /* initializer: its name; op: the problem's text; pack: of the step's problem */
    uint32_t in_at, in_count;       /* in args: 1 + recipes, 0: absent */
    /* op: which output; pack: which input; initializer: whether its values decided what the engine is */
    union { uint32_t out, is_fixed; };
    union { uint32_t kernel, dtype; };                 /* pack: 1 + kernel; initializer: its type in the model */
    /* initializer: hash64 of its bytes; pack: in args, how the kernel sees its source, as constant expressions: offset,
     * then dim and stride of each axis, in elements */
    union { uint64_t digest, view_at; };
    union {
        uint8_t tactic[32];         /* pack */
        struct { uint64_t at, size; } data;         /* data: where in SECTION_WEIGHTS; data and initializer: bytes */
    };
} engine_recipe;
_Static_assert(sizeof(engine_recipe) == 64, "on-disk layout");

/* Facts about the build, for people and for the timing cache: never needed to run. One record. */
typedef struct engine_notes {
    /* strings: the writer, the device class, options, the model's name */
    uint32_t version, target, options, model;
    uint32_t threads, isa;          /* tuned for so many; the CPU level, or compute capability, that the kernels need */
    uint32_t node_count;            /* of the model */
    uint32_t backend;               /* string: "cpu", "cuda" */
} engine_notes;

/* SECTION_INPUTS (optional; empty, or one record for each input): whole numbers with which no index of the model leaves
 * its table, for whoever makes up data. INT64_MIN, INT64_MAX: nothing is known. A run does not read it. */
typedef struct engine_input { int64_t min, max; } engine_input;

/* SECTION_STATE (where a profile has a storage of kind STORAGE_STATE; one record): a run appends `append` rows, an
 * expression, and no run may make them more than `capacity`. */
typedef struct engine_state {
    uint32_t append, reserved;
    uint64_t capacity;
} engine_state;
_Static_assert(sizeof(engine_state) == 16, "on-disk layout");

/* SECTION_DETAIL (optional; empty, or one record): sinter_detail, what the engine tells of its layers. */
typedef struct engine_detail_record { uint32_t detail, reserved; } engine_detail_record;

/* SECTION_CODE (optional): compiled kernels one after the other, each a header and `size` bytes, padded to 16. Run only
 * where the caller trusts the file. */
typedef struct engine_code_header {
    uint8_t  key[32];               /* of what it was compiled from */
    uint64_t size, sum;             /* sum: hash64 of the bytes */
} engine_code_header;
_Static_assert(sizeof(engine_code_header) == 48, "on-disk layout");

#endif
