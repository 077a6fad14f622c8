/* SPDX-License-Identifier: Apache-2.0 */
/* graph_judge.h - what a model's results are: every node on its own, as a model of one node with the shapes and data
 * that it meets, on the reference kernels. No pass, no plan and no other node can spoil that. If, Loop and Scan are run
 * here, node by node too.
 *
 * Everything is computed in lanes. Lane 0 is the answer. In the others each float that rounding may have touched is
 * moved by a few units in the last place, so that the lanes show how far rounding may move each result. */
#ifndef GRAPH_JUDGE_H
#define GRAPH_JUDGE_H

#include "graph_model.h"

/* One node, whose inputs have data. False: m->error says what refused it. */
bool judge_node(gmodel *m, uint32_t node, uint32_t env_index);
/* An input or a constant gets its data in all environments. */
void judge_leaf(gmodel *m, uint32_t value);
/* Slice `index` of a value along an axis; past the end: zeros. */
void judge_slice(gmodel *m, uint32_t to, uint32_t of, uint32_t axis, int64_t index, uint32_t env_index);
/* `count` indices of an axis from `begin` on; past the end: zeros. */
void judge_cut(gmodel *m, uint32_t to, uint32_t of, uint32_t axis, int64_t begin, int64_t count, bool keeps_axis,
               uint32_t env_index);
/* The whole model in one environment. */
bool judge_model(gmodel *m, uint32_t env_index);
/* How far an output of another implementation is from `v`: at most 1 is as good as equal, infinite is what no rounding
 * explains. `why` says where. */
double judge_gap(const gmodel *m, const gvalue *v, uint32_t env_index, const sinter_tensor *found, char *why,
                 size_t size);
/* Is rounding too large for a comparison to mean something? */
bool judge_is_doubtful(const gmodel *m, const gvalue *v, uint32_t env_index);
/* Frees the engines that are kept. */
void judge_close(void);

/* ---- parts of the judge ---- */
typedef VEC(gtensor *) gtensors;
/* Slices behind each other along a new axis; `like`: one slice, where there are none. */
gtensor *judge_stack(gmodel *m, const gtensors *t, uint32_t axis, bool is_reversed, const gtensor *like);
void judge_pass(gmodel *m, uint32_t to, uint32_t from, uint32_t env_index);
/* Where a narrower type is permitted, a copy may be rounded, and the value that it is a copy of may not. */
void judge_copied(gmodel *m, uint32_t value, uint32_t env_index);
void judge_scalar(gmodel *m, uint32_t value, sinter_dtype dtype, int64_t x, uint32_t env_index);
/* A node on the reference kernels. */
bool judge_alone(gmodel *m, const gnode *n, uint32_t env_index);
bool judge_scope(gmodel *m, uint32_t scope, uint32_t env_index);
/* The type whose rounding numbers of a type may have: a narrower one where the model allows it. */
sinter_dtype judge_type(const gmodel *m, sinter_dtype dtype);
/* The unit of that rounding, and the largest finite number of a tensor. */
double judge_unit(const gmodel *m, sinter_dtype dtype);
double judge_largest(const gtensor *t);
/* What lane 1 is moved by, lane 2 is moved by in the other direction, and never by hardly anything: of two numbers that
 * rounding may put in either order, or on either side of a step, one lane has the other order. `salt` keeps the moves
 * of two tensors apart. all: no number is taken for exact, and what is small beside others moves with those.
 * first: NULL, or the first lane, from which `t` may be away already: it moves on in that direction. */
gtensor *judge_moved(gmodel *m, const gtensor *t, const gtensor *first, uint32_t lane, uint32_t salt, bool all);
/* `t`, which a lane's operands gave, as that lane has it. */
gtensor *judge_lane(gmodel *m, const gnode *n, uint32_t output, uint32_t env_index, uint32_t lane, gtensor *t);
/* The factors of a product that are smaller than 1, or that are not, and 1 for the others. */
gtensor *judge_factors(gmodel *m, const gtensor *t, bool small);
/* The small factors alone give numbers that are too small for f32, or the large ones such that are too large: what the
 * product is depends on the order. */
bool judge_is_open_product(const gtensor *small, const gtensor *large);
/* Operators whose results are roots of sums of powers, and operands whose powers f32 may not hold. */
bool judge_is_norm(const char *op);
bool judge_is_open_norm(const gtensor *t);
/* Is a product of bf16, or of f32 by sums of bf16, one of a subnormal number, which CPUs take for 0, and of one so
 * large that this shows? */
bool judge_is_flushed(const gmodel *m, const gnode *n, uint32_t k);
/* Are there different numbers that rounding may make equal? Then nobody knows how many Unique finds. */
bool judge_may_join(gmodel *m, gtensor *const *lanes);
/* May rounding change which elements of a row an operator takes, or their order: are there, beside one that it takes,
 * others that are nearly the same? Numbers that are equal and exact have one order. */
bool judge_may_swap(const gmodel *m, const gnode *n, uint32_t k);
/* Are there numbers that are 0 or not by what lanes differ? Then nobody knows how many NonZero finds, nor whether x / x
 * is 1. */
bool judge_may_be_zero(gtensor *const *lanes);
/* Sequences, optionals and text, which are lists of values, or values with a mark (graph_judge_lists.c). */
bool judge_is_list(const gmodel *m, const gnode *n);
bool judge_list(gmodel *m, const gnode *n, uint32_t env_index);
/* Is the result text, moved? */
bool judge_gives_text(const gmodel *m, const gnode *n);
void judge_pass_list(gmodel *m, uint32_t to, uint32_t from, uint32_t env_index);

#endif
