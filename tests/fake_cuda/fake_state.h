/* SPDX-License-Identifier: Apache-2.0 */
/* fake_state.h - what the files of the fake driver share. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "fake_cuda.h"

enum { DEVICES_MAX = 8, CALL_NAMES = 256 };

typedef enum fake_kind {
    FAKE_STREAM, FAKE_EVENT, FAKE_LIBRARY, FAKE_KERNEL, FAKE_GRAPH, FAKE_NODE, FAKE_EXEC, FAKE_CONTEXT, FAKE_MEMORY,
    FAKE_HOST, FAKE_PUSH, FAKE_PROGRAM, FAKE_KINDS
} fake_kind;

/* In front of every object behind a handle. */
typedef struct fake_object { uint32_t magic; fake_kind kind; int device; } fake_object;

typedef struct fake_kernel {
    fake_object o;
    const fake_image *image;
    char entry[64];
    int  shared_max;
    bool wide_clusters;
} fake_kernel;

/* Counts the call; not CUDA_SUCCESS: it is to fail so. */
CUresult fake_enter(const char *name);
#define CALL(name)                                                  \
    do {                                                            \
        const CUresult injected_ = fake_enter(name);                \
        if (injected_ != CUDA_SUCCESS) return injected_;            \
    } while (0)
/* Returns `r`, counted as a mistake of the caller. */
CUresult fake_wrong(CUresult r, const char *format, ...) __attribute__((format(printf, 2, 3)));

void *fake_make(fake_kind kind, size_t size);       /* on the current context's device */
void  fake_drop(void *object);
bool  fake_is(const void *object, fake_kind kind);
void  fake_count(fake_kind kind, int by);
/* The device of the current context; -1: there is none. */
int   fake_current(void);
bool  fake_is_device(int device);
/* Is [at, at + size) inside one allocation of device memory? */
bool  fake_in_memory(uint64_t at, size_t size);
int   fake_sm(void);
int   fake_units(void);
bool  fake_wants_context(void);
uint32_t fake_order(void);
void  fake_clock_add(double ns);
double fake_clock(void);
void  fake_record(CUevent e);

/* fake_code.c */
typedef struct fake_work {
    fake_kernel *kernel;
    uint32_t grid[3], block[3], cluster, shared;
    bool is_programmatic;
} fake_work;
CUresult fake_check_work(const fake_work *w);
CUresult fake_run(const fake_work *w, void **param, bool in_graph, CUstream stream);
/* All parameters in one block, for which `param` gets pointers; NULL where their sizes are unknown. */
uint8_t *fake_copy_params(const fake_image *i, void **from, void **param);
void     fake_code_reset(void);
void     fake_graph_reset(void);
void    *fake_find_driver(const char *name);
#define FAKE_EXPORT __attribute__((visibility("default")))

#endif
