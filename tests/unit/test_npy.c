/* SPDX-License-Identifier: Apache-2.0 */
/* test_npy.c - .npy headers: what NumPy writes is read, what it never writes is refused; files survive a round trip. */
#include "api/npy.h"
#include "sinter/file.h"
#include "test.h"

/* A file of version `major` with this dict and `size` bytes of elements, each 1. */
static size_t make(uint8_t *out, int major, const char *dict, size_t size)
{
    const size_t length = strlen(dict), prefix = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)major;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++) out[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(out + prefix, dict, length);
    memset(out + prefix + length, 1, size);
    return prefix + length + size;
}

static sinter_status read_dict(int major, const char *dict, size_t size, npy_header *out, sinter_error *error)
{
    uint8_t file[1024];
    env e;
    env_init(&e, NULL, error);
    return npy_header_read(&e, file, make(file, major, dict, size), out);
}

static void versions(void)
{
    for (int major = 1; major <= 3; major++) {
        npy_header h;
        CHECK_EQ(read_dict(major, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, &h, NULL),
                 SINTER_OK);
        CHECK_EQ(h.tensor.dtype, SINTER_DTYPE_F32);
        CHECK_EQ(h.tensor.rank, 2);
        CHECK_EQ(h.tensor.dim[0], 2);
        CHECK_EQ(h.tensor.dim[1], 3);
    }
    npy_header h;
    CHECK_EQ(read_dict(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, &h, NULL), SINTER_UNSUPPORTED);
}

typedef struct dict_case {
    const char *dict;
    size_t size;
    sinter_status status;
} dict_case;

static void dicts(void)
{
    static const dict_case cases[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, SINTER_OK },
        { "{\"shape\":(5,),\"fortran_order\":True,\"descr\":\"|u1\"}", 5, SINTER_OK },
        { "{'descr': '|b1', 'fortran_order': False, 'shape': (3L,)}", 3, SINTER_OK },
        { "{'descr': '>i1', 'fortran_order': False, 'shape': (3,)}", 3, SINTER_OK },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7)}", 0, SINTER_OK },
        { "{'descr': '<i8', 'fortran_order': True, 'shape': (1, 2, 1)}", 16, SINTER_OK },
        { "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 2)}", 32, SINTER_UNSUPPORTED },
        { "{'descr': '>i8', 'fortran_order': False, 'shape': (2,)}", 16, SINTER_UNSUPPORTED },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", 16, SINTER_UNSUPPORTED },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 16, SINTER_UNSUPPORTED },
        { "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,)}", 8, SINTER_UNSUPPORTED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4,
          SINTER_UNSUPPORTED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", 16, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False}", 8, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': ()}", 4, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 4, SINTER_INVALID_MODEL },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}", 4, SINTER_INVALID_MODEL },
        { "", 4, SINTER_INVALID_MODEL },
        { "{", 0, SINTER_INVALID_MODEL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        npy_header h;
        sinter_error error = { 0 };
        const sinter_status s = read_dict(1, cases[i].dict, cases[i].size, &h, &error);
        if (!CHECK_EQ(s, cases[i].status)) (void)printf("  of %s: %s\n", cases[i].dict, error.text);
    }
}

static void short_files(void)
{
    uint8_t file[256];
    const size_t size = make(file, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
    for (size_t i = 0; i < size; i++) {
        env e;
        env_init(&e, NULL, NULL);
        npy_header h;
        uint8_t *copy = malloc(i ? i : 1);
        if (!copy) return;
        memcpy(copy, file, i);
        CHECK_EQ(npy_header_read(&e, copy, i, &h), SINTER_INVALID_MODEL);
        free(copy);
    }
}

static void round_trips(void)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F64, SINTER_DTYPE_F16, SINTER_DTYPE_I8,
                                          SINTER_DTYPE_I16, SINTER_DTYPE_I32, SINTER_DTYPE_I64, SINTER_DTYPE_U8,
                                          SINTER_DTYPE_U16, SINTER_DTYPE_U32, SINTER_DTYPE_U64, SINTER_DTYPE_BOOL };
    const char *path = "test_npy.npy";
    for (size_t k = 0; k < COUNT_OF(types); k++) {
        uint64_t bytes[6], seed = k;
        for (int i = 0; i < 6; i++) bytes[i] = types[k] == SINTER_DTYPE_BOOL ? 0x0100010100010001u : test_random(&seed);
        const sinter_tensor t = { .dtype = types[k], .rank = 3, .dim = { 2, 1, 3 }, .data = bytes };
        sinter_error error = { 0 };
        CHECK_EQ(sinter_tensor_write(path, &t, &error), SINTER_OK);
        sinter_tensor back;
        sinter_buffer memory = { 0 };
        if (!CHECK_EQ(sinter_tensor_read(path, NULL, &back, &memory, &error), SINTER_OK)) continue;
        CHECK_EQ(back.dtype, t.dtype);
        CHECK_EQ(back.rank, 3);
        CHECK(memcmp(back.dim, t.dim, 3 * sizeof *t.dim) == 0);
        CHECK(memcmp(back.data, bytes, sinter_tensor_size(&t)) == 0);
        CHECK_EQ((uintptr_t)back.data % 64, 0);
        sinter_buffer_free(&memory);
    }
    (void)remove(path);
}

/* Types that NumPy has no name for are written as values of a wider one. */
static void wider_types(void)
{
    const char *path = "test_npy_wide.npy";
    const uint16_t bf16[2] = { 0x3FC0, 0xC000 };
    const uint8_t i4[1] = { 0x8F };
    const sinter_tensor a = { .dtype = SINTER_DTYPE_BF16, .rank = 1, .dim = { 2 }, .data = (void *)(uintptr_t)bf16 };
    const sinter_tensor b = { .dtype = SINTER_DTYPE_I4, .rank = 1, .dim = { 2 }, .data = (void *)(uintptr_t)i4 };
    const sinter_tensor *const given[2] = { &a, &b };
    const double want[2][2] = { { 1.5, -2 }, { -1, -8 } };
    for (int k = 0; k < 2; k++) {
        sinter_tensor back;
        sinter_buffer memory = { 0 };
        CHECK_EQ(sinter_tensor_write(path, given[k], NULL), SINTER_OK);
        if (!CHECK_EQ(sinter_tensor_read(path, NULL, &back, &memory, NULL), SINTER_OK)) continue;
        CHECK_EQ(back.dtype, k ? SINTER_DTYPE_I8 : SINTER_DTYPE_F32);
        for (int i = 0; i < 2; i++) CHECK_EQ_F(sinter_tensor_value(&back, i), want[k][i]);
        sinter_buffer_free(&memory);
    }
    (void)remove(path);
}

static void errors(void)
{
    sinter_tensor t;
    sinter_buffer memory = { 0 };
    sinter_error error = { 0 };
    CHECK_EQ(sinter_tensor_read("no/such/file.npy", NULL, &t, &memory, &error), SINTER_IO);
    CHECK_HAS(error.text, "no/such/file.npy");
    CHECK_EQ(sinter_tensor_read(NULL, NULL, &t, &memory, &error), SINTER_INVALID_ARG);
    const sinter_tensor bad = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 3 } };
    CHECK_EQ(sinter_tensor_write("never.npy", &bad, &error), SINTER_INVALID_ARG);
}

static const test tests[] = { T(versions), T(dicts), T(short_files), T(round_trips), T(wider_types), T(errors), { 0 } };
TEST_MAIN(tests)
