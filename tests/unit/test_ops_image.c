/* SPDX-License-Identifier: Apache-2.0 */
/* test_ops_image.c - shapes and references of the ops that sample images: small cases with results worked out by hand.
 */
#include "op_rig.h"

/* A case reads as one thought, on as few lines as it takes. */
/* clang-format off */
static void resizes_to_nearest(void)
{
    TWICE {
        add(x, F32, SHAPE(1, 2), L(1, 2));
        run(x, OP_resize, "size=[2,4] scale=[2,2] coordinate=asymmetric nearest=floor");
        EXPECT(0, SHAPE(2, 4), L(1, 1, 2, 2, 1, 1, 2, 2));
    }
    TWICE { add(x, F32, SHAPE(4), L(1, 2, 3, 4)); run(x, OP_resize, "size=[2]"); EXPECT(0, SHAPE(2), L(1, 3)); }
    TWICE {
        add(x, F32, SHAPE(4), L(1, 2, 3, 4)); run(x, OP_resize, "size=[2] nearest=round_prefer_ceil");
        EXPECT(0, SHAPE(2), L(2, 4));
    }
    TWICE {
        add(x, F32, SHAPE(4), L(1, 2, 3, 4)); run(x, OP_resize, "size=[8] coordinate=align_corners nearest=ceil");
        EXPECT(0, SHAPE(8), L(1, 2, 2, 3, 3, 4, 4, 4));
    }
    TWICE {
        add(x, SINTER_DTYPE_I8, SHAPE(3), L(-1, 2, 3)); run(x, OP_resize, "size=[5]");
        EXPECT(0, SHAPE(5), L(-1, -1, 2, 3, 3));
    }
}

static void resizes_smoothly(void)
{
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_resize, "mode=linear size=[4,4] scale=[2,2]");
        EXPECT_NEAR(0, SHAPE(4, 4), L(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4));
    }
    TWICE {
        add(x, F32, SHAPE(2, 2), L(1, 2, 3, 4)); run(x, OP_resize, "mode=linear coordinate=align_corners size=[3,3]");
        EXPECT_NEAR(0, SHAPE(3, 3), L(1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4));
    }
    /* ONNX's resize_downsample_scales_linear_align_corners: the scale makes 4 into 2.4, of which 2 are there. */
    TWICE {
        add(x, F32, SHAPE(1, 1, 2, 4), L(1, 2, 3, 4, 5, 6, 7, 8));
        run(x, OP_resize, "mode=linear coordinate=align_corners size=[1,1,1,2] scale=[1,1,0.6,0.6]");
        EXPECT_NEAR(0, SHAPE(1, 1, 1, 2), L(1, 3.142857));
    }
    /* Weights of three quarters: -0.03515625, 0.26171875, 0.87890625, -0.10546875; of a quarter the same backwards. */
    TWICE {
        add(x, F32, SHAPE(4), L(0, 0, 1, 0)); run(x, OP_resize, "mode=cubic size=[8]");
        EXPECT_NEAR(0, SHAPE(8),
                    L(0, -0.03515625, -0.10546875, 0.26171875, 0.87890625, 0.87890625, 0.26171875, -0.10546875));
    }
    TWICE {
        add(x, F32, SHAPE(4), L(4, 8, 0, 4)); run(x, OP_resize, "mode=linear antialias=1 size=[2]");
        EXPECT_NEAR(0, SHAPE(2), L(5, 3));
    }
    TWICE {
        add(x, F32, SHAPE(3), L(0, 1, 2));
        run(x, OP_resize, "mode=linear coordinate=tf_crop_and_resize size=[3] roi=[0.5,1.5] extrapolation=9");
        EXPECT_NEAR(0, SHAPE(3), L(1, 2, 9));
    }
    TWICE {
        add(x, SINTER_DTYPE_U8, SHAPE(2), L(10, 13)); run(x, OP_resize, "mode=linear size=[4]");
        EXPECT(0, SHAPE(4), L(10, 11, 12, 13));
    }
    TWICE {
        add(x, F32, SHAPE(2), L(1, INFINITY)); run(x, OP_resize, "mode=linear coordinate=align_corners size=[2]");
        EXPECT(0, SHAPE(2), L(1, INFINITY));
    }
    TWICE {
        add(x, F32, SHAPE(2), COUNTED); run(x, OP_resize, "size=[2] scale=[0]");
        CHECK_HAS(x->error.text, "scale of axis 0");
    }
    TWICE {
        add(x, F32, SHAPE(2), COUNTED); run(x, OP_resize, "size=[2] scale=[1e-300] antialias=1 mode=linear");
        CHECK_EQ(x->status, SINTER_UNSUPPORTED);
    }
}

