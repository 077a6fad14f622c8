/* SPDX-License-Identifier: Apache-2.0 */
/* case_lines.h - the problem lines of case files, in the order of files and lines. */
#ifndef CASE_LINES_H
#define CASE_LINES_H

#include "case_rig.h"

typedef struct case_line {
    const char *at, *from;              /* from: the file's name; NULL: it was an argument */
    uint32_t    number;                 /* in the file, from 1 */
    bool        is_small;               /* "#! small" stands before it */
    bool        is_special;             /* for special values alone */
} case_line;

typedef struct case_lines { case_line *at; uint32_t count, room; } case_lines;

void case_lines_put(case_lines *l, case_line line);
void case_lines_add(case_lines *l, const char *line);               /* one line; borrowed */
/* NULL, or what is wrong with the file. */
const char *case_lines_read(case_rig *r, const char *path, case_lines *l);
/* Every .txt file of a folder of the tree ("tests/cuda/cases"), by name; how many there were. */
int  case_lines_read_folder(case_rig *r, const char *folder, case_lines *l);
/* A problem for each scalar function and type, made from scalar.def; programs of several results each. For special
 * values: ordinary ones tell less. */
void case_lines_scalar(case_rig *r, case_lines *l);
/* Random products with packed weights, equal for equal seeds. */
void case_lines_packed(case_rig *r, case_lines *l, uint32_t count, uint64_t seed);
/* The same as a user asks for them, "SEED,COUNT". NULL, or what is wrong with that. */
const char *case_lines_ask_packed(case_rig *r, const char *asked, case_lines *l);

#endif
