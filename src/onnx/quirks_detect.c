/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_detect.c - TensorRT's plugins that end detectors: EfficientNMS_TRT, BatchedNMS_TRT, BatchedNMSDynamic_TRT.
 * Models that are exported for TensorRT have them as nodes.
 *
 * They give a fixed number of results for each image, the best first, and how many of them there are. So they are:
 * nms_rows, the kept scores in a table of all scores where every other entry is -inf, and top_k over that table. */
#include "onnx/quirks.h"

#include <math.h>

typedef struct suppression {
    onnx_call *c;
    ir_value_id boxes;  /* f32 corners, [B,N,4], or [B,N,C,4] where each class has its own */
    ir_value_id scores; /* f32 [B,N,C] */
    dim batch, count, classes;
    bool own_boxes;
    bool agnostic;      /* a box suppresses those of other classes, too */
    bool clip;          /* the boxes of the result, to 0 … 1 */
    int64_t background; /* the class that is left out; -1: none */
    int64_t most;       /* results of an image */
    int64_t candidates; /* of each class, the best ones; 0: all */
    float score, iou;   /* kept is a score above `score`, suppressed is a box that overlaps by more than `iou` */
    double no_class;    /* the class of a result that is not there */
} suppression;

/* The outputs in the order of the plugins: [B,1] i32, [B,most,4], [B,most], [B,most] i64. */
typedef struct detections {
    ir_value_id count, boxes, scores, classes;
} detections;

static ir_value_id number(const suppression *s, dim d)
{
    return build_sizes(&s->c->b, &d, 1, true);
}

static ir_value_id nothing(const suppression *s)
{
    return build_scalar(&s->c->b, SINTER_DTYPE_F32, -INFINITY);
}

/* Scores without those of the background, and of boxes that are not among the best of their class. */
static ir_value_id candidates(const suppression *s)
{
    ir_builder *b = &s->c->b;
    ir_value_id scores = s->scores;
    if (s->background >= 0) {
        const ir_value_id number_of = build_iota(b, s->classes);
        const ir_value_id back = build_scalar_i64(b, SINTER_DTYPE_I64, s->background);
        const ir_value_id is_back = build_eq(b, number_of, back), none = nothing(s);
        scores = build_where(b, is_back, none, scores);
    }
    int64_t count;
    if (s->candidates > 0 && !(dim_is_const(b->g->dims, s->count, &count) && count <= s->candidates)) {
        const dim k = dim_min(b->g->dims, s->count, call_k(s->c, s->candidates));
        attrs_top_k *a = DEFAULTS(top_k);
        a->axis = 1;
        a->k = build_dims(b, &k, 1);
        const ir_value_id best = build_result(b, build_top_k(b, scores, a, 2), 0);
        const ir_value_id last = build_reduced(b, reduce_kind_min, best, (const int64_t[]){ 1 }, 1, true);
        const ir_value_id is_less = build_lt(b, scores, last), none = nothing(s);
        scores = build_where(b, is_less, none, scores);
    }
    return scores;
}

/* A column of the rows that nms_rows gives: image, class or box. */
static ir_value_id column(ir_builder *b, ir_value_id rows, int64_t i)
{
    dim_table *t = b->g->dims;
    return build_squeezed(b, build_part(b, rows, 1, dim_const(t, i), 1, dim_const(t, 1)), 1);
}

