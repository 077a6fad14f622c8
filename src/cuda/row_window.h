/* SPDX-License-Identifier: Apache-2.0 */
/* row_window.h - what the rows of depthwise and grouped convolutions share: a thread has a run of channels of a few
 * pixels next to each other, a block c x x x y threads; device/depthwise.cu and device/grouped.cu. */
#ifndef CUDA_ROW_WINDOW_H
#define CUDA_ROW_WINDOW_H

#include "cuda/device/depthwise_args.h"
#include "cuda/cuda_emit.h"

typedef struct window_tactic {
    uint8_t pix, c, x, y, trigger;
    uint8_t half; /* a thread has 8 bytes of channels, not 16 */
    uint8_t zero[TACTIC_SIZE - 6];
} window_tactic;
_Static_assert(sizeof(window_tactic) == TACTIC_SIZE, "a tactic is overlaid");

enum { WINDOW_FIELDS = 6 };
extern const tactic_field window_fields[WINDOW_FIELDS];
bool          window_check(const tactic *t, uint32_t pix_most, bool may_halve);

/* Kernel, stride and the like of the spatial axes of conv or conv_integer as depth, height and width. The only axis of
 * an image is its width, or its height where the filter is too long for the registers of a row or moves in large
 * steps. */
enum { WINDOW_AXES = 3 };
typedef struct window {
    int64_t kernel[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES], pad[WINDOW_AXES], groups;
    int8_t  axis[WINDOW_AXES]; /* of the operands; -1: none */
} window;
window      window_of(const problem *p, const void *attrs);
/* Rows of taps, and all. */
static inline int64_t window_lines(const window *g) { return g->kernel[0] * g->kernel[1]; }
static inline int64_t window_taps(const window *g) { return window_lines(g) * g->kernel[2]; }
/* Where tap number k of the filter lies in it, in elements, behind its channel. */
int64_t     window_tap_at(const window *g, const view *filter, int64_t k);
/* NULL where axes, filter and attributes are what these kernels slide; types and groups are the rows' own to judge. */
const char *window_reject(const problem *p);

/* Blocks at opt, of threads with `width` channels each. */
double  window_blocks(const problem *p, window_tactic x, uint32_t width);
/* Bytes moved, sectors where channels are not adjacent. */
double  window_bytes(const problem *p);

/* The best few by `cost`, which may set the trigger; INFINITY: does not fit. */
typedef double (*window_cost_fn)(const problem *p, window_tactic *x, const kernel_target *t);
void window_tactics(const problem *p, const kernel_target *t, uint32_t width, uint32_t pix_most, bool may_halve,
                    window_cost_fn cost, tactic_sink *out);
void window_defines(const problem *p, window_tactic x, cuda_code *c);
/* Begins the launch and its first parameter: all but zero points. multiplier: runs of channels that share an input. */
sinter_status window_bind(env *e, const problem *p, const void *attrs, window_tactic x, const view *in, const view *out,
                          uint32_t width, int64_t pitch, int64_t multiplier, int64_t shared, cuda_record *r,
                          struct depthwise_args **args);

#endif
