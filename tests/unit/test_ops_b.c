/* SPDX-License-Identifier: Apache-2.0 */
/* test_ops_b.c - shapes and references of the ops that move elements: small cases with results worked out by hand. */
#include "op_rig.h"

/* A case reads as one thought, on as few lines as it takes. */
/* clang-format off */
static void reshapes(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); run(x, OP_reshape, "shape=[3,2]");
        EXPECT(0, SHAPE(3, 2), L(0, 1, 2, 3, 4, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); run(x, OP_reshape, "shape=[4,2]"); CHECK_EQ(x->status, SINTER_INVALID_MODEL);
        CHECK_HAS(x->error.text, "6 elements");
    }
    TWICE {
        add(x, SINTER_DTYPE_I4, SHAPE(3), L(-1, 2, 7)); run(x, OP_reshape, "shape=[3,1]");
        EXPECT(0, SHAPE(3, 1), L(-1, 2, 7));
    }
    TWICE { add(x, F32, SHAPE(2), COUNTED); run(x, OP_copy, ""); EXPECT(0, SHAPE(2), L(0, 1)); }
}

static void transposes(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); run(x, OP_transpose, "perm=[1,0]");
        EXPECT(0, SHAPE(3, 2), L(0, 3, 1, 4, 2, 5));
    }
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(2, 1, 3), COUNTED); run(x, OP_transpose, "perm=[2,0,1]");
        EXPECT(0, SHAPE(3, 2, 1), L(0, 3, 1, 4, 2, 5));
    }
    TWICE {
        add(x, SINTER_DTYPE_U4, SHAPE(2, 3), COUNTED); run(x, OP_transpose, "perm=[1,0]");
        EXPECT(0, SHAPE(3, 2), L(0, 3, 1, 4, 2, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); run(x, OP_transpose, "perm=[1,1]"); CHECK_HAS(x->error.text, "axis 1 twice");
    }
    TWICE { add(x, F32, SHAPE(2, 3), COUNTED); run(x, OP_transpose, "perm=[1,2]"); CHECK_HAS(x->error.text, "is 2"); }
}

static void slices(void)
{
    TWICE {
        add(x, F32, SHAPE(3, 4), COUNTED); run(x, OP_slice, "start=[1,3] step=[1,-2] size=[2,2]");
        EXPECT(0, SHAPE(2, 2), L(7, 5, 11, 9));
    }
    TWICE {
        add(x, SINTER_DTYPE_U4, SHAPE(5), COUNTED); run(x, OP_slice, "start=[1] step=[2] size=[2]");
        EXPECT(0, SHAPE(2), L(1, 3));
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); run(x, OP_slice, "start=[2] step=[1] size=[0]"); EXPECT(0, SHAPE(0), NOTHING);
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); run(x, OP_slice, "start=[1] step=[1] size=[3]");
        CHECK_HAS(x->error.text, "takes 3 elements from 1");
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); run(x, OP_slice, "start=[1] step=[-1] size=[3]");
        CHECK_EQ(x->status, SINTER_INVALID_MODEL);
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); run(x, OP_slice, "start=[1] step=[9223372036854775807] size=[3]");
        CHECK_EQ(x->status, SINTER_INVALID_MODEL);
    }
}

static void expands(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 1), L(4, 5)); run(x, OP_expand, "shape=[2,2,3]");
        EXPECT(0, SHAPE(2, 2, 3), L(4, 4, 4, 5, 5, 5, 4, 4, 4, 5, 5, 5));
    }
    TWICE { add(x, F32, SCALAR, L(4)); run(x, OP_expand, "shape=[3]"); EXPECT(0, SHAPE(3), L(4, 4, 4)); }
    TWICE { add(x, F32, SHAPE(2), L(4, 5)); run(x, OP_expand, "shape=[3]"); CHECK_EQ(x->status, SINTER_INVALID_MODEL); }
}

static void concatenates(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 1), L(0, 1)); add(x, F32, SHAPE(2, 2), L(2, 3, 4, 5)); add(x, F32, SHAPE(2, 0), NOTHING);
        run(x, OP_concat, "axis=1"); EXPECT(0, SHAPE(2, 3), L(0, 2, 3, 1, 4, 5));
    }
    TWICE {
        add(x, SINTER_DTYPE_U4, SHAPE(3), L(1, 2, 3)); add(x, SINTER_DTYPE_U4, SHAPE(2), L(4, 5));
        run(x, OP_concat, "axis=0"); EXPECT(0, SHAPE(5), L(1, 2, 3, 4, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2, 1), L(0, 1)); add(x, F32, SHAPE(3, 1), COUNTED); run(x, OP_concat, "axis=1");
        CHECK_HAS(x->error.text, "input 1: axis 0 has 3, the inputs before it have 2");
    }
    TWICE {
        add(x, F32, SHAPE(1), L(0)); add(x, I64, SHAPE(1), L(0)); run(x, OP_concat, "axis=0");
        CHECK_HAS(x->error.text, "type i64");
    }
}

