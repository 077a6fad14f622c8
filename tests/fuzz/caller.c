/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c - see caller.h. */
#include "caller.h"

#include "guarded.h"
#include "test.h"

bool caller_expect(caller *x, bool is_true, const char *what, const char *name)
{
    if (is_true) return true;
    x->count->failed++;
    printf("%s: '%s'\n", what, name);
    return false;
}

void *caller_take(caller *x, size_t size, sinter_place place)
{
    void *at = NULL;
    if (place == SINTER_PLACE_HOST) return guarded_take(size, test_below(&x->random, 3) == 0);
    return sinter_engine_alloc(x->g, place, size, &at, NULL) == SINTER_OK ? at : NULL;
}

void caller_give(caller *x, void *at, size_t size, sinter_place place)
{
    if (place == SINTER_PLACE_HOST) guarded_give(at);
    else sinter_engine_free(x->g, place, at, size);
}

sinter_place caller_any_place(caller *x)
{
    return x->has_places && test_below(&x->random, 2) ? SINTER_PLACE_DEVICE : SINTER_PLACE_HOST;
}

void caller_copy(caller *x, void *to, sinter_place to_place, const void *from, sinter_place from_place, size_t size)
{
    const bool ok = sinter_engine_copy(x->g, to, to_place, from, from_place, size, NULL) == SINTER_OK;
    caller_expect(x, ok, "no copy", "");
}

uint8_t *caller_read(caller *x, const sinter_tensor *t)
{
    const size_t size = sinter_tensor_size(t);
    uint8_t *bytes_at = malloc(size + 1);
    if (!bytes_at) abort();
    caller_copy(x, bytes_at, SINTER_PLACE_HOST, t->data, t->place, size);
    return bytes_at;
}
