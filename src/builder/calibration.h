/* SPDX-License-Identifier: Apache-2.0 */
/* calibration.h - the ranges of tensors by name, and the text of a calibration cache. */
#ifndef BUILD_CALIBRATION_H
#define BUILD_CALIBRATION_H

#include "base/name_map.h"
#include "base/text.h"
#include "sinter/calibrate.h"

typedef struct calibration_row { const char *name; float scale; } calibration_row;

struct sinter_calibration {
    env         e;
    arena       a;
    const char *header;
    name_map    names;                  /* to rows */
    VEC(calibration_row) row;           /* in the order in which they came */
};

/* With the allocator, the limits and the log of `e`. */
sinter_status calibration_create(env *e, sinter_calibration_method method, sinter_calibration **out);
sinter_status calibration_read(sinter_calibration *c, env *e, const char *cache, size_t size);
void          calibration_write(const sinter_calibration *c, text *to);
sinter_status calibration_set(sinter_calibration *c, env *e, const char *name, double range);
/* The range of a tensor; 0: it has none. */
double        calibration_range(const sinter_calibration *c, const char *name);
/* Can a cache hold this name? NULL, or why not. */
const char   *calibration_name_wrong(const char *name);

#endif