static void pads(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); add(x, F32, SCALAR, L(9)); run(x, OP_pad, "begin=[0,1] end=[1,0]");
        EXPECT(0, SHAPE(3, 3), L(9, 1, 2, 9, 3, 4, 9, 9, 9));
    }
    TWICE {
        add(x, F32, SHAPE(4), L(1, 2, 3, 4)); run(x, OP_pad, "begin=[-1] end=[2]");
        EXPECT(0, SHAPE(5), L(2, 3, 4, 0, 0));
    }
    TWICE { add(x, F32, SHAPE(2), L(1, 2)); run(x, OP_pad, "begin=[-5] end=[5]"); EXPECT(0, SHAPE(2), L(0, 0)); }
    TWICE {
        add(x, F32, SHAPE(3), L(1, 2, 3)); run(x, OP_pad, "mode=reflect begin=[5] end=[3]");
        EXPECT(0, SHAPE(11), L(2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2));
    }
    TWICE {
        add(x, F32, SHAPE(3), L(1, 2, 3)); run(x, OP_pad, "mode=wrap begin=[4] end=[2]");
        EXPECT(0, SHAPE(9), L(3, 1, 2, 3, 1, 2, 3, 1, 2));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_pad, "mode=edge begin=[1,0] end=[0,2]");
        EXPECT(0, SHAPE(3, 4), L(1, 2, 2, 2, 1, 2, 2, 2, 3, 4, 4, 4));
    }
    TWICE {
        add(x, F32, SHAPE(4), L(1, 2, 3, 4)); run(x, OP_pad, "mode=reflect begin=[-1] end=[2]");
        EXPECT(0, SHAPE(5), L(2, 3, 4, 3, 2));
    }
    TWICE {
        add(x, F32, SHAPE(1), L(7)); run(x, OP_pad, "mode=reflect begin=[1] end=[2]");
        EXPECT(0, SHAPE(4), L(7, 7, 7, 7));
    }
    TWICE {
        add(x, F32, SHAPE(0), NOTHING); run(x, OP_pad, "mode=edge begin=[1] end=[0]");
        CHECK_HAS(x->error.text, "nothing to fill");
    }
    TWICE {
        add(x, F32, SHAPE(2), NOTHING); run(x, OP_pad, "begin=[-2] end=[-1]");
        CHECK_EQ(x->status, SINTER_INVALID_MODEL);
    }
}

static void tiles(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_tile, "repeats=[2,3]");
        EXPECT(0, SHAPE(4, 6), L(1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4));
    }
    TWICE {
        add(x, F32, SHAPE(1, 2, 1, 2, 1, 2), L(0, 1, 2, 3, 4, 5, 6, 7)); run(x, OP_tile, "repeats=[1,1,2,1,1,2]");
        EXPECT(0, SHAPE(1, 2, 2, 2, 1, 4),
               L(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 4, 5, 4, 5, 6, 7, 6, 7));
    }
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(2, 1, 1, 1, 2), COUNTED);
        run(x, OP_tile, "repeats=[2,2,2,1,2]");
        list want = { .count = 64 };
        for (int i = 0; i < 64; i++) want.at[i] = (i / 16) % 2 * 2 + i % 2;
        EXPECT(0, SHAPE(4, 2, 2, 1, 4), want);
    }
    TWICE { add(x, F32, SHAPE(2), L(1, 2)); run(x, OP_tile, "repeats=[0]"); EXPECT(0, SHAPE(0), NOTHING); }
}

/* More axes that repeat than a view has: the outermost are looped over. */
static void tiles_at_full_rank(void)
{
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(1, 1, 2, 1, 2, 1, 2, 1), COUNTED);
        run(x, OP_tile, "repeats=[1,1,2,1,2,1,2,1]");
        list want = { .count = 64 };
        for (int i = 0; i < 64; i++) want.at[i] = (i / 16 % 2) * 4 + (i / 4 % 2) * 2 + i % 2;
        EXPECT(0, SHAPE(1, 1, 4, 1, 4, 1, 4, 1), want);
    }
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(2, 1, 2, 1, 2, 1, 1, 1), COUNTED);
        run(x, OP_tile, "repeats=[2,1,1,2,1,2,1,1]");
        list want = { .count = 64 };
        for (int i = 0; i < 64; i++) want.at[i] = (i / 16 % 2) * 4 + (i / 8 % 2) * 2 + (i / 2 % 2);
        EXPECT(0, SHAPE(4, 1, 2, 2, 2, 2, 1, 1), want);
    }
}

static void gathers(void)
{
    TWICE {
        add(x, F32, SHAPE(3, 2), COUNTED); add(x, I64, SHAPE(2), L(2, -3)); run(x, OP_gather, "axis=0");
        EXPECT(0, SHAPE(2, 2), L(4, 5, 0, 1));
    }
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); add(x, SINTER_DTYPE_I32, SHAPE(1, 2), L(2, 0)); run(x, OP_gather, "axis=1");
        EXPECT(0, SHAPE(2, 1, 2), L(2, 0, 5, 3));
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); add(x, I64, SCALAR, L(1)); run(x, OP_gather, "axis=0"); EXPECT(0, SCALAR, L(1));
        CHECK(!x->fault.is_set);
    }
    TWICE {
        add(x, F32, SHAPE(3), L(5, 6, 7)); add(x, I64, SHAPE(3), L(1, 3, -4)); run(x, OP_gather, "axis=0");
        EXPECT(0, SHAPE(3), L(6, 0, 0)); CHECK_EQ(x->fault.is_set, 1); CHECK_EQ(x->fault.index, 1);
        CHECK_EQ(x->fault.value, 3); CHECK_EQ(x->fault.limit, 3);
    }
    TWICE {
        add(x, F32, SHAPE(0, 2), NOTHING); add(x, I64, SHAPE(1), L(0)); run(x, OP_gather, "axis=0");
        EXPECT(0, SHAPE(1, 2), L(0, 0)); CHECK_EQ(x->fault.limit, 0);
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(2, 1), L(1, -2)); run(x, OP_gather_elements, "axis=1");
        EXPECT(0, SHAPE(2, 1), L(1, 2));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(1, 2), L(1, 9)); run(x, OP_gather_elements, "axis=0");
        EXPECT(0, SHAPE(1, 2), L(2, 0)); CHECK_EQ(x->fault.index, 1); CHECK_EQ(x->fault.value, 9);
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(2, 3), COUNTED); run(x, OP_gather_elements, "axis=0");
        CHECK_EQ(x->status, SINTER_INVALID_MODEL);
    }
}

