/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - what a CUDA kernel row makes of a problem: code to compile, and launches of it.
 *
 * A row is a `kernel` with one function more, `code`: a pure function from problem, tactic and machine to what is
 * compiled, so that whoever has a problem can make the same code again. `bind`, which knows the shapes, fills an empty
 * cuda_record: one or more launches in order, each with its grid and the bytes of its parameters. Addresses are not
 * known then; patches say where in those bytes they go. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H

#include "cuda/fields.h"

/* ---- code ---- */

enum { CODE_DEFINES = 40, CODE_INDEX_MAX = 8 };
typedef struct cuda_define { const char *name; int64_t value; } cuda_define;

/* One compilation: an embedded source file, specialised. Equal contents, equal code. */
typedef struct cuda_code {
    const char *source;                 /* "map.cu": of cuda/device; its extern "C" __global__ function is `entry` */
    const char *entry;
    bool        may_spill;              /* else spills to local memory are a failure of ./check */
    uint32_t    define_count;
    cuda_define define[CODE_DEFINES];   /* -DNAME=VALUE */
    text       *generated;              /* seen by the source as "generated.cuh"; the caller's; appended to */
} cuda_code;
void cuda_code_define(cuda_code *c, const char *name, int64_t value);       /* more than CODE_DEFINES: an assertion */

/* ---- launches ---- */

enum { RECORD_LAUNCHES = 8, RECORD_ARGS = 4096, RECORD_PATCHES = 160, LAUNCH_PARAMS = 4, RECORD_MAPS = 4 };

typedef enum patch_kind {
    PATCH_IN, PATCH_OUT,                /* u64 address of operand `index`'s element [0…] + `offset` bytes; 0: absent */
    PATCH_WORKSPACE,                    /* u64 address of the workspace + `offset` bytes */
    PATCH_FAULT,                        /* u64 address of the stream's device_fault */
    PATCH_STEP,                         /* u32 index of the step in the engine: for faults */
    PATCH_MAP                           /* 128 bytes: tensor map `index` of the record, over its operand */
} patch_kind;
typedef struct cuda_patch { uint16_t at; uint8_t kind, index; int64_t offset; } cuda_patch;     /* at: in args */

/* A tensor map (cuTensorMapEncodeTiled / Im2col), encoded when the address is known. Innermost axis first. */
typedef struct cuda_map {
    uint8_t  is_out, operand, rank, swizzle;        /* swizzle: CU_TENSOR_MAP_SWIZZLE_* */
    uint8_t  is_im2col, dtype, pixels, channels;    /* sinter_dtype; im2col: pixelsPerColumn, channelsPerPixel */
    int16_t  low[3], high[3];                       /* im2col: corners */
    uint64_t dim[5], stride[5];                     /* elements; bytes, stride[0] unused */
    uint32_t box[5], step[5];                       /* elements of the box; element strides */
} cuda_map;

typedef struct cuda_launch {
    uint32_t code;                      /* which of the row's codes */
    uint32_t grid[3], block;            /* blocks; threads a block */
    uint32_t cluster;                   /* blocks along grid x that form a cluster; 0, 1: none */
    uint32_t shared;                    /* dynamic shared memory, bytes */
    uint32_t param_count;
    struct { uint16_t at, size; } param[LAUNCH_PARAMS];     /* in args */
    uint16_t patch_first, patch_count;
} cuda_launch;

/* What bind fills; plain data that may be moved. */
typedef struct cuda_record {
    uint32_t    count, args_size, patch_count, map_count;
    cuda_launch at[RECORD_LAUNCHES];
    cuda_patch  patch[RECORD_PATCHES];
    cuda_map    map[RECORD_MAPS];
    _Alignas(64) uint8_t args[RECORD_ARGS];
} cuda_record;

/* Begins a launch: grid of x * y * z blocks. A launch of no blocks is dropped by the program. NULL: no room. */
cuda_launch *cuda_launch_add(cuda_record *r, uint32_t code, uint64_t x, uint64_t y, uint64_t z, uint32_t block,
                             uint32_t shared);
/* Appends a parameter of the launch begun last: zeroed bytes for its struct, 64-byte aligned. NULL: no room. Patches of
 * it are given relative to its start. */
void        *cuda_param_add(cuda_record *r, size_t size);
void         cuda_patch_add(cuda_record *r, const void *param, size_t at, patch_kind kind, uint32_t index,
                            int64_t offset);
