/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - test cases on disk: folders with model.onnx, and their folders of inputs and outputs. */
#ifndef CLI_CASES_H
#define CLI_CASES_H

#include "print.h"

/* One folder of data. */
typedef struct case_set { char *path; uint32_t inputs; } case_set;                /* input_0 … input_{inputs-1} */
typedef struct case_model { char *path, *model; case_set *set; uint32_t count; } case_model;
typedef struct case_list { case_model *at; uint32_t count; } case_list;

/* Every model folder at or under `folder`, in the order of their names (numbers in names count as numbers). */
bool case_list_add(case_list *list, const char *folder);      /* false: no such folder; reported */
void case_list_free(case_list *list);

/* "input_3.npy" or ".pb" in a folder; NULL where there is neither. The caller frees it. */
char *case_file(const char *folder, const char *kind, uint32_t index);

#endif