static void gathers_tuples(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(2, 2), L(0, 0, 1, -1)); run(x, OP_gather_nd, "");
        EXPECT(0, SHAPE(2), L(0, 3));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(2, 1), L(1, 0)); run(x, OP_gather_nd, "");
        EXPECT(0, SHAPE(2, 2), L(2, 3, 0, 1));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2, 2), COUNTED); add(x, I64, SHAPE(2, 1), L(1, 0)); run(x, OP_gather_nd, "batch_dims=1");
        EXPECT(0, SHAPE(2, 2), L(2, 3, 4, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(4, 5, 6, 7)); add(x, I64, SHAPE(2, 2), L(0, 2, 1, 0)); run(x, OP_gather_nd, "");
        EXPECT(0, SHAPE(2), L(0, 6)); CHECK_EQ(x->fault.index, 1); CHECK_EQ(x->fault.value, 2);
    }
    TWICE {
        add(x, F32, SHAPE(2), COUNTED); add(x, I64, SHAPE(2, 2), L(0, 0, 1, 1)); run(x, OP_gather_nd, "");
        CHECK_HAS(x->error.text, "2 parts");
    }
}

static void scatters(void)
{
    TWICE {
        add(x, F32, SHAPE(3), L(1, 2, 3)); add(x, I64, SHAPE(2), L(-1, 0)); add(x, F32, SHAPE(2), L(7, 8));
        run(x, OP_scatter_elements, "axis=0"); EXPECT(0, SHAPE(3), L(8, 2, 7));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); add(x, I64, SHAPE(1, 2), L(1, 1)); add(x, F32, SHAPE(1, 2), L(7, 8));
        run(x, OP_scatter_elements, "axis=0 kind=add"); EXPECT(0, SHAPE(2, 2), L(1, 2, 10, 12));
    }
    TWICE {
        add(x, SINTER_DTYPE_I32, SHAPE(3), L(1, 2, 3)); add(x, I64, SHAPE(4), L(1, 1, 5, 2));
        add(x, SINTER_DTYPE_I32, SHAPE(4), L(3, 4, 9, -1)); run(x, OP_scatter_elements, "axis=0 kind=mul");
        EXPECT(0, SHAPE(3), L(1, 24, -3)); CHECK_EQ(x->fault.index, 2); CHECK_EQ(x->fault.value, 5);
    }
    TWICE {
        add(x, F32, SHAPE(3), L(1, 2, 3)); add(x, I64, SHAPE(2, 1), L(0, 0)); add(x, F32, SHAPE(2), L(-5, 4));
        run(x, OP_scatter_nd, "kind=max"); EXPECT(0, SHAPE(3), L(4, 2, 3));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); add(x, I64, SHAPE(1, 1), L(1)); add(x, F32, SHAPE(1, 2), L(8, 9));
        run(x, OP_scatter_nd, ""); EXPECT(0, SHAPE(2, 2), L(1, 2, 8, 9));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); add(x, I64, SHAPE(2, 2), L(0, -3, 1, 1));
        add(x, F32, SHAPE(2), L(8, 9)); run(x, OP_scatter_nd, "kind=min"); EXPECT(0, SHAPE(2, 2), L(1, 2, 3, 4));
        CHECK_EQ(x->fault.value, -3);
    }
}

static void updates_caches(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 3, 1), L(0, 0, 0, 0, 0, 0)); add(x, F32, SHAPE(2, 2, 1), L(1, 2, 3, 4));
        add(x, I64, SHAPE(2), L(1, 0)); run(x, OP_tensor_scatter, "axis=1");
        EXPECT(0, SHAPE(2, 3, 1), L(0, 1, 2, 3, 4, 0)); CHECK(!x->fault.is_set);
    }
    TWICE {
        add(x, F32, SHAPE(1, 3, 1), L(0, 0, 0)); add(x, F32, SHAPE(1, 2, 1), L(1, 2)); add(x, I64, SHAPE(1), L(5));
        run(x, OP_tensor_scatter, "axis=1 circular=1"); EXPECT(0, SHAPE(1, 3, 1), L(2, 0, 1));
    }
    TWICE {
        add(x, F32, SHAPE(1, 3, 1), L(0, 0, 0)); add(x, F32, SHAPE(1, 2, 1), L(1, 2)); add(x, I64, SHAPE(1), L(2));
        run(x, OP_tensor_scatter, "axis=1"); EXPECT(0, SHAPE(1, 3, 1), L(0, 0, 1)); CHECK_EQ(x->fault.is_set, 1);
    }
    TWICE {
        add(x, F32, SHAPE(1, 3, 1), L(0, 0, 0)); add(x, F32, SHAPE(1, 2, 1), L(1, 2));
        run(x, OP_tensor_scatter, "axis=1"); EXPECT(0, SHAPE(1, 3, 1), L(1, 2, 0));
    }
}

static void keeps_triangles(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 3), L(1, 2, 3, 4, 5, 6)); run(x, OP_trilu, "k=[1]");
        EXPECT(0, SHAPE(2, 3), L(0, 2, 3, 0, 0, 6));
    }
    TWICE {
        add(x, F32, SHAPE(2, 3), L(1, 2, 3, 4, 5, 6)); run(x, OP_trilu, "upper=0 k=[0]");
        EXPECT(0, SHAPE(2, 3), L(1, 0, 0, 4, 5, 0));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_trilu, "upper=0 k=[-9]");
        EXPECT(0, SHAPE(2, 2), L(0, 0, 0, 0));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_trilu, "upper=1 k=[-9]");
        EXPECT(0, SHAPE(2, 2), L(1, 2, 3, 4));
    }
}

