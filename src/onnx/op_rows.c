/* SPDX-License-Identifier: Apache-2.0 */
/* op_rows.c - onnx.def as a table. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

/* clang-format off */
#define N(op, since, until, convert, arg) { "", #op, since, until, convert_##convert, arg, false, TEXT_NO },
#define NL(op, since, until, convert, arg) { "", #op, since, until, convert_##convert, arg, true, TEXT_NO },
#define NT(op, since, until, convert, arg) { "", #op, since, until, convert_##convert, arg, false, TEXT_YES },
#define NA(op, since, until, convert, arg) { "", #op, since, until, convert_##convert, arg, true, TEXT_YES },
#define NM(op, since, until, convert, arg) { "", #op, since, until, convert_##convert, arg, false, TEXT_MOVED },
#define ML(op, since, until, convert, arg) { "ai.onnx.ml", #op, since, until, convert_##convert, arg, false, TEXT_NO },
#define MS(op, since, until, convert, arg) { "com.microsoft", #op, since, until, convert_##convert, arg, false, TEXT_NO },
static const op_row rows[] = {
#include "onnx/onnx.def"
};
#undef N
#undef NL
#undef NT
#undef NA
#undef NM
#undef ML
#undef MS
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
