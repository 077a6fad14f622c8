/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - the kinds of storages and steps that planner, engine file and executor share. Values are stored in engine
 * files: they never change. */
#ifndef CORE_STORAGE_H
#define CORE_STORAGE_H

typedef enum storage_kind {
    STORAGE_NONE,
    STORAGE_SLAB,       /* in the context's slab, for a part of the run */
    STORAGE_WEIGHT,     /* in the engine */
    STORAGE_INPUT,      /* the caller's */
    STORAGE_OUTPUT,     /* the caller's, or a buffer of the context */
    STORAGE_GROWN,      /* a buffer of the context that grows: sizes that data decides without a useful bound */
    STORAGE_STATE,      /* the context's; zero at first, kept from run to run */
    STORAGE_ROWS,       /* the context's, read only: STATE_ROWS numbers, i64, that say how long the state is */
    STORAGE_KIND_COUNT
} storage_kind;

/* Calls come last: STEP_IF and above run regions. A late step knows the sizes of its results only after it ran. */
typedef enum step_kind { STEP_KERNEL, STEP_LATE, STEP_IF, STEP_LOOP, STEP_SCAN, STEP_KIND_COUNT } step_kind;

/* What a storage of kind STORAGE_ROWS holds: the rows of the state before the run, and with those that the run appends.
 * Each number begins at 16 bytes, as devices want it. */
enum { ROWS_BEFORE = 0, ROWS_AFTER = 2, STATE_ROWS = 4 };

/* Where a storage's bytes are. Backends that run in host memory have PLACE_DEVICE alone: no transfers. */
typedef enum storage_place { PLACE_DEVICE, PLACE_HOST, PLACE_COUNT } storage_place;

#endif