/* [B, N * C]: the scores that are kept, -inf elsewhere. */
static ir_value_id kept_scores(const suppression *s, ir_value_id scores, dim classes)
{
    ir_builder *b = &s->c->b;
    dim_table *t = b->g->dims;
    const dim one = dim_const(t, 1), table = dim_mul(t, s->count, classes), all = dim_mul(t, s->batch, table);
    ir_value_id boxes = s->boxes, each = build_permuted(b, scores, (const int64_t[]){ 0, 2, 1 }, 3);
    if (s->own_boxes) { /* each class is an image of its own */
        const dim images = dim_mul(t, s->batch, classes);
        boxes = build_shaped(b, build_permuted(b, boxes, (const int64_t[]){ 0, 2, 1, 3 }, 4),
                             (const dim[]){ images, s->count, dim_const(t, 4) }, 3);
        each = build_shaped(b, each, (const dim[]){ images, one, s->count }, 3);
    }
    const dim most = dim_min(t, s->count, dim_const(t, s->most));
    attrs_nms_rows *a = DEFAULTS(nms_rows);
    a->most = build_dims(b, &most, 1);
    const ir_value_id limit = build_scalar_i64(b, SINTER_DTYPE_I64, s->most);
    const ir_value_id iou = build_scalar(b, SINTER_DTYPE_F32, (double)s->iou);
    const ir_value_id least = build_scalar(b, SINTER_DTYPE_F32, (double)s->score);
    const ir_node_id n = build_nms_rows(b, boxes, each, limit, iou, least, a, 2);
    const ir_value_id rows = build_result(b, n, 0), found = build_result(b, n, 1);
    if (b->status) return 0;
    const ir_value_id width = number(s, classes), height = number(s, s->count), size = number(s, all),
                      none = nothing(s);
    ir_value_id image = column(b, rows, 0), class_at = column(b, rows, 1);
    const ir_value_id box = column(b, rows, 2);
    if (s->own_boxes) {
        class_at = build_mod(b, image, width);
        image = build_div(b, image, width);
    }
    /* Entry (image, box, class) of the table. Rows that are not there go to an entry behind the last. */
    ir_value_id at = build_add(b, build_mul(b, image, height), box);
    at = build_add(b, build_mul(b, at, width), class_at);
    const ir_value_id is_there = build_lt(b, build_iota(b, call_dim(s->c, rows, 0)), found);
    at = build_where(b, is_there, at, size);
    const dim longer = dim_add(t, all, one);
    const ir_value_id flat = build_shaped(b, scores, &all, 1);
    const ir_value_id spare = build_padded(b, flat, pad_mode_constant, (const dim[]){ dim_const(t, 0) }, &one, none);
    const ir_value_id values = build_gather(b, spare, at, DEFAULTS(gather));
    const ir_value_id empty = build_expanded(b, build_shaped(b, none, &one, 1), &longer, 1);
    const ir_value_id made = build_scatter_elements(b, empty, at, values, DEFAULTS(scatter_elements));
    return build_shaped(b, build_part(b, made, 0, dim_const(t, 0), 1, all), (const dim[]){ s->batch, table }, 2);
}

/* Results behind the last that there can be. */
static ir_value_id filled_up(const suppression *s, ir_value_id v, dim count, ir_value_id value)
{
    ir_builder *b = &s->c->b;
    dim_table *t = b->g->dims;
    dim begin[3], end[3];
    for (uint32_t i = 0; i < 3; i++) begin[i] = end[i] = dim_const(t, 0);
    end[1] = dim_sub(t, dim_const(t, s->most), count);
    return build_padded(b, v, pad_mode_constant, begin, end, value);
}

static detections suppress(suppression *s)
{
    ir_builder *b = &s->c->b;
    dim_table *t = b->g->dims;
    ir_value_id scores = candidates(s), class_of = 0;
    dim classes = s->classes;
    if (s->agnostic) { /* only the best class of a box can stay: its others are the same box */
        attrs_arg_reduce *a = DEFAULTS(arg_reduce);
        a->axis = 2;
        a->keep = 0;
        class_of = build_arg_reduce(b, scores, a);
        scores = build_reduced(b, reduce_kind_max, scores, (const int64_t[]){ 2 }, 1, true);
        classes = dim_const(t, 1);
    }
    const ir_value_id table = kept_scores(s, scores, classes);
    if (b->status) return (detections){ 0 };
    const dim k = dim_min(t, dim_const(t, s->most), dim_mul(t, s->count, classes));
    attrs_top_k *a = DEFAULTS(top_k);
    a->axis = 1;
    a->k = build_dims(b, &k, 1);
    const ir_node_id n = build_top_k(b, table, a, 2);
    const ir_value_id best = build_result(b, n, 0), at = build_result(b, n, 1);
    const ir_value_id width = number(s, classes), least = nothing(s);
    const ir_value_id is_there = build_gt(b, best, least), box = build_div(b, at, width);
    attrs_gather_elements *along = DEFAULTS(gather_elements);
    along->axis = 1;
    class_of = s->agnostic ? build_gather_elements(b, class_of, box, along) : build_mod(b, at, width);
    const dim rows = s->own_boxes ? dim_mul(t, s->count, classes) : s->count;
    const ir_value_id image = build_unsqueezed(b, build_iota(b, s->batch), 1), row_count = number(s, rows);
    const ir_value_id row = build_add(b, build_mul(b, image, row_count), s->own_boxes ? at : box);
    const dim flat[2] = { dim_mul(t, s->batch, rows), dim_const(t, 4) };
    ir_value_id boxes = build_gather(b, build_shaped(b, s->boxes, flat, 2), row, DEFAULTS(gather));
    const ir_value_id zero = build_scalar(b, SINTER_DTYPE_F32, 0), one = build_scalar(b, SINTER_DTYPE_F32, 1);
    const ir_value_id none = build_scalar(b, SINTER_DTYPE_I64, s->no_class);
    if (s->clip) boxes = build_clip(b, boxes, zero, one);
    boxes = build_where(b, build_unsqueezed(b, is_there, 2), boxes, zero);
    detections d = { 0 };
    d.count = build_typed(b, is_there, SINTER_DTYPE_I32);
    d.count = build_reduced(b, reduce_kind_sum, d.count, (const int64_t[]){ 1 }, 1, true);
    d.boxes = filled_up(s, boxes, k, zero);
    d.scores = filled_up(s, build_where(b, is_there, best, zero), k, zero);
    d.classes = filled_up(s, build_where(b, is_there, class_of, none), k, none);
    return d;
}

