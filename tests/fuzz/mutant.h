/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.h - inside the mutator: an engine that is being changed, and what its parts share. */
#ifndef MUTANT_H
#define MUTANT_H

#include "core/dim.h"
#include "core/storage.h"
#include "engine/engine.h"
#include "engine_parts.h"
#include "test.h"

typedef struct mutant {
    parts            *p, *other;
    uint64_t         *random;
    uint32_t          profile;
    engine_profile   *of;
} mutant;

static inline uint32_t pick(const mutant *m, uint64_t limit) { return (uint32_t)test_below(m->random, limit); }
static inline engine_value *value_at(const mutant *m, uint32_t v)
{
    return parts_record(m->p, SECTION_VALUES, m->of->value_first + v);
}
static inline engine_step *step_at(const mutant *m, uint32_t s)
{
    return parts_record(m->p, SECTION_STEPS, m->of->step_first + s);
}

/* ---- mutate_size.c: numbers, expressions, and the lines that state them ---- */
uint32_t *mutant_arg(const mutant *m, uint64_t i);
uint32_t *mutant_operand(const mutant *m, const engine_step *s, uint32_t i);
uint32_t  any_value(const mutant *m);           /* 1 .. count - 1, or 0 where there is none */
int64_t   any_number(const mutant *m, int64_t now);
uint32_t  any_dim(mutant *m, uint32_t now);
uint32_t  new_dim(const mutant *m, uint32_t kind, uint32_t a, uint32_t b, int64_t value);
void      change_dims(mutant *m);
void      change_symbol(mutant *m);
void      change_line(mutant *m);
void      resize_everywhere(mutant *m);         /* another size, wherever it stands */
void      loosen_everywhere(mutant *m);         /* a size becomes an expression, wherever it stands */
void      widen_everywhere(mutant *m);
void      loosen_value(mutant *m);              /* one size of one value, and of what its steps state of it */

#endif
