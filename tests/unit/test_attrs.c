/* SPDX-License-Identifier: Apache-2.0 */
/* test_attrs.c - attributes of every op: defaults, text both ways, equality, hash, deep copies. */
#include "ops/ops.h"
#include "test.h"

typedef struct fixture {
    env e;
    arena a;
    dim_table *dims;
} fixture;

static void setup(fixture *f)
{
    env_init(&f->e, NULL, NULL);
    arena_init(&f->a, &f->e);
    f->dims = dim_table_create(&f->a);
}

static const char *print(fixture *f, op_id op, const void *attrs, const dim_table *dims)
{
    text t;
    text_init(&t, &f->e);
    op_attrs_print(op, attrs, dims, &t);
    const char *own = arena_text(&f->a, t.at, t.length);
    text_deinit(&t);
    return own;
}

static void *parse(fixture *f, op_id op, const char *s, dim_table *dims, const char **rest)
{
    void *attrs = op_attrs_new(&f->a, op);
    scan at = scan_of(s, strlen(s));
    const char *why = NULL;
    const bool is_fine = op_attrs_parse(op, attrs, &f->a, dims, &at, &why);
    *rest = is_fine ? at.at : why;
    return is_fine ? attrs : NULL;
}

static void text_round_trips(void)
{
    static const struct {
        op_id op;
        const char *s;
        bool is_symbolic;
    } form[] = {
        { OP_conv, " stride=[1,2] pad=[0,1,-1,0] groups=4", false },
        { OP_einsum, " equation=\"ij,jk->ik\"", false },
        { OP_reshape, " shape=[N,2*S]", true },
        { OP_reshape, " shape=[3,-4]", false },
        { OP_reshape, " shape=?[3]", false },
        { OP_resize, " mode=linear scale=[2,0.5] cubic_a=-0.5", false },
        { OP_reduce, " kind=log_sum_exp axes=[1] keep=0", false },
        { OP_cast, " type=f16", false },
        { OP_quantize, " type=i8", false },
        { OP_softmax, " axis=1", false },
        { OP_lstm, " direction=bidirectional activations=\"Tanh\" alpha=[0.25] input_forget=1", false },
    };
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        fixture f;
        setup(&f);
        dim_table *dims = form[i].is_symbolic ? f.dims : NULL;
        const char *rest;
        const void *attrs = parse(&f, form[i].op, form[i].s, dims, &rest);
        if (CHECK(attrs != NULL)) {
            CHECK_STR(rest, "");
            CHECK_STR(print(&f, form[i].op, attrs, dims), form[i].s);
            const void *again = parse(&f, form[i].op, form[i].s, dims, &rest);
            const void *copy = op_attrs_copy(&f.a, form[i].op, attrs);
            CHECK(op_attrs_equal(form[i].op, attrs, again) && op_attrs_equal(form[i].op, attrs, copy));
            CHECK(op_attrs_hash(form[i].op, attrs, 7) == op_attrs_hash(form[i].op, copy, 7));
            CHECK(!op_attrs_equal(form[i].op, attrs, NULL) &&
                  op_attrs_hash(form[i].op, attrs, 7) != op_attrs_hash(form[i].op, NULL, 7));
        }
        arena_deinit(&f.a);
    }
}

static void reading_stops_and_refuses(void)
{
    fixture f;
    setup(&f);
    const char *rest;
    CHECK(parse(&f, OP_conv, " groups=2 epi=\"x\"", NULL, &rest) != NULL);
    CHECK_STR(rest, " epi=\"x\"");
    CHECK(parse(&f, OP_conv, " groups=x", NULL, &rest) == NULL);
    CHECK_HAS(rest, "attribute 'groups' of op 'conv' wants an integer");
    CHECK(parse(&f, OP_conv, " stride=[1,", NULL, &rest) == NULL);
    CHECK(parse(&f, OP_reduce, " kind=some", NULL, &rest) == NULL);
    CHECK(parse(&f, OP_cast, " type=f3", NULL, &rest) == NULL);
    CHECK(parse(&f, OP_reshape, " shape=[N,", f.dims, &rest) == NULL);
    CHECK(parse(&f, OP_conv, " stride=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", NULL,
                &rest) == NULL);
    arena_deinit(&f.a);
}

static void rows_are_whole(void)
{
    fixture f;
    setup(&f);
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        const op_info *row = op_at((op_id)op);
        op_id found;
        CHECK(row->name && row->infer && row->reference && row->attr && row->in_min <= row->in_max);
        CHECK(op_parse(row->name, strlen(row->name), &found) && found == (op_id)op);
        const void *attrs = op_attrs_new(&f.a, (op_id)op);
        CHECK(attrs && op_attrs_equal((op_id)op, attrs, NULL));
        CHECK_STR(print(&f, (op_id)op, attrs, NULL), "");
        CHECK(op_is_scalar((op_id)op) == ((row->traits & ELEMENTWISE) != 0));
    }
    op_id op;
    CHECK(!op_parse("nothing", 7, &op));
    CHECK_EQ(op_at(OP_add)->attrs_size, 0);
    CHECK_EQ(((const attrs_conv *)op_attrs_new(&f.a, OP_conv))->groups, 1);
    CHECK_STR(((const attrs_einsum *)op_attrs_new(&f.a, OP_einsum))->equation, "");
    arena_deinit(&f.a);
}

static const test tests[] = { T(text_round_trips), T(reading_stops_and_refuses), T(rows_are_whole), { 0 } };
TEST_MAIN(tests)