#define CUDA_PATCH(record, param, field, kind, index) \
    cuda_patch_add(record, param, offsetof(__typeof__(*(param)), field), kind, index, 0)
/* A launch and its first parameter; *at, a pointer, then points to it. Errors: UNSUPPORTED: the grid is too large. */
sinter_status cuda_launch_begin(env *e, cuda_record *r, uint32_t code, uint64_t x, uint64_t y, uint64_t z,
                                uint32_t block, uint32_t shared, size_t size, void *at);
static inline cuda_launch *cuda_launch_last(cuda_record *r) { return &r->at[r->count - 1]; }
cuda_map    *cuda_map_add(cuda_record *r, const void *param, size_t at);

/* ---- rows ---- */

typedef struct cuda_kernel {
    kernel base;                        /* first: the backend's list points to these */
    /* Code `index` (from 0, without gaps) of the tactic; false: there is none of that number. Everything that is not in
     * the problem (sizes that vary) is a parameter of the launch. c->generated is an empty text. */
    bool (*code)(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c);
} cuda_kernel;

/* The row `id` of functions that begin with `of`; what else it has follows. */
#define CUDA_ROW(id, version, rejects, of, ...) \
    const cuda_kernel id = { .base = { .name = #id, .abi = version, .reject = rejects, .tactics = of##tactics, \
                                       .check = of##check, .print = of##print, .cost_ns = of##cost_ns, \
                                       .record_size = cuda_record_size, .bind = of##bind, __VA_ARGS__ }, \
                             .code = of##code }
/* One that has nothing to choose: `checks` is its check, or cuda_check_one. */
#define CUDA_ROW_ONE(id, version, checks, of, ...) \
    const cuda_kernel id = { .base = { .name = #id, .abi = version, .reject = of##reject, \
                                       .tactics = cuda_tactics_one, .check = checks, .cost_ns = of##cost_ns, \
                                       .record_size = cuda_record_size, .bind = of##bind, __VA_ARGS__ }, \
                             .code = of##code }
size_t cuda_record_size(const problem *p, const tactic *t);     /* every row's record_size: sizeof(cuda_record) */
/* Every row's tactics where there is nothing to choose, and its check: one tactic, all zeros. */
void   cuda_tactics_one(const problem *p, const kernel_target *t, tactic_sink *out);
bool   cuda_check_one(const problem *p, const tactic *t);

/* Is the operand given? */
static inline bool cuda_has_in(const problem *p, uint32_t i)
{
    return i < p->count_in && p->in[i].dtype != SINTER_DTYPE_NONE;
}
static inline bool cuda_has_out(const problem *p, uint32_t i)
{
    return i < p->count_out && p->out[i].dtype != SINTER_DTYPE_NONE;
}

/* Numbers that many rows ask for. */
double   cuda_operand_bytes(const problem_operand *o);          /* at opt */
double   cuda_problem_bytes(const problem *p);                  /* of all operands, at opt */
int64_t  cuda_ceil_div(int64_t a, int64_t b);                   /* a >= 0, b > 0 */
int64_t  cuda_operand_count(const problem_operand *o);          /* elements at opt */
/* Launch, bytes over bandwidth, operations over rate: 2 us + max(bytes / bandwidth, ops / flops). */
double   cuda_cost_ns(const kernel_target *t, double bytes, double ops);
/* The most that a size can be; where nothing bounds it, what is usual: more is refused when it comes. Not for what
 * memory is made of or elements are numbered with: nothing refuses there, so `max` counts. */
int64_t  cuda_range_most(dim_range d);
/* The most blocks of a cluster; for tactics, which may not know the chip. */
static inline uint32_t cuda_cluster_most(const kernel_target *t) { return t->cluster ? t->cluster : 8; }
/* The largest power of two <= most that divides n. */
uint32_t cuda_power_in(int64_t n, uint32_t most);
/* The axis along which elements are adjacent: the innermost that can have more than one. UINT32_MAX: there is none. */
uint32_t cuda_operand_inner(const problem_operand *o);
/* The largest power of two <= most that divides the pitch of every axis but the innermost, by what the problem knows:
 * so many elements at an aligned start along the innermost axis may be read or written at once. 1 where gapped. */
uint32_t cuda_operand_vector(const problem_operand *o, uint32_t most);

/* x / d by multiplication, for 0 <= x < 2^31: the struct fast_div of cuda/device/device_args.h. */
struct fast_div;
struct fast_div cuda_fast_div(int64_t d);

#endif
