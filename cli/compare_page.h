/* SPDX-License-Identifier: Apache-2.0 */
/* compare_page.h - a comparison of two sides, row by row, and its page of HTML. */
#ifndef CLI_COMPARE_PAGE_H
#define CLI_COMPARE_PAGE_H

#include "difference.h"
#include "sides.h"

typedef struct compare_row {
    char *name, *node, *op; /* node and op: NULL where no model says who makes it */
    uint32_t maker;         /* the node's index */
    uint32_t only;          /* 1: only A has it; 2: only B */
    sinter_tensor type;     /* of A, without data */
    difference d;
} compare_row;

typedef struct comparison {
    side side[SIDES];
    compare_row *row;
    uint32_t rows, compared, differing, alone;
    const compare_row *first; /* the first that differs; NULL: none */
} comparison;

/* Opens and runs both sides, and compares all outputs. False: reported. compare_free all the same. */
bool compare_make(const args *a, const char *const text[SIDES], comparison *out);
bool compare_passes(const args *a, const comparison *c);
void compare_free(comparison *c);

/* Writes the page. False: reported. */
bool compare_page(const comparison *c, const char *path);
/* The table and the plots of it, without head and end. */
void compare_page_body(const comparison *c, FILE *to);

#endif
