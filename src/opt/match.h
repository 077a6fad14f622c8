/* SPDX-License-Identifier: Apache-2.0 */
/* match.h - patterns over nodes: constant data that looks like what it matches.
 *
 * Nested patterns are file-scope compound literals. Letters are captures; the same letter must match the same value.
 * The operands of ops that commute are tried both ways. */
#ifndef OPT_MATCH_H
#define OPT_MATCH_H

#include "ir/graph.h"

enum { MATCH_ARGS = 4, MATCH_CAPTURES = 12, MATCH_NODES = 8 };
typedef enum pattern_kind { PATTERN_NONE, PATTERN_ANY, PATTERN_CONST, PATTERN_OP, PATTERN_SCALAR } pattern_kind;
typedef struct pattern {
    pattern_kind kind;
    op_id        op;
    bool         is_only;                       /* the value has no other reader and is no output */
    uint32_t     capture;
    uint32_t     count;                         /* args; 0: not looked at */
    const struct pattern *arg[MATCH_ARGS];
} pattern;

#define PATTERN_COUNT_(a, b, c, d, n, ...) n
#define PATTERN_COUNT(...) PATTERN_COUNT_(__VA_ARGS__, 4, 3, 2, 1, 0)
/* clang-format off */
#define PATTERN_ARGS_(...) .count = PATTERN_COUNT(__VA_ARGS__), .arg = { __VA_ARGS__ }
#define MATCH(name, ...) (&(const pattern){ .kind = PATTERN_OP, .op = OP_##name, PATTERN_ARGS_(__VA_ARGS__) })
#define ONLY(name, ...)  \
    (&(const pattern){ .kind = PATTERN_OP, .op = OP_##name, .is_only = true, PATTERN_ARGS_(__VA_ARGS__) })
#define ROOT(name)       (&(const pattern){ .kind = PATTERN_OP, .op = OP_##name }) /* the rule looks itself */
#define SCALARS          (&(const pattern){ .kind = PATTERN_SCALAR }) /* any scalar function */
#define ANY(letter)      (&(const pattern){ .kind = PATTERN_ANY, .capture = (letter) })
#define CONST(letter)    (&(const pattern){ .kind = PATTERN_CONST, .capture = (letter) })
/* clang-format on */

typedef struct match {
    ir_node_id  root;
    ir_node_id  node[MATCH_NODES];              /* ops of the pattern in order of the text; node[0] is the root */
    uint32_t    count;
    ir_value_id v[MATCH_CAPTURES];
} match;

bool match_node(const ir_graph *g, const pattern *p, ir_node_id n, match *m);

#endif
