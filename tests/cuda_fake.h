/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake.h - the driver that is none, opened: its controls as functions of a struct.
 *
 * From the first call of cuda_fake on, devices that this process opens are the fake's. */
#ifndef CUDA_FAKE_H
#define CUDA_FAKE_H

#include "fake_cuda/fake_cuda.h"

#define FAKE_CONTROLS(X)                                                                                        \
    X(set_compile) X(set_launch) X(reset) X(set_devices) X(set_memory) X(set_launch_needs_context) X(set_order) \
    X(calls)                                                                                                    \
    X(fail_at) X(fail_calls) X(failed) X(live) X(live_text) X(misuse) X(misuse_text) X(launches) X(graph_nodes) \
    X(graph_edges) X(set_clock) X(clock_opened) X(set_clusters) X(set_version)

typedef struct fake_control {
#define FAKE_X(name) __typeof__(&fake_##name) name;
    FAKE_CONTROLS(FAKE_X)
#undef FAKE_X
} fake_control;

/* Never NULL: a library that does not open ends the process. */
const fake_control *cuda_fake(void);

#endif