static void makes_tensors(void)
{
    TWICE {
        add(x, I64, SHAPE(3), L(1, -1, 7)); add(x, F32, SHAPE(2), L(2, 5)); run(x, OP_one_hot, "axis=1 depth=[3]");
        EXPECT(0, SHAPE(3, 3), L(2, 5, 2, 2, 2, 5, 2, 2, 2)); CHECK(!x->fault.is_set);
    }
    TWICE {
        add(x, F32, SHAPE(2), L(1, 0)); add(x, I64, SHAPE(2), L(0, 1)); run(x, OP_one_hot, "axis=0 depth=[2]");
        EXPECT(0, SHAPE(2, 2), L(0, 1, 1, 0));
    }
    TWICE {
        add(x, I64, SCALAR, L(3)); add(x, I64, SCALAR, L(-2)); run(x, OP_range, "count=[3]");
        EXPECT(0, SHAPE(3), L(3, 1, -1));
    }
    TWICE {
        add(x, F32, SCALAR, L(0.5)); add(x, F32, SCALAR, L(0.25)); run(x, OP_range, "count=[2]");
        EXPECT(0, SHAPE(2), L(0.5, 0.75));
    }
    TWICE { run(x, OP_eye_like, "shape=[2,3] type=i32 k=1"); EXPECT(0, SHAPE(2, 3), L(0, 1, 0, 0, 0, 1)); }
    TWICE { run(x, OP_eye_like, "shape=[2,2] k=-9223372036854775808"); EXPECT(0, SHAPE(2, 2), L(0, 0, 0, 0)); }
    TWICE {
        run(x, OP_shape_value, "value=[4,-1]"); EXPECT(0, SHAPE(2), L(4, -1)); CHECK_EQ(x->out[0].shape_count, 2);
        CHECK(dim_is(x->t, x->out[0].shape_value[1], -1));
    }
    TWICE { run(x, OP_shape_value, "value=[4] scalar=1 type=i32"); EXPECT(0, SCALAR, L(4)); }
}

static void draws_random_numbers(void)
{
    double mean[2] = { 0 };
    TWICE {
        run(x, OP_random, "shape=[1000] seed=7 low=-1 high=3 type=f64");
        const view *v = &x->view_out[0];
        for (int64_t i = 0; i < 1000; i++) {
            const double value = view_load_f64(v, i * v->stride[0]);
            CHECK(value >= -1 && value < 3);
            mean[x->is_strided] += value / 1000;
        }
    }
    CHECK_NEAR(mean[0], 1, 0.15);
    CHECK_EQ_F(mean[0], mean[1]);
    TWICE {
        add(x, F32, SHAPE(40, 50), NOTHING);
        run(x, OP_random, "normal=1 low=5 high=2");
        const view *v = &x->view_out[0];
        double sum = 0, square = 0;
        for (int64_t i = 0; i < 2000; i++) {
            const double value = view_load_f64(v, i / 50 * v->stride[0] + i % 50 * v->stride[1]);
            sum += value / 2000;
            square += (value - 5) * (value - 5) / 2000;
        }
        CHECK_NEAR(sum, 5, 0.2);
        CHECK_NEAR(square, 4, 0.6);
    }
}

static void finds_what_is_not_zero(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 0, NAN, 3)); run(x, OP_non_zero, ""); EXPECT(0, SHAPE(2, 3), L(0, 1, 1, 0, 0, 1));
        CHECK_EQ(dim_range_of(x->t, x->out[0].dim[1]).max, 4); CHECK(dim_is_late(x->t, x->out[0].dim[1]));
    }
    TWICE { add(x, SINTER_DTYPE_BOOL, SHAPE(3), L(0, 0, 0)); run(x, OP_non_zero, ""); EXPECT(0, SHAPE(1, 0), NOTHING); }
    TWICE { add(x, F32, SCALAR, L(2)); run(x, OP_non_zero, ""); EXPECT(0, SHAPE(0, 1), NOTHING); }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); add(x, SINTER_DTYPE_BOOL, SHAPE(3), L(0, 1, 1));
        run(x, OP_compress, ""); EXPECT(0, SHAPE(2), L(2, 3));
    }
    TWICE {
        add(x, F32, SHAPE(2, 3), COUNTED); add(x, SINTER_DTYPE_BOOL, SHAPE(3), L(1, 0, 1));
        run(x, OP_compress, "axis=1"); EXPECT(0, SHAPE(2, 2), L(0, 2, 3, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2), L(8, 9)); add(x, SINTER_DTYPE_BOOL, SHAPE(4), L(0, 1, 1, 1));
        run(x, OP_compress, "axis=0"); EXPECT(0, SHAPE(1), L(9));
    }
}

