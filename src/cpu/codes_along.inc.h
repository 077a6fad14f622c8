/* SPDX-License-Identifier: Apache-2.0 */
/* codes_along.inc.h - scales and zero points of a vector of columns, for the loops over weights in codes. */
static inline vec scale_at(const void *scale, sinter_dtype type, int64_t at)
{
    if (type == SINTER_DTYPE_F32) return v_load((const float *)scale + at);
    if (type == SINTER_DTYPE_F16) return v_load_f16((const uint16_t *)scale + at);
    return v_of_bits(vi_sll(vi_load_u16((const uint16_t *)scale + at), 16));
}

static inline veci zero_at(const codes_tile *t, int64_t at, const code_kind kind)
{
    if (!t->zero) return vi_set(t->zero_point);
    return kind == CODE_S8 ? vi_load_i8((const int8_t *)t->zero + at) : vi_load_u8(t->zero + at);
}