static void aligns_regions(void)
{
    /* One sample a bin, each in the middle of four elements. */
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), COUNTED); add(x, F32, SHAPE(1, 4), L(0, 0, 2, 2)); add(x, I64, SHAPE(1), L(0));
        run(x, OP_roi_align, "out_h=2 out_w=2 sampling=1 half_pixel=0");
        EXPECT_NEAR(0, SHAPE(1, 1, 2, 2), L(2, 3, 5, 6));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), COUNTED); add(x, F32, SHAPE(1, 4), L(0, 0, 2, 2)); add(x, I64, SHAPE(1), L(0));
        run(x, OP_roi_align, "out_h=1 out_w=1 half_pixel=0 is_max=1"); EXPECT_NEAR(0, SHAPE(1, 1, 1, 1), L(2));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), COUNTED);
        add(x, F32, SHAPE(3, 4), L(0, 0, 2, 2, 0, 0, INFINITY, 1e30, -1e8, -1e8, 1e8, 1e8));
        add(x, I64, SHAPE(3), L(1, 0, 0)); run(x, OP_roi_align, "out_h=1 out_w=1");
        EXPECT_NEAR(0, SHAPE(3, 1, 1, 1), L(0, 0, 0)); CHECK_EQ(x->fault.value, 1);
    }
}

static void samples_grids(void)
{
    const list image = L(0, 1, 2, 3, 4, 5, 6, 7, 8), grid = L(-1, -1, 0, 0, 0.5, -0.5, 3, 0);
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), image); add(x, F32, SHAPE(1, 2, 2, 2), grid);
        run(x, OP_grid_sample, "mode=linear align_corners=1"); EXPECT_NEAR(0, SHAPE(1, 1, 2, 2), L(0, 4, 3, 0));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), image); add(x, F32, SHAPE(1, 2, 2, 2), grid);
        run(x, OP_grid_sample, "mode=linear padding=edge"); EXPECT_NEAR(0, SHAPE(1, 1, 2, 2), L(0, 4, 2.5, 5));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), image); add(x, F32, SHAPE(1, 2, 2, 2), grid);
        run(x, OP_grid_sample, "mode=nearest padding=reflect align_corners=1");
        EXPECT_NEAR(0, SHAPE(1, 1, 2, 2), L(0, 4, 2, 3));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 3, 3), image); add(x, F32, SHAPE(1, 1, 2, 2), L(0, 0, NAN, -INFINITY));
        run(x, OP_grid_sample, "mode=cubic align_corners=1"); EXPECT_NEAR(0, SHAPE(1, 1, 1, 2), L(4, 0));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 2, 2, 2), COUNTED); add(x, F32, SHAPE(1, 1, 1, 2, 3), L(0, 0, 0, 1, 1, -1));
        run(x, OP_grid_sample, "mode=linear align_corners=1"); EXPECT_NEAR(0, SHAPE(1, 1, 1, 1, 2), L(3.5, 3));
    }
    TWICE {
        add(x, F32, SHAPE(1, 1, 1, 1), L(5)); add(x, F32, SHAPE(1, 1, 2, 2), L(1e30, -7, 0, 0));
        run(x, OP_grid_sample, "mode=linear padding=reflect align_corners=1");
        EXPECT_NEAR(0, SHAPE(1, 1, 1, 2), L(5, 5));
    }
}

static void makes_affine_grids(void)
{
    TWICE {
        add(x, F32, SHAPE(1, 2, 3), L(1, 0, 0, 0, 1, 0)); run(x, OP_affine_grid, "size=[1,1,2,2]");
        EXPECT_NEAR(0, SHAPE(1, 2, 2, 2), L(-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5));
    }
    TWICE {
        add(x, F32, SHAPE(1, 2, 3), L(2, 0, 1, 0, 3, 0)); run(x, OP_affine_grid, "size=[1,1,1,2] align_corners=1");
        EXPECT_NEAR(0, SHAPE(1, 1, 2, 2), L(-1, -3, 3, -3));
    }
    TWICE {
        add(x, F32, SHAPE(1, 3, 4), L(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)); run(x, OP_affine_grid, "size=[1,1,2,1,1]");
        EXPECT_NEAR(0, SHAPE(1, 2, 1, 1, 3), L(0, 0, -0.5, 0, 0, 0.5));
    }
}

static void folds_columns(void)
{
    TWICE {
        add(x, F32, SHAPE(1, 4, 4), L(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
        run(x, OP_col2im, "image=[3,3] block=[2,2] dilation=[1,1] pad=[0,0,0,0] stride=[1,1]");
        EXPECT(0, SHAPE(1, 1, 3, 3), L(1, 2 + 5, 6, 3 + 9, 4 + 7 + 10 + 13, 8 + 14, 11, 12 + 15, 16));
    }
    TWICE {
        add(x, F32, SHAPE(1, 2, 2), L(1, 2, 3, 4));
        run(x, OP_col2im, "image=[3] block=[2] stride=[2] pad=[0,1] dilation=[1]");
        EXPECT(0, SHAPE(1, 1, 3), L(1, 3, 2));
    }
    TWICE {
        add(x, F32, SHAPE(1, 3, 2), COUNTED); run(x, OP_col2im, "image=[3] block=[2]");
        CHECK_HAS(x->error.text, "multiple of the block's 2");
    }
}

static const test tests[] = {
    T(resizes_to_nearest), T(resizes_smoothly), T(aligns_regions), T(samples_grids), T(makes_affine_grids),
    T(folds_columns), { 0 },
};
TEST_MAIN(tests)
