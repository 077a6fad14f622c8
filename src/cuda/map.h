/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - plans of the ops that device/map.cu computes one element at a time. */
#ifndef CUDA_MAP_H
#define CUDA_MAP_H

#include "cuda/space.h"

typedef enum map_kind {                 /* numbers of device/map.cu */
    MAP_NONE, MAP_PAD, MAP_GATHER, MAP_GATHER_ELEMENTS, MAP_GATHER_ND, MAP_REVERSE, MAP_MAKE, MAP_POOL, MAP_RESIZE,
    MAP_GRID, MAP_ROI, MAP_MISC, MAP_DEFORM
} map_kind;

enum { MAP_DEFINES = 30 };

typedef struct map_plan {
    map_kind    map;
    bool        is_bits_out;            /* elements are moved as they are */
    uint8_t     bits_in;                /* bit per operand that is bits then, too */
    uint8_t     inner_in;               /* axis of operand 0 that the result's innermost one is; UINT8_MAX: none */
    bool        is_straight;            /* elements along the innermost axis lie beside one another in operand 0, too */
    uint8_t     width, vector;          /* the most elements a thread; the most that one instruction stores */
    double      work;                   /* elements that one result looks at */
    uint32_t    define_count;
    cuda_define define[MAP_DEFINES];
    space       s;
} map_plan;

struct map_args;
uint32_t    map_inner(const problem *p);                            /* the innermost axis of the result */
void        map_define(map_plan *m, const char *name, int64_t value);
/* Each leaves m->map alone where the op is not its own. The reason against it, or NULL. */
const char *map_plan_move(const problem *p, map_plan *m);
const char *map_plan_image(const problem *p, map_plan *m);
void        map_text(const problem *p, const map_plan *m, text *out);
sinter_status map_fill(env *e, const problem *p, const map_plan *m, const void *attrs, const view *in,
                       const view *out, struct map_args *a);
sinter_status map_fill_move(env *e, const problem *p, const map_plan *m, const void *attrs, const view *in,
                            const view *out, struct map_args *a);

#endif
