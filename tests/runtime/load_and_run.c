/* SPDX-License-Identifier: Apache-2.0 */
/* load_and_run.c - an application that ships with engines: linked to the runtime library alone, it loads one and runs
 * it on zeros. */
#include "sinter/engine.h"
#include "sinter/run.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    sinter_error error = { 0 };
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    sinter_tensor t[16];
    uint32_t inputs = 0;
    if (argc != 2) return 2;
    sinter_status s = sinter_engine_load(argv[1], NULL, &engine, &error);
    if (s == SINTER_OK) s = sinter_context_create(engine, NULL, &context, &error);
    for (uint32_t i = 0; s == SINTER_OK && i < sinter_engine_io_count(engine) && inputs < 16; i++) {
        sinter_io io;
        s = sinter_engine_io(engine, i, 0, &io);
        if (s != SINTER_OK || !io.is_input) break;
        sinter_tensor *x = &t[inputs++];
        *x = (sinter_tensor){ .dtype = io.dtype, .rank = io.rank };
        for (uint32_t k = 0; k < io.rank; k++) x->dim[k] = io.opt[k];
        x->data = calloc(1, sinter_tensor_size(x));
        s = sinter_context_set_input(context, io.name, x, &error);
    }
    if (s == SINTER_OK) s = sinter_context_run(context, &error);
    for (uint32_t i = inputs; s == SINTER_OK && i < sinter_engine_io_count(engine); i++) {
        sinter_io io;
        sinter_tensor y;
        s = sinter_engine_io(engine, i, 0, &io);
        if (s == SINTER_OK) s = sinter_context_output(context, io.name, &y, &error);
        if (s == SINTER_OK)
            (void)printf("%s: %zu bytes of %s\n", io.name, sinter_tensor_size(&y), sinter_dtype_name(y.dtype));
    }
    if (s != SINTER_OK) (void)fprintf(stderr, "%s\n", error.text);
    for (uint32_t i = 0; i < inputs; i++) free(t[i].data);
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    return s == SINTER_OK ? 0 : 1;
}
