/* SPDX-License-Identifier: Apache-2.0 */
/* op_rows.c - onnx.def as a table. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

/* clang-format off */
#define ROW(domain, op, ...) { domain, #op, __VA_ARGS__ }
#define N(op, from, to, convert, arg) ROW("", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define NL(op, from, to, convert, arg) ROW("", op, from, to, convert_##convert, arg, true, TEXT_NO),
#define NT(op, from, to, convert, arg) ROW("", op, from, to, convert_##convert, arg, false, TEXT_YES),
#define NA(op, from, to, convert, arg) ROW("", op, from, to, convert_##convert, arg, true, TEXT_YES),
#define NM(op, from, to, convert, arg) ROW("", op, from, to, convert_##convert, arg, false, TEXT_MOVED),
#define ML(op, from, to, convert, arg) ROW("ai.onnx.ml", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define MM(op, from, to, convert, arg) ROW("ai.onnx.ml", op, from, to, convert_##convert, arg, false, TEXT_MOVED),
#define MK(op, from, to, convert, arg) ROW("ai.onnx.ml", op, from, to, convert_##convert, arg, true, TEXT_NO),
#define MT(op, from, to, convert, arg) ROW("ai.onnx.ml", op, from, to, convert_##convert, arg, false, TEXT_YES),
#define MS(op, from, to, convert, arg) ROW("com.microsoft", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define MX(op, from, to, convert, arg) ROW("com.microsoft", op, from, to, convert_##convert, arg, false, TEXT_YES),
#define PV(op, from, to, convert, arg) ROW("ai.onnx.preview", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define PT(op, from, to, convert, arg) \
    ROW("ai.onnx.preview.training", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define QN(op, from, to, convert, arg) \
    ROW("qonnx.custom_op.general", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define TR(op, from, to, convert, arg) ROW("trt", op, from, to, convert_##convert, arg, false, TEXT_NO),
#define TP(op, from, to, convert, arg) ROW(ONNX_TENSORRT, op, from, to, convert_##convert, arg, false, TEXT_NO),
static const op_row rows[] = {
#include "onnx/onnx.def"
};
#undef ROW
#undef N
#undef NL
#undef NT
#undef NA
#undef NM
#undef ML
#undef MM
#undef MK
#undef MT
#undef MS
#undef MX
#undef PV
#undef PT
#undef QN
#undef TR
#undef TP
/* clang-format on */

const op_row *op_rows(uint32_t *count)
{
    *count = COUNT_OF(rows);
    return rows;
}

bool onnx_op_at(uint32_t i, onnx_op_row *out)
{
    if (i >= COUNT_OF(rows)) return false;
    *out = (onnx_op_row){ rows[i].domain, rows[i].name, rows[i].since, rows[i].until };
    return true;
}
