/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - looking into small JSON files (tolerance.json, case.json) without building a tree. */
#ifndef CLI_JSON_TEXT_H
#define CLI_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* A value inside a text that ends with NUL. */
typedef struct json_value { const char *at; } json_value;

json_value json_value_of(const char *text);
/* False where the value is no object (array), has no such member (item), or is malformed before it. */
bool json_member(json_value object, const char *key, json_value *out);
bool json_item(json_value array, uint32_t index, json_value *out);
/* The item behind an item of an array. */
bool json_next(json_value item, json_value *out);
/* A string with its escapes resolved, as UTF-8; "" where the value is none. The caller frees it. */
char *json_copy_text(json_value v);
bool json_number(json_value v, double *out);
bool json_is_text(json_value v, const char *text);
/* Is the whole text one well-formed value? */
bool json_is_valid(const char *text);

#endif