static void finds_unique_elements(void)
{
    TWICE {
        x->count_out = 4; add(x, F32, SHAPE(6), L(2, 1, 1, 3, 4, 3)); run(x, OP_unique, "");
        EXPECT(0, SHAPE(4), L(1, 2, 3, 4)); EXPECT(1, SHAPE(4), L(1, 0, 3, 4));
        EXPECT(2, SHAPE(6), L(1, 0, 0, 2, 3, 2)); EXPECT(3, SHAPE(4), L(2, 1, 2, 1));
    }
    TWICE {
        x->count_out = 4; add(x, F32, SHAPE(2, 3), L(2, 1, 1, 3, 4, 3)); run(x, OP_unique, "sorted=0");
        EXPECT(0, SHAPE(4), L(2, 1, 3, 4)); EXPECT(1, SHAPE(4), L(0, 1, 3, 4));
        EXPECT(2, SHAPE(6), L(0, 1, 1, 2, 3, 2)); EXPECT(3, SHAPE(4), L(1, 2, 2, 1));
    }
    TWICE {
        x->count_out = 3; add(x, I64, SHAPE(3, 2), L(1, 0, 0, 5, 1, 0)); run(x, OP_unique, "axis=0");
        EXPECT(0, SHAPE(2, 2), L(0, 5, 1, 0)); EXPECT(1, SHAPE(2), L(1, 0)); EXPECT(2, SHAPE(3), L(1, 0, 1));
    }
    TWICE {
        add(x, I64, SHAPE(2, 3), L(3, 1, 3, 4, 2, 4)); run(x, OP_unique, "axis=1");
        EXPECT(0, SHAPE(2, 2), L(1, 3, 2, 4));
    }
    TWICE {
        x->count_out = 2; add(x, F32, SHAPE(0), NOTHING); run(x, OP_unique, ""); EXPECT(0, SHAPE(0), NOTHING);
        EXPECT(1, SHAPE(0), NOTHING);
    }
}

static void suppresses_boxes(void)
{
    const list boxes = L(0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101);
    TWICE {
        add(x, F32, SHAPE(1, 6, 4), boxes); add(x, F32, SHAPE(1, 1, 6), L(0.9, 0.75, 0.6, 0.95, 0.5, 0.3));
        add_const(x, I64, SHAPE(1), L(3)); add(x, F32, SHAPE(1), L(0.5)); add(x, F32, SHAPE(1), L(0));
        run(x, OP_nms, ""); EXPECT(0, SHAPE(3, 3), L(0, 0, 3, 0, 0, 0, 0, 0, 5));
        CHECK_EQ(dim_range_of(x->t, x->out[0].dim[0]).max, 3);
    }
    TWICE {
        add(x, F32, SHAPE(1, 6, 4), boxes); add(x, F32, SHAPE(1, 1, 6), L(0.9, 0.75, 0.6, 0.95, 0.5, 0.3));
        add(x, I64, SHAPE(1), L(9)); add(x, F32, SHAPE(1), L(0.5)); add(x, F32, SHAPE(1), L(0.4)); run(x, OP_nms, "");
        EXPECT(0, SHAPE(2, 3), L(0, 0, 3, 0, 0, 0));
    }
    TWICE {
        add(x, F32, SHAPE(1, 2, 4), L(0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1));
        add(x, F32, SHAPE(1, 2, 2), L(0.9, 0.9, 0.1, 0.2)); add(x, I64, SCALAR, L(2)); add(x, F32, SCALAR, L(0.5));
        run(x, OP_nms, "center_box=1"); EXPECT(0, SHAPE(2, 3), L(0, 0, 0, 0, 1, 1));
    }
    TWICE {
        add(x, F32, SHAPE(1, 6, 4), boxes); add(x, F32, SHAPE(1, 1, 6), COUNTED); run(x, OP_nms, "");
        EXPECT(0, SHAPE(0, 3), NOTHING);
    }
    TWICE {
        add(x, F32, SHAPE(1, 6, 3), COUNTED); add(x, F32, SHAPE(1, 1, 6), COUNTED); run(x, OP_nms, "");
        CHECK_EQ(x->status, SINTER_INVALID_MODEL);
    }
}

static void casts_bits(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, -2, 0.5, 0)); run(x, OP_bit_cast, "type=i32");
        EXPECT(0, SHAPE(2, 2), L(0x3f800000, -0x40000000, 0x3f000000, 0));
    }
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(3), L(1, 200, 255)); run(x, OP_bit_cast, "type=i8");
        EXPECT(0, SHAPE(3), L(1, -56, -1));
    }
    TWICE { add(x, F32, SHAPE(3), COUNTED); run(x, OP_bit_cast, "type=i64"); CHECK_HAS(x->error.text, "32 each"); }
}

static void reverses_sequences(void)
{
    TWICE {
        add(x, F32, SHAPE(3, 2), COUNTED); add(x, I64, SHAPE(2), L(3, 2));
        run(x, OP_reverse_sequence, "batch_axis=1 time_axis=0"); EXPECT(0, SHAPE(3, 2), L(4, 3, 2, 1, 0, 5));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), COUNTED); add(x, I64, SHAPE(2), L(5, 2));
        run(x, OP_reverse_sequence, "batch_axis=0 time_axis=1"); EXPECT(0, SHAPE(2, 2), L(0, 1, 3, 2));
        CHECK_EQ(x->fault.value, 5);
    }
}

/* clang-format on */

/* Runs bind on its own: its attributes mix late symbols, which a run does not know, with sizes. */
static void bind_to(rig *x, bind_kind kind, list asked, list dims, int64_t flag, uint32_t count)
{
    int64_t at[8] = { 0 }, symbols[8] = { 0 }, dim_ids[8] = { 0 };
    for (int i = 0; i < dims.count; i++) {
        at[i] = (int64_t)dims.at[i];
        dim_ids[i] = (int64_t)dim_const(x->t, at[i]);
    }
    for (uint32_t i = 0; i < count; i++) symbols[i] = (int64_t)dim_symbol_late(x->t, "s", DIM_NONE);
    add(x, I64, L((double)asked.count), asked);
    attrs_bind a = { .kind = kind, .flag = flag };
    a.symbols = (attr_dims){ .count = count, .at = symbols };
    a.dims = (attr_dims){ .count = (uint32_t)dims.count, .at = dim_ids };
    infer_ctx c = {
        .e = &x->e, .a = &x->a, .dims = x->t, .op = OP_bind, .attrs = &a, .count_in = 1, .in = x->in, .out = x->out
    };
    x->status = op_infer(&c);
    if (x->status) return;
    a.dims.at = at;
    ref_call r = { .e = &x->e,
                   .op = OP_bind,
                   .attrs = &a,
                   .count_in = 1,
                   .in = x->view_in,
                   .out = x->view_out,
                   .scratch = &x->scratch,
                   .fault = &x->fault,
                   .resize = give,
                   .user = x };
    x->status = op_reference(&r);
}

