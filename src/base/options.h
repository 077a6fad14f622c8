/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the tables of options (sinter/option.h) as rows: reading, printing and checking values. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/text.h"
#include "sinter/quantize.h"
#include "sinter/run.h"
#include "sinter/simplify.h"

/* A table; its last row has no name. */
extern const sinter_option build_option_rows[], engine_option_rows[], context_option_rows[], simplify_option_rows[],
    calibrate_option_rows[], quantize_option_rows[];

/* INVALID_ARG names the first option of the struct `options` whose value is none of its kind. */
sinter_status options_check(env *e, const sinter_option *rows, const void *options);

/* " field=value" for each of the fields named in `fields`, a list that ends with NULL. */
void options_print(text *t, const sinter_option *rows, const void *options, const char *const *fields);

/* A device as it is named: "cpu", "reference", "cuda", "cuda:1", "cuda:sm_90a". */
typedef struct device_words {
    const char *backend;        /* "cpu", "cuda" */
    const char *which;          /* "1", "sm_90a"; NULL: not said */
    bool        is_reference;   /* the CPU, and the reference kernels alone */
} device_words;
/* NULL is the CPU. False: `text` names none. */
bool device_words_read(const char *text, device_words *out);

#endif
