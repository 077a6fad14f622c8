/* SPDX-License-Identifier: Apache-2.0 */
/* graph_dump.c - a judged model as ONNX, with inputs and results of each environment. */
#include "graph_dump.h"

static FILE *opened(const char *folder, const char *name, const char *end)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    return fopen(path, "wb");
}

static void tensors(const gmodel *m, const uint32_t *list, uint32_t count, uint32_t k, FILE *json, FILE *bin)
{
    for (uint32_t i = 0; i < count; i++) {
        const gvalue *v = &m->value.at[list[i]];
        const gtensor *t = v->at[k][0];
        (void)fprintf(json, "%s{\"name\":\"%s\",\"type\":\"%s\",\"doubtful\":%d,\"at\":%ld,\"size\":%zu,\"dims\":[",
                      i ? "," : "", v->name, sinter_dtype_name(t->dtype), judge_is_doubtful(m, v, k), ftell(bin),
                      t->size);
        for (uint32_t d = 0; d < t->rank; d++) (void)fprintf(json, "%s%lld", d ? "," : "", (long long)t->dim[d]);
        (void)fprintf(json, "]}");
        if (t->size) (void)fwrite(t->data, 1, t->size, bin);
    }
}

bool gdump(const gmodel *m, const char *folder, const char *name)
{
    FILE *onnx = opened(folder, name, "onnx"), *json = opened(folder, name, "json"), *bin = opened(folder, name, "bin");
    if (onnx && json && bin) {
        const bytes model = gmodel_onnx(m);
        const gscope *s = &m->scope.at[0];
        (void)fwrite(model.at, 1, model.size, onnx);
        free(model.at);
        (void)fprintf(json, "[");
        for (uint32_t k = 0; k < m->envs; k++) {
            (void)fprintf(json, "%s{\"in\":[", k ? "," : "");
            tensors(m, s->param.at, s->param.count, k, json, bin);
            (void)fprintf(json, "],\"out\":[");
            tensors(m, s->result.at, s->result.count, k, json, bin);
            (void)fprintf(json, "]}\n");
        }
        (void)fprintf(json, "]\n");
    }
    const bool is_fine = onnx && json && bin;
    if (onnx) (void)fclose(onnx);
    if (json) (void)fclose(json);
    if (bin) (void)fclose(bin);
    return is_fine;
}
