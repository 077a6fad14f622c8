/* SPDX-License-Identifier: Apache-2.0 */
/* emit.h - plans as records of an engine file. */
#ifndef BUILD_EMIT_H
#define BUILD_EMIT_H

#include "engine/engine.h"
#include "onnx/import.h"
#include "tune/tune.h"

typedef struct emit {
    env           *e;
    arena         *a;
    engine_writer  w;
    ir_graph      *g;
    const onnx_input_value *promise;    /* inputs whose values are promised */
    uint32_t       promise_count;
    const value_range *values;          /* by input: what it may hold; NULL: nothing is known */
    uint32_t      *recipe_of;           /* by graph value: 1 + recipe; 0: not written yet */
    /* By graph value: 1 + the least depth of folds at which no recipe was found; 0: none was looked for. The second
     * list is for recipes that may hold constants of any size. Without the lists, a chain of n folds that each read the
     * fold before twice would be searched 2 to the power of n times. */
    uint8_t       *missed[2];
    VEC(bool)      is_open;             /* by recipe: it is an initializer or made of one */
    void         (*read)(void *user, const void *at, size_t size);      /* NULL, or called for data that was read */
    void          *user;
    uint64_t       pack_ns;             /* spent on packing weights */
} emit;

/* What all profiles share: the shape program, symbols, inputs and outputs. After all tuning, since that adds
 * expressions. */
sinter_status emit_shared(emit *x);
/* The symbols' ranges as they are now, and one profile's plan. */
sinter_status emit_ranges(emit *x);
sinter_status emit_profile(emit *x, const tune_result *t);
sinter_status emit_decided(emit *x);
/* Changes the order of a profile that was written already. */
void emit_order(emit *x, uint32_t index, program_order order);
sinter_status emit_notes(emit *x, const engine_notes *notes, const engine_detail_record *detail); /* NULL: all */

/* Loads the built engine as a check, under the same limits as a caller's load. is_mapped: pages of the bytes are given
 * up once they are read. */
sinter_status emit_check(env *e, const backend *k, device *d, const uint8_t *bytes, size_t size, bool is_mapped);

#endif