/* Part i of the last axis of boxes, which stays. */
static ir_value_id corner(ir_builder *b, ir_value_id boxes, int64_t i, int64_t size)
{
    dim_table *t = b->g->dims;
    return build_part(b, boxes, ir_value_at(b->g, boxes)->rank - 1, dim_const(t, i), 1, dim_const(t, size));
}

static ir_value_id joined(ir_builder *b, ir_value_id low, ir_value_id high)
{
    attrs_concat *a = DEFAULTS(concat);
    a->axis = (int64_t)ir_value_at(b->g, low)->rank - 1;
    return build_concat(b, (const ir_value_id[]){ low, high }, 2, a);
}

/* Boxes and scores in f32, and their sizes. */
static void begin(suppression *s, onnx_call *c)
{
    const ir_value_id boxes = call_in(c, 0), scores = call_in(c, 1);
    s->c = c;
    if (!boxes || !scores) {
        REJECT(c, INVALID_MODEL, "%s are missing", boxes ? "scores" : "boxes");
        return;
    }
    const uint32_t rank = call_rank(c, boxes);
    if ((rank != 3 && rank != 4) || call_rank(c, scores) != 3) {
        REJECT(c, INVALID_MODEL, "boxes of rank %u and scores of rank %u; wanted are 3 or 4, and 3", rank,
               call_rank(c, scores));
        return;
    }
    s->batch = call_dim(c, scores, 0);
    s->count = call_dim(c, scores, 1);
    s->classes = call_dim(c, scores, 2);
    s->boxes = build_typed(&c->b, boxes, SINTER_DTYPE_F32);
    s->scores = build_typed(&c->b, scores, SINTER_DTYPE_F32);
    int64_t one;
    if (rank == 4 && call_size(c, boxes, 2, &one) && one == 1) s->boxes = build_squeezed(&c->b, s->boxes, 2);
    else s->own_boxes = rank == 4;
}

static void limits(suppression *s, const char *name)
{
    if (s->most < 1 || s->most > INT32_MAX)
        REJECT(s->c, INVALID_MODEL, "attribute %s is %lld, at least 1 is wanted", name, (long long)s->most);
    if (!isfinite((double)s->score) || !isfinite((double)s->iou))
        REJECT(s->c, INVALID_MODEL, "thresholds %g and %g are not finite", (double)s->score, (double)s->iou);
}

static void end(const suppression *s, const detections *d, sinter_dtype class_type)
{
    onnx_call *c = s->c;
    ir_builder *b = &c->b;
    ir_value_id made[4] = { d->count, 0, 0, 0 };
    made[1] = build_typed(b, d->boxes, call_type(c, call_in(c, 0)));
    made[2] = build_typed(b, d->scores, call_type(c, call_in(c, 1)));
    made[3] = build_typed(b, d->classes, class_type);
    for (uint32_t i = 0; i < c->count_out && i < 4; i++) c->out[i] = made[i];
}

