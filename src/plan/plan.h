/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what will run: values over storages, steps in regions, and where every byte lies.
 *
 * tune fills the arrays (which kernel, which layout, which view); the functions here add lifetimes and offsets. They
 * are pure: no device, no I/O. Sizes are dim expressions; offsets in the slab are constants, planned on each size's
 * upper bound, so a change of shape moves nothing. Index 0 of every table is inert: "absent". */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "base/arena.h"
#include "core/dim.h"
#include "core/dtype.h"
#include "core/storage.h"

enum { PLAN_ALIGN = 64 };

typedef struct plan_storage {
    storage_kind kind;
    storage_place place;
    dim          size;              /* bytes */
    uint64_t     bound;             /* bytes: the size's upper bound; of a weight: its size */
    uint64_t     at;                /* offset in the slab, or in the weights section */
    uint32_t     io;                /* of inputs and outputs: which */
    uint32_t     first, last;       /* positions of the steps that first write and last touch it */
    const void  *data;              /* of weights: the bytes */
    uint32_t     recipe;            /* of weights: how they were made; index into the caller's list */
} plan_storage;

typedef struct plan_value {
    const char  *name;              /* the model's, or NULL */
    sinter_dtype dtype;
    uint32_t     rank;
    dim          dim[SINTER_RANK_MAX], stride[SINTER_RANK_MAX], offset;   /* elements */
    uint32_t     storage;
    bool         is_old;            /* of a state: its value before the run */
} plan_value;

typedef struct plan_step {
    step_kind       kind;
    const void     *kernel;         /* of kernels and late ops: struct kernel of the backend */
    const void     *problem;        /* struct problem; of regions: attributes and types */
    uint8_t         tactic[32];
    uint32_t        count_in, count_out, count_dim;
    const uint32_t *in, *out;       /* values, 0: absent */
    const dim      *dim_at;         /* the op's DIMS attributes, one list after the other */
    uint32_t        region[2];
    uint32_t        first, last;    /* positions: last covers the regions called */
    /* out[0] may share memory with an input of this index or above, if that input has the same view and is not read
     * later; UINT32_MAX: never */
    uint32_t        in_place_from;
    const char     *name;           /* model nodes that it came from, for people */
} plan_step;

typedef struct plan_region {
    VEC(uint32_t) step;
    uint32_t       count_param, count_result;
    const uint32_t *param, *result; /* values */
} plan_region;

typedef struct plan {
    arena     *a;
    dim_table *dims;
    VEC(plan_storage) storage;
    VEC(plan_value)   value;
    VEC(plan_step)    step;
    VEC(plan_region)  region;       /* 1 is main */
    uint32_t   count_io;
    const uint32_t *io;             /* the value of each input, then of each output */
    uint64_t   slab_size[PLACE_COUNT];
    bool       has_branches;        /* a step of main does not need the one before it; set by plan_offsets_apart */
} plan;

sinter_status plan_create(env *e, arena *a, dim_table *dims, plan **out);
uint32_t      plan_storage_new(plan *p, storage_kind kind, dim size);
/* Bytes of a dense value of this type and these dims. */
dim           plan_dense_size(plan *p, sinter_dtype dtype, uint32_t rank, const dim *d);
/* A value dense in `order` (axes from outermost to innermost; NULL: row-major) on its own new storage. */
uint32_t      plan_value_dense(plan *p, storage_kind kind, const char *name, sinter_dtype dtype, uint32_t rank,
                               const dim *d, const uint8_t *order);

/* Fills positions and lifetimes, walking regions where they are called. A storage that a body touches but did not make
 * lives to the end of the call. */
sinter_status plan_lifetimes(env *e, plan *p);
/* Places results into the memory of inputs that the same step reads last, where the kernel permits it. After
 * plan_lifetimes. */
void          plan_in_place(plan *p);
/* Gives every slab storage its offset: no two that live together overlap, all aligned to PLAN_ALIGN. Sets slab_size.
 * Storages whose bound is above `limit` bytes (or unknown) become STORAGE_GROWN. Cost: n log n in storages. */
sinter_status plan_offsets(env *e, plan *p, uint64_t limit);
/* The same, but reuses bytes only where no independent branch has to wait for that. Falls back to plan_offsets if the
 * slab would grow too much and is not small. */
sinter_status plan_offsets_apart(env *e, plan *p, uint64_t limit);
/* The peak of live bytes on the device: no plan can be smaller. For reports and tests. */
uint64_t      plan_lower_bound(const plan *p, arena *a);

#endif
