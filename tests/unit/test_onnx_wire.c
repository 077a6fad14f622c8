/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_wire.c - the protobuf reader on good and on damaged bytes, and tensors in each of their encodings. */
#include "onnx/model.h"
#include "onnx/wire.h"
#include "onnx_bytes.h"
#include "test.h"

static void reads_fields(void)
{
    bytes b = { 0 };
    bytes_int(&b, 1, 300);
    bytes_text(&b, 2, "abc");
    bytes_add(&b, "\x1d\x01\x02\x03\x04", 5);
    bytes_int(&b, 4, -1);
    wire w = wire_of(b.at, b.size);
    wire_field f;
    CHECK(wire_next(&w, &f) && f.number == 1 && f.value == 300);
    CHECK(wire_next(&w, &f) && f.number == 2 && f.size == 3 && memcmp(f.at, "abc", 3) == 0);
    CHECK(wire_next(&w, &f) && f.number == 3 && f.type == WIRE_32 && f.value == 0x04030201);
    CHECK(wire_next(&w, &f) && (int64_t)f.value == -1);
    CHECK(!wire_next(&w, &f) && !w.is_bad);
    for (size_t cut = 1; cut < b.size; cut++) { /* no cut reads past the end */
        w = wire_of(b.at, cut);
        while (wire_next(&w, &f)) CHECK(!f.at || f.at + f.size <= b.at + cut);
    }
    free(b.at);
}

static void refuses_damage(void)
{
    static const struct {
        const char *at;
        size_t size;
    } bad[] = {
        { "\x0b", 1 },                                              /* a group */
        { "\x0c", 1 },                                              /* the end of one */
        { "\x0f\x01", 2 },                                          /* type 7 */
        { "\x00\x01", 2 },                                          /* field 0 */
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11 },     /* 65 bits */
        { "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12 }, /* eleven bytes */
        { "\x0a\xff\xff\xff\xff\x0f", 6 },                          /* a length past the end */
        { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
        { "\x09\x01\x02", 3 },
        { "\x0d\x01", 2 },
        { "\x08", 1 },
        { "\x0a", 1 },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        wire w = wire_of((const uint8_t *)bad[i].at, bad[i].size);
        wire_field f;
        while (wire_next(&w, &f)) continue;
        CHECK(w.is_bad);
    }
}

static void reads_lists(void)
{
    bytes b = { 0 };
    bytes_data(&b, 1, "\x01\xac\x02\x03", 4);
    bytes_int(&b, 1, 7);
    wire w = wire_of(b.at, b.size);
    wire_field f;
    wire_list l;
    uint64_t v = 0, sum = 0;
    while (wire_next(&w, &f)) {
        CHECK(wire_list_of(&f, WIRE_VARINT, &l));
        sum += 1000 * wire_list_count(&l);
        while (wire_list_next(&l, &v)) sum += v;
    }
    CHECK_EQ(sum, 4000 + 1 + 300 + 3 + 7);
    free(b.at);
}

static sinter_status read_tensor(const bytes *b, view *v, arena *a, env *e)
{
    return onnx_tensor_read(e, a, b->at, b->size, v);
}

static void reads_tensors(void)
{
    env e;
    arena a;
    view v;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    const float f[2] = { 1.5f, -2 };
    bytes b = onnx_tensor_bytes("t", 1, (int64_t[]){ 2 }, 1, f, sizeof f);
    CHECK_EQ(read_tensor(&b, &v, &a, &e), SINTER_OK);
    CHECK(v.dtype == SINTER_DTYPE_F32 && v.rank == 1 && v.dim[0] == 2 && memcmp(v.data, f, sizeof f) == 0);
    free(b.at);

    b = onnx_tensor_bytes("t", 10, (int64_t[]){ 2 }, 1, NULL, 0); /* f16 in int32_data, one packed, one not */
    bytes_data(&b, 5, "\x80\x78", 2);
    bytes_int(&b, 5, 0x4000);
    CHECK_EQ(read_tensor(&b, &v, &a, &e), SINTER_OK);
    CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_F16, v.data, 0), 1);
    CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_F16, v.data, 1), 2);
    free(b.at);

    b = onnx_tensor_bytes("t", 22, (int64_t[]){ 3 }, 1, NULL, 0); /* i4, two a byte */
    bytes_int(&b, 5, 0x21);
    bytes_int(&b, 5, 0x0f);
    CHECK_EQ(read_tensor(&b, &v, &a, &e), SINTER_OK);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I4, v.data, 1), 2);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I4, v.data, 2), -1);
    free(b.at);

    b = onnx_tensor_bytes("t", 8, (int64_t[]){ 2 }, 1, NULL, 0); /* text: bytes, filled up with zeros */
    bytes_text(&b, 6, "ab");
    bytes_text(&b, 6, "c");
    CHECK_EQ(read_tensor(&b, &v, &a, &e), SINTER_OK);
    CHECK(v.dtype == SINTER_DTYPE_U8 && v.rank == 2 && v.dim[0] == 2 && v.dim[1] == 2);
    CHECK(memcmp(v.data, "abc\0", 4) == 0);
    free(b.at);

    b = onnx_tensor_bytes("t", 7, NULL, 0, NULL, 0); /* a scalar */
    bytes_int(&b, 7, -5);
    CHECK_EQ(read_tensor(&b, &v, &a, &e), SINTER_OK);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I64, v.data, 0), -5);
    free(b.at);
    arena_deinit(&a);
}

static void refuses_tensors(void)
{
    static const struct {
        int64_t type, dim[3];
        uint32_t rank;
        size_t size;
        sinter_status want;
    } bad[] = {
        { 1, { 3 }, 1, 8, SINTER_INVALID_MODEL },
        { 1, { -1 }, 1, 4, SINTER_INVALID_MODEL },
        { 1, { INT64_MAX, INT64_MAX }, 2, 4, SINTER_INVALID_MODEL },
        { 1, { INT64_C(1) << 32, INT64_C(1) << 32 }, 2, 0, SINTER_INVALID_MODEL },
        { 1, { INT64_C(1) << 61 }, 1, 4, SINTER_INVALID_MODEL },
        { 8, { 1 }, 1, 1, SINTER_INVALID_MODEL }, /* text is in a field of its own */
        { 8, { INT64_C(1) << 61 }, 1, 0, SINTER_INVALID_MODEL },
        { 14, { 1 }, 1, 1, SINTER_UNSUPPORTED },
        { 99, { 1 }, 1, 1, SINTER_UNSUPPORTED },
    };
    env e;
    arena a;
    view v;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bytes b = onnx_tensor_bytes("t", bad[i].type, bad[i].dim, bad[i].rank, "12345678", bad[i].size);
        CHECK_EQ(read_tensor(&b, &v, &a, &e), bad[i].want);
        free(b.at);
        b = onnx_tensor_bytes("t", bad[i].type, bad[i].dim, bad[i].rank, NULL, 0); /* and nothing allocated for it */
        CHECK(read_tensor(&b, &v, &a, &e) != SINTER_OK);
        free(b.at);
    }
    CHECK(a.total < 1 << 20);
    arena_deinit(&a);
}

static const test tests[] = { T(reads_fields),  T(refuses_damage),  T(reads_lists),
                              T(reads_tensors), T(refuses_tensors), { 0 } };
TEST_MAIN(tests)