/* clang-format off */
static void binds_sizes(void)
{
    TWICE {
        bind_to(x, bind_kind_raw, L(4, -2), NOTHING, 0, 2); CHECK_EQ(x->status, 0); CHECK_EQ(x->bound[0], 4);
        CHECK_EQ(x->bound[1], -2);
    }
    TWICE {
        bind_to(x, bind_kind_reshape, L(0, -1), L(4, 3, 2), 0, 2); CHECK_EQ(x->bound[0], 4); CHECK_EQ(x->bound[1], 6);
    }
    TWICE { bind_to(x, bind_kind_reshape, L(5, -1), L(4, 3), 0, 2); CHECK_HAS(x->error.text, "12 elements"); }
    TWICE { bind_to(x, bind_kind_reshape, L(-1, -1), L(4, 3), 0, 2); CHECK_EQ(x->status, SINTER_INVALID_ARG); }
    TWICE {
        bind_to(x, bind_kind_reshape, L(0, 7), L(0, 3), 1, 2); CHECK_EQ(x->status, 0); CHECK_EQ(x->bound[0], 0);
        CHECK_EQ(x->bound[1], 7);
    }
    TWICE { bind_to(x, bind_kind_reshape, L(0, -1), L(4, 0), 1, 2); CHECK_EQ(x->status, SINTER_INVALID_ARG); }
    TWICE {
        bind_to(x, bind_kind_slice, L(-3, 100, 2), L(5), 0, 2); CHECK_EQ(x->bound[0], 2); CHECK_EQ(x->bound[1], 2);
    }
    TWICE {
        bind_to(x, bind_kind_slice, L(100, -100, -2), L(5), 0, 2); CHECK_EQ(x->bound[0], 4); CHECK_EQ(x->bound[1], 3);
    }
    TWICE {
        bind_to(x, bind_kind_slice, L(-9223372036854775807.0 - 1, 9223372036854774784.0, 1), L(5), 0, 2);
        CHECK_EQ(x->bound[0], 0); CHECK_EQ(x->bound[1], 5);
    }
    TWICE {
        bind_to(x, bind_kind_slice, L(4, 0, -9223372036854775807.0 - 1), L(5), 0, 2); CHECK_EQ(x->bound[0], 4);
        CHECK_EQ(x->bound[1], 1);
    }
    TWICE { bind_to(x, bind_kind_slice, L(3, 1, 1), L(5), 0, 2); CHECK_EQ(x->bound[0], 0); CHECK_EQ(x->bound[1], 0); }
    TWICE { bind_to(x, bind_kind_slice, L(0, 5, -1), L(0), 0, 2); CHECK_EQ(x->bound[0], 0); CHECK_EQ(x->bound[1], 0); }
    TWICE { bind_to(x, bind_kind_slice, L(0, 5, 0), L(5), 0, 2); CHECK_EQ(x->status, SINTER_INVALID_ARG); }
    TWICE {
        bind_to(x, bind_kind_expand, L(2, 1, 4), L(3, 1), 0, 3); CHECK_EQ(x->bound[0], 2); CHECK_EQ(x->bound[1], 3);
        CHECK_EQ(x->bound[2], 4);
    }
    TWICE { bind_to(x, bind_kind_expand, L(2, 5), L(3, 1), 0, 2); CHECK_EQ(x->status, SINTER_INVALID_ARG); }
}

/* clang-format on */

/* The known integers of the result, as text. */
static void expect_known(rig *x, const char *want, int line)
{
    text t;
    text_init(&t, &x->e);
    for (uint32_t i = 0; x->out[0].shape_value && i < x->out[0].shape_count; i++) {
        if (i) text_printf(&t, " ");
        dim_print(x->t, x->out[0].shape_value[i], &t);
    }
    if (x->status || !t.at || strcmp(t.at, want) != 0) {
        (void)printf("line %d: \"%s\", expected \"%s\": %s\n", line, t.at ? t.at : "", want, x->error.text);
        CHECK(false);
    }
    text_deinit(&t);
}
#define KNOWN(want) expect_known(x, want, __LINE__)

/* An i64 list [N, S, 3]. */
static void add_shape(rig *x)
{
    add_const(x, I64, SHAPE(3), L(2, 5, 3));
    dim *known = ARENA_NEW(&x->a, dim, 3);
    known[0] = dim_symbol_named(x->t, "N");
    known[1] = dim_symbol_named(x->t, "S");
    known[2] = dim_const(x->t, 3);
    x->in[x->count_in - 1].shape_value = known;
}

