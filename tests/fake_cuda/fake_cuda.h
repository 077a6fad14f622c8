/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.h - a driver and a compiler that are not there: one shared library that SINTER_LIBCUDA and SINTER_LIBNVRTC
 * name, with controls for tests (found by dlsym, or by linking with it).
 *
 * Device memory is host memory, and all work is done when it is asked for. What CUDA demands of its callers is checked:
 * handles, current contexts, ranges of copies, limits of launches, shapes of graphs, tensor maps. What is wrong is
 * refused as the driver would, and counted by fake_misuse. Every call is counted, and the n-th of them can fail. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "cuda/driver_types.h"

#include <stdbool.h>

#define FAKE_API __attribute__((visibility("default")))

/* ---- code ---- */

enum { FAKE_PARAMS = 8, FAKE_IMAGE_MAGIC = 0x454b4146 };

/* How every image begins. What follows is the compiler's own. */
typedef struct fake_image {
    uint32_t magic, size;               /* size: of all bytes */
    uint32_t sm;
    int32_t  param_count;               /* -1: not known, so parameters are not copied */
    uint32_t param[FAKE_PARAMS];        /* bytes */
    char     entry[64];                 /* "": any */
} fake_image;

/* What nvrtcCompileProgram was given. */
typedef struct fake_source {
    const char *text, *name;
    int header_count, option_count;
    const char *const *headers, *const *header_names, *const *options;
} fake_source;

/* Makes an image (malloc) that begins with a fake_image; NULL: a failure, `log` (malloc, may stay NULL) says why. The
 * library's own writes no code: parameter sizes are those of -DFAKE_PARAM0=64 …; -DFAKE_FAILS=1 does not compile. */
typedef void *(*fake_compile_fn)(const fake_source *s, size_t *size, char **log);
FAKE_API void fake_set_compile(fake_compile_fn compile);            /* NULL: the library's own */

/* ---- launches ---- */

typedef struct fake_launch {
    const fake_image *image;
    const char *entry;
    uint32_t grid[3], block, cluster, shared;
    void   **param;                     /* as kernels see them: pointers to the bytes of each parameter */
    bool     in_graph;
    bool     is_programmatic;           /* may start before the launch before it has ended */
    CUstream stream;
} fake_launch;

/* Does the kernel's work; the library's own does nothing. */
typedef CUresult (*fake_launch_fn)(void *user, const fake_launch *l);
FAKE_API void fake_set_launch(fake_launch_fn launch, void *user);

/* ---- what a test asks and sets ---- */

/* Forgets all that was counted and set. Devices: the environment's SINTER_FAKE_DEVICES (2), of SINTER_FAKE_SM (90),
 * with SINTER_FAKE_UNITS multiprocessors (132). */
FAKE_API void fake_reset(void);
FAKE_API void fake_set_devices(int count, int sm);
FAKE_API void fake_set_memory(size_t bytes);                        /* of each device */
FAKE_API void fake_set_launch_needs_context(bool needs);            /* cuGraphLaunch without a current one fails */

FAKE_API void fake_set_version(int version);                        /* of the driver; not forgotten by fake_reset */
FAKE_API void fake_set_clusters(unsigned most);                     /* blocks for which there is room (16) */

/* Nodes of graphs run in an order that their edges permit: another for each seed; 0: as they were added, as far as
 * possible. The environment's SINTER_FAKE_ORDER (1). */
FAKE_API void fake_set_order(uint32_t seed);
/* What NVML reads off the clock, in turn, and why it is not higher (NVML_REASON_*); count 0: there is no NVML. Not
 * forgotten by fake_reset. */
FAKE_API void fake_set_clock(const unsigned *mhz, unsigned count, unsigned long long reasons);
FAKE_API long fake_clock_opened(void);                              /* nvmlInit less nvmlShutdown */

/* Calls since fake_reset; of one function, or of all (NULL). cuGetErrorName and its like are not counted. */
FAKE_API long fake_calls(const char *name);
/* The n-th call from now (1: the next) fails with `r`; NVRTC's with its failure of compilation. A call that releases
 * something does so all the same. 0: none. */
FAKE_API void fake_fail_at(long n, CUresult r);
/* Calls of this function fail from now on; NULL: none. */
FAKE_API void fake_fail_calls(const char *name, CUresult r);
FAKE_API const char *fake_failed(void);                             /* the call that was made to fail; NULL: none was */

/* Objects that were made and not released: memory, streams, graphs, libraries, contexts, pushes … */
FAKE_API long fake_live(void);
FAKE_API const char *fake_live_text(void);                          /* "2 streams, 1 graph" */
FAKE_API long fake_misuse(void);
FAKE_API const char *fake_misuse_text(void);                        /* the first */

/* The launches since fake_reset. */
FAKE_API long fake_launches(void);

/* The graph that was instantiated last. */
typedef struct fake_edge_info { uint32_t from, to; CUgraphEdgeData data; } fake_edge_info;
FAKE_API uint32_t fake_graph_nodes(void);
FAKE_API uint32_t fake_graph_edges(fake_edge_info *out, uint32_t room);     /* indices in order of adding */

/* What cuTensorMapEncode* leaves in a tensor map. */
enum { FAKE_MAP_MAGIC = 0x50414d46 };
typedef struct fake_map {
    uint32_t magic;
    uint8_t  type, rank, swizzle, is_im2col;
    uint64_t at, stride[5];             /* bytes; stride[0]: of an element */
    uint32_t dim[5];
    uint16_t box[5], step[5];
    int16_t  low[3], high[3];
    uint16_t pixels, channels;
} fake_map;

#endif
