/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - see fields.h. */
#include "cuda/fields.h"

#include <string.h>

static uint32_t value_of(const tactic_field *f, const tactic *t)
{
    uint16_t two;
    uint32_t four;
    if (f->size == sizeof two) return memcpy(&two, t->at + f->at, sizeof two), two;
    if (f->size == sizeof four) return memcpy(&four, t->at + f->at, sizeof four), four;
    return t->at[f->at];
}

bool fields_hold(const tactic_field *field, size_t count, const tactic *t)
{
    tactic rest = *t;
    const tactic none = { 0 };
    for (size_t i = 0; i < count; i++) {
        const uint32_t n = value_of(&field[i], t);
        if (n < field[i].least || n > field[i].most || (field[i].is_power && !is_power(n, n))) return false;
        memset(rest.at + field[i].at, 0, field[i].size);
    }
    return !memcmp(&rest, &none, sizeof none);
}

void fields_print(const tactic_field *field, size_t count, const tactic *t, text *out)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t n = value_of(&field[i], t);
        if (!field[i].text || (!field[i].times && !n)) continue;
        text_append(out, field[i].text, strlen(field[i].text));
        if (field[i].times) text_printf(out, "%u", n * field[i].times);
    }
}

void fields_vary(const tactic *t, size_t at, uint8_t most, tactic_sink *out)
{
    tactic own = *t;
    for (uint8_t i = 1; i <= most; i++) {
        own.at[at] = i;
        tactic_put(out, &own);
    }
}