/* clang-format off */
static void keeps_integers_known(void)
{
    TWICE {
        add_shape(x); add_const(x, I64, SCALAR, L(-2)); run(x, OP_gather, "axis=0"); KNOWN("S");
        EXPECT(0, SCALAR, L(5));
    }
    TWICE { add_shape(x); add_const(x, I64, SHAPE(2), L(2, 0)); run(x, OP_gather, "axis=0"); KNOWN("3 N"); }
    TWICE {
        add_shape(x); add_const(x, I64, SHAPE(1), L(3)); run(x, OP_gather, "axis=0");
        CHECK_HAS(x->error.text, "index 3");
    }
    TWICE { add_shape(x); run(x, OP_slice, "start=[2] step=[-2] size=[2]"); KNOWN("3 N"); }
    TWICE { add_shape(x); add_const(x, I64, SHAPE(1), L(7)); run(x, OP_concat, "axis=0"); KNOWN("N S 3 7"); }
    TWICE { add_const(x, I64, SHAPE(1), L(7)); run(x, OP_reshape, "shape=[]"); KNOWN("7"); }
    TWICE { add_const(x, I64, SCALAR, L(7)); run(x, OP_expand, "shape=[3]"); KNOWN("7 7 7"); }
    TWICE { add_shape(x); run(x, OP_transpose, "perm=[0]"); KNOWN("N S 3"); }
    TWICE { add_shape(x); run(x, OP_tile, "repeats=[2]"); KNOWN("N S 3 N S 3"); }
    TWICE { add_shape(x); add_const(x, I64, SHAPE(1), L(1)); run(x, OP_pad, "begin=[1] end=[-2]"); KNOWN("1 N"); }
    TWICE {
        add_const(x, I64, SCALAR, L(2)); add_const(x, I64, SCALAR, L(3)); run(x, OP_range, "count=[3]"); KNOWN("2 5 8");
    }
    TWICE {
        add(x, F32, SHAPE(3), COUNTED); run(x, OP_slice, "start=[0] step=[1] size=[2]"); CHECK(!x->out[0].shape_value);
    }
}

/* clang-format on */

/* Dims with names go through shapes as expressions. */
static void infers_symbolic_shapes(void)
{
    rig rig_ = { .form = 0 }, *x = &rig_;
    rig_start(x);
    const dim n = dim_symbol_named(x->t, "N"), one = dim_const(x->t, 1);
    x->in[0] = (infer_value){ .dtype = F32, .rank = 2, .dim = { n, dim_const(x->t, 4) } };
    x->in[1] = x->in[0];
    attrs_concat concat = { .axis = 0 };
    infer_ctx c = { .e = &x->e,
                    .a = &x->a,
                    .dims = x->t,
                    .op = OP_concat,
                    .attrs = &concat,
                    .count_in = 2,
                    .count_out = 1,
                    .in = x->in,
                    .out = x->out };
    CHECK_EQ(op_infer(&c), SINTER_OK);
    CHECK_STR(sinter_dtype_name(x->out[0].dtype), "f32");
    CHECK(x->out[0].dim[0] == dim_mul(x->t, n, dim_const(x->t, 2)));
    x->in[1].dim[1] = one;
    concat.axis = 1;
    memset(x->out, 0, sizeof(x->out));
    CHECK_EQ(op_infer(&c), SINTER_OK);
    CHECK(dim_is(x->t, x->out[0].dim[1], 5));
    attrs_non_zero none = { 0 };
    c = (infer_ctx){ .e = &x->e,
                     .a = &x->a,
                     .dims = x->t,
                     .op = OP_non_zero,
                     .attrs = &none,
                     .count_in = 1,
                     .count_out = 1,
                     .in = x->in,
                     .out = x->out };
    dim_symbol narrowed = *dim_symbol_at(x->t, 0);
    narrowed.max = 10;
    dim_symbol_set(x->t, 0, &narrowed);
    memset(x->out, 0, sizeof(x->out));
    CHECK_EQ(op_infer(&c), SINTER_OK);
    CHECK_EQ(dim_range_of(x->t, x->out[0].dim[1]).max, 40);
    rig_stop(x);
}

static void leaves_regions_alone(void)
{
    rig rig_ = { .form = 0 }, *x = &rig_;
    rig_start(x);
    add(x, SINTER_DTYPE_BOOL, SCALAR, L(1));
    run(x, OP_if, "");
    CHECK_EQ(x->status, SINTER_INTERNAL);
    CHECK_HAS(x->error.text, "executor");
    rig_stop(x);
}

/* ---- more elements than a case can list ---- */

/* clang-format off */
static double in_at(const rig *x, uint32_t k, const int64_t *index)
{
    return view_load_f64(&x->view_in[k], view_offset(&x->view_in[k], index));
}

/* The number as it is stored. */
static double in_set(rig *x, uint32_t k, const int64_t *index, double value)
{
    view_store_f64(&x->view_in[k], view_offset(&x->view_in[k], index), value);
    return in_at(x, k, index);
}

