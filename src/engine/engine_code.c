/* SPDX-License-Identifier: Apache-2.0 */
/* engine_code.c - compiled kernels that ride along in an engine.
 *
 * Their records are checked like all others. Their bytes cannot be: they are machine code, and go to the device only
 * where the caller trusts the file. */
#include "base/hash.h"
#include "engine/engine.h"

#include <string.h>

enum { CODE_ALIGN = 16 };

sinter_status engine_writer_code(engine_writer *w, const uint8_t key[32], const void *bytes, size_t size)
{
    static const uint8_t padding[CODE_ALIGN];
    engine_code_header h = { .size = size, .sum = hash64(bytes, size, 0) };
    memcpy(h.key, key, sizeof h.key);
    engine_writer_append(w, SECTION_CODE, &h, sizeof h);
    engine_writer_append(w, SECTION_CODE, bytes, size);
    engine_writer_append(w, SECTION_CODE, padding, size_align(size, CODE_ALIGN) - size);
    return w->failed ? FAIL_MEMORY(w->e, "compiled kernels") : SINTER_OK;
}

typedef sinter_status (*visit_fn)(env *e, const engine *g, const engine_code_header *h, const uint8_t *bytes);

static sinter_status walk(env *e, const engine *g, visit_fn visit)
{
    uint64_t at = 0;
    for (uint32_t i = 0; at < g->binary_size; i++) {
        engine_code_header h;
        if (g->binary_size - at < sizeof h)
            return FAIL(e, INVALID_MODEL, "the header of compiled kernel %u passes the end of its section", i);
        memcpy(&h, g->binary + at, sizeof h);
        at += sizeof h;
        const uint64_t left = g->binary_size - at, padding = (CODE_ALIGN - h.size % CODE_ALIGN) % CODE_ALIGN;
        if (h.size > left || padding > left - h.size)
            return FAIL(e, INVALID_MODEL, "compiled kernel %u has %llu bytes, %llu are left in its section", i,
                        (unsigned long long)h.size, (unsigned long long)left);
        TRY(visit(e, g, &h, g->binary + at));
        at += h.size + padding;
    }
    return SINTER_OK;
}

static sinter_status check(env *e, const engine *g, const engine_code_header *h, const uint8_t *bytes)
{
    (void)g;
    return hash64(bytes, h->size, 0) == h->sum
               ? SINTER_OK
               : FAIL(e, INVALID_MODEL, "the checksum of a compiled kernel is wrong: the file is damaged");
}

static sinter_status import(env *e, const engine *g, const engine_code_header *h, const uint8_t *bytes)
{
    return g->backend->code_import(e, g->device, h->key, bytes, (size_t)h->size);
}

sinter_status engine_verify_code(env *e, const engine *g)
{
    return walk(e, g, check);
}

sinter_status engine_import_code(env *e, const engine *g)
{
    return g->backend->code_import ? walk(e, g, import) : SINTER_OK;
}
