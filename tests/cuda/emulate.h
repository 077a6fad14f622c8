/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.h - a CUDA kernel row on the CPU: its code compiled by g++ with the emulator's prelude, its record run.
 *
 * Compiled code lives in a folder of the build, named by the hash of all that it is made of, so that it is compiled
 * once. SINTER_CXX names the compiler (g++). */
#ifndef CUDA_EMULATE_H
#define CUDA_EMULATE_H

#include "cuda/device/device_args.h"
#include "cuda/launch.h"
#include "runtime.h"

enum { EMULATED_CODES = 8, EMULATED_KEY = 33 };

typedef struct emulated_code { char key[EMULATED_KEY], entry[64]; } emulated_code;

/* Is there a compiler? Where there is none, nothing can be emulated, and tests say so by status 77. */
bool emulate_is_possible(void);
/* The folder of this build. */
const char *emulate_folder(void);
/* A source as it stands in its file, or, with files, as it is given: path is then the name of one of them. */
typedef struct emulated_source {
    const char *path, *flags, *generated;
    const char *const *entry;           /* kernels that may be launched */
    const char *const *file_name, *const *file;
    uint32_t entry_count, file_count;
} emulated_source;
/* Names its code and, where asked to, writes what is to be compiled. A failure to write is an exit: there is nothing to
 * test then. */
void emulate_source(const emulated_source *from, bool is_written, char key[EMULATED_KEY]);
/* The same for code `index` of a row. False: there is none of that number. */
bool emulate_code(env *e, const cuda_kernel *k, const problem *p, const tactic *t, const kernel_target *target,
                  uint32_t index, bool is_written, emulated_code *out);
/* Compiles those that are not yet compiled, `jobs` at once. Returns how many failed: emulate_log has their reasons. */
uint32_t emulate_compile(const char (*key)[EMULATED_KEY], uint32_t count, uint32_t jobs);
/* NULL where it compiled; else the first lines of what the compiler said. */
const char *emulate_log(const char *key, char *why, size_t size);
/* dlopen's handle, kept; NULL: not compiled. */
void *emulate_open(const char *key, char *path, size_t size);

typedef struct emulate_job {
    const cuda_kernel *kernel;
    const problem *problem;
    const tactic *tactic;
    const kernel_target *target;
    const view *in, *out;               /* data NULL except of constants that are not packed */
    void *const *in_at, *const *out_at; /* addresses; NULL: absent */
    void *workspace;
    const runtime_region *region;       /* of all that the kernel may touch */
    uint32_t region_count;
    bool is_reversed;
    uint32_t seconds;                   /* a launch; 0: no limit */
    struct device_fault fault;          /* what the kernel reported */
} emulate_job;

/* Binds and runs all launches in order. NULL, or what is wrong. */
const char *emulate_run(env *e, emulate_job *j, char *why, size_t size);

#endif