static int64_t out_at(const rig *x, int64_t a, int64_t b)
{
    return view_load_i64(&x->view_out[0], view_offset(&x->view_out[0], (const int64_t[]){ a, b }));
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static double shared_part(const double *a, const double *b)
{
    const double high = fmin(a[2], b[2]) - fmax(a[0], b[0]), wide = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    if (!(high > 0) || !(wide > 0)) return 0;
    const double both = high * wide;
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

/* The highest score first, of equal ones the first; those of negative numbers and of both zeros among them. */
static void suppresses_many_boxes(void)
{
    enum { BOXES = 150, CLASSES = 2, MOST = 60 };
    for (int round = 0; round < 6; round++) {
        const double iou = round == 0 ? -0.5 : round == 1 ? 0 : 0.3;
        TWICE {
            uint32_t state = (uint32_t)round * 7919 + 1;
            double box[BOXES][4], score[CLASSES][BOXES];
            add(x, F32, SHAPE(1, BOXES, 4), NOTHING); add(x, F32, SHAPE(1, CLASSES, BOXES), NOTHING);
            add(x, I64, SHAPE(1), L(MOST)); add(x, F32, SHAPE(1), L(iou)); add(x, F32, SHAPE(1), L(-0.9));
            for (int64_t i = 0; i < BOXES; i++) {
                for (int64_t k = 0; k < 4; k++) {
                    const double size = round > 3 ? 4 : 30, corner = draw(&state) % 64 / size;
                    box[i][k] = k < 2 ? corner : box[i][k - 2] + 1 + draw(&state) % 4;
                    box[i][k] = in_set(x, 0, (const int64_t[]){ 0, i, k }, box[i][k]);
                }
                for (int64_t k = 0; k < CLASSES; k++) {
                    score[k][i] = ((double)(draw(&state) % 41) - 20) / 20;
                    if (score[k][i] == 0 && i % 2) score[k][i] = -0.0;
                    score[k][i] = in_set(x, 1, (const int64_t[]){ 0, k, i }, score[k][i]);
                }
            }
            const double floor_score = in_at(x, 4, (const int64_t[]){ 0 }), part = in_at(x, 3, (const int64_t[]){ 0 });
            run(x, OP_nms, ""); CHECK_EQ(x->status, SINTER_OK);
            int64_t rows = 0;
            for (int64_t k = 0; k < CLASSES; k++) {
                bool is_done[BOXES] = { false };
                int64_t kept[BOXES], count = 0;
                for (;;) {
                    int64_t best = -1;
                    for (int64_t i = 0; i < BOXES; i++)
                        if (!is_done[i] && score[k][i] > floor_score && (best < 0 || score[k][i] > score[k][best]))
                            best = i;
                    if (best < 0 || count == MOST) break;
                    is_done[best] = true;
                    bool is_free = true;
                    for (int64_t i = 0; i < count; i++)
                        is_free = is_free && !(shared_part(box[best], box[kept[i]]) > part);
                    if (!is_free) continue;
                    kept[count++] = best;
                    if (!CHECK(rows < x->view_out[0].dim[0])) break;
                    CHECK_EQ(out_at(x, rows, 1), k); CHECK_EQ(out_at(x, rows, 2), best);
                    rows++;
                }
            }
            CHECK_EQ(x->view_out[0].dim[0], rows);
        }
    }
}

static void finds_many_that_are_not_zero(void)
{
    static const sinter_dtype types[] = { F32, SINTER_DTYPE_BOOL, SINTER_DTYPE_I32, I64, SINTER_DTYPE_F16 };
    enum { ROWS = 3, COLS = 1100 };
    for (uint32_t k = 0; k < COUNT_OF(types); k++) {
        TWICE {
            uint32_t state = k + 1;
            bool is_set[ROWS][COLS];
            int64_t count = 0;
            add(x, types[k], SHAPE(ROWS, COLS), NOTHING);
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t j = 0; j < COLS; j++) {
                    is_set[i][j] = draw(&state) % 3 != 0;
                    (void)in_set(x, 0, (const int64_t[]){ i, j }, is_set[i][j]);
                }
            run(x, OP_non_zero, ""); CHECK_EQ(x->status, SINTER_OK);
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t j = 0; j < COLS; j++) {
                    if (!is_set[i][j]) continue;
                    if (!CHECK(count < x->view_out[0].dim[1])) return;
                    CHECK_EQ(out_at(x, 0, count), i); CHECK_EQ(out_at(x, 1, count), j);
                    count++;
                }
            CHECK_EQ(x->view_out[0].dim[1], count);
        }
    }
}

static void tiles_often(void)
{
    static const sinter_dtype types[] = { F32, SINTER_DTYPE_U8, SINTER_DTYPE_F64 };
    for (uint32_t k = 0; k < COUNT_OF(types); k++) {
        TWICE {
            add(x, types[k], SHAPE(2, 3, 5), COUNTED); run(x, OP_tile, "repeats=[2,3,1700]");
            CHECK_EQ(x->status, SINTER_OK);
            const view *y = &x->view_out[0];
            int64_t i[SINTER_RANK_MAX] = { 0 };
            bool is_right = true;
            for (bool more = view_first(y->dim, y->rank, i); more; more = view_next(y->dim, y->rank, i))
                is_right = is_right && view_load_f64(y, view_offset(y, i)) ==
                                           (double)(i[0] % 2 * 15 + i[1] % 3 * 5 + i[2] % 5);
            CHECK(is_right);
        }
    }
}

static void finds_unique_integers_of_32_bits(void)
{
    TWICE {
        x->count_out = 2; add(x, SINTER_DTYPE_I32, SHAPE(9), L(5, -2, 5, 3, -2, 0, 3, 9, 0)); run(x, OP_unique, "");
        EXPECT(0, SHAPE(5), L(-2, 0, 3, 5, 9)); EXPECT(1, SHAPE(5), L(1, 5, 3, 0, 7));
    }
}
/* clang-format on */

static const test tests[] = {
    T(reshapes),
    T(transposes),
    T(slices),
    T(expands),
    T(concatenates),
    T(pads),
    T(tiles),
    T(tiles_at_full_rank),
    T(gathers),
    T(gathers_tuples),
    T(scatters),
    T(updates_caches),
    T(keeps_triangles),
    T(makes_tensors),
    T(draws_random_numbers),
    T(finds_what_is_not_zero),
    T(finds_unique_elements),
    T(suppresses_boxes),
    T(suppresses_many_boxes),
    T(finds_many_that_are_not_zero),
    T(finds_unique_integers_of_32_bits),
    T(tiles_often),
    T(reverses_sequences),
    T(casts_bits),
    T(binds_sizes),
    T(keeps_integers_known),
    T(infers_symbolic_shapes),
    T(leaves_regions_alone),
    { 0 },
};
TEST_MAIN(tests)