/* Boxes as offsets to anchors. Corners are added; centres and sizes are in units of the anchor, sizes as logarithms. */
static ir_value_id decoded(onnx_call *c, ir_value_id boxes, ir_value_id anchors, bool is_centre)
{
    ir_builder *b = &c->b;
    anchors = build_typed(b, anchors, SINTER_DTYPE_F32);
    if (!is_centre) return build_add(b, boxes, anchors);
    const ir_value_id size = corner(b, anchors, 2, 2), centre = corner(b, anchors, 0, 2);
    const ir_value_id moved = build_mul(b, corner(b, boxes, 0, 2), size);
    const ir_value_id low = build_add(b, moved, centre), grown = build_exp(b, corner(b, boxes, 2, 2));
    return joined(b, low, build_mul(b, size, grown));
}

void convert_efficient_nms(onnx_call *c)
{
    suppression s = {
        .background = call_int(c, "background_class", -1),
        .most = call_int(c, "max_output_boxes", 100),
        .agnostic = call_int(c, "class_agnostic", 0) != 0,
        /* A score that equals its threshold stays, and a box that overlaps by exactly iou_threshold goes. */
        .score = nextafterf((float)call_real(c, "score_threshold", 0.25), -INFINITY),
        .iou = nextafterf((float)call_real(c, "iou_threshold", 0.5), -INFINITY),
    };
    const int64_t coding = call_int(c, "box_coding", 0);
    begin(&s, c);
    limits(&s, "max_output_boxes");
    if (coding != 0 && coding != 1)
        REJECT(c, INVALID_MODEL, "attribute box_coding is %lld: 0 or 1 is wanted", (long long)coding);
    if (s.agnostic && s.own_boxes)
        REJECT(c, UNSUPPORTED, "class_agnostic with boxes of each class is not supported: give boxes [N, boxes, 4]");
    if (c->b.status) return;
    if (call_int(c, "score_activation", 0)) s.scores = build_sigmoid(&c->b, s.scores);
    if (call_in(c, 2)) {
        ir_value_id anchors = call_in(c, 2);
        if (s.own_boxes) anchors = build_unsqueezed(&c->b, anchors, 2);
        s.boxes = decoded(c, s.boxes, anchors, coding == 1);
    }
    if (coding == 1) {
        const ir_value_id centre = corner(&c->b, s.boxes, 0, 2);
        const ir_value_id size = corner(&c->b, s.boxes, 2, 2), factor = build_scalar(&c->b, SINTER_DTYPE_F32, 0.5);
        const ir_value_id half = build_mul(&c->b, size, factor);
        const ir_value_id low = build_sub(&c->b, centre, half), high = build_add(&c->b, centre, half);
        s.boxes = joined(&c->b, low, high);
    }
    if (c->b.status) return;
    const detections d = suppress(&s);
    end(&s, &d, SINTER_DTYPE_I32);
}

void convert_batched_nms(onnx_call *c)
{
    suppression s = {
        .background = call_int(c, "backgroundLabelId", -1),
        .most = call_int(c, "keepTopK", 100),
        .candidates = call_int(c, "topK", 0),
        .clip = call_int(c, "clipBoxes", 1) != 0,
        .score = (float)call_real(c, "scoreThreshold", 0),
        .iou = (float)call_real(c, "iouThreshold", 0.5),
        .no_class = -1,
    };
    begin(&s, c);
    limits(&s, "keepTopK");
    if (s.candidates < s.most)
        REJECT(c, INVALID_MODEL, "attribute topK is %lld, at least keepTopK, %lld, is wanted", (long long)s.candidates,
               (long long)s.most);
    if (!call_int(c, "isNormalized", 1))
        REJECT(c, UNSUPPORTED,
               "isNormalized=0 counts a box of 1x1 as 2x2, which is not supported: scale the boxes, and set it to 1");
    int64_t classes = 0;
    const bool is_one = dim_is_const(c->b.g->dims, s.classes, &classes) && classes == 1; /* both forms are the same */
    if ((call_int(c, "shareLocation", 1) != 0) == s.own_boxes && !is_one)
        REJECT(c, INVALID_MODEL, "attribute shareLocation is %d, and boxes are%s given for each class",
               !s.own_boxes ? 0 : 1, s.own_boxes ? "" : " not");
    if (c->b.status) return;
    const detections d = suppress(&s);
    end(&s, &d, call_type(c, call_in(c, 1)));
}

void convert_instance_norm_plugin(onnx_call *c)
{
    convert_instance_norm(c);
    if (!call_int(c, "relu", 0) || c->b.status) return;
    c->out[0] = build_prelu(&c->b, c->out[0], build_scalar_like(&c->b, c->out[0], call_real(c, "alpha", 0)));
}
