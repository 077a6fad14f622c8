/* SPDX-License-Identifier: Apache-2.0 */
/* net_rig.h - builds a network and runs it, for tests. */
#ifndef NET_RIG_H
#define NET_RIG_H

#include "sinter/sinter.h"

enum { NET_OUTPUTS = 24, NET_INPUTS = 64 };

/* The outputs of one run, as copies. */
typedef struct net_result {
    uint32_t      count;
    sinter_tensor out[NET_OUTPUTS];
    char          name[NET_OUTPUTS][64];
} net_result;

typedef struct net_data { const char *name; sinter_tensor tensor; } net_data;

/* Builds for `device` with kernels that the cost model chooses, and runs once. Inputs that `data` does not name get
 * seeded numbers (quarters between -2 and 2; indices that fit). Returns what failed, in `error`; free the result. */
sinter_status net_run(sinter_network *net, const sinter_build_options *options, const char *device,
                      const net_data *data, uint32_t count, uint64_t seed, net_result *out, sinter_error *error);
/* The same for a model. */
sinter_status net_run_model(const void *model, size_t size, const sinter_build_options *options, const char *device,
                            uint64_t seed, net_result *out, sinter_error *error);
sinter_status net_run_file(const char *path, const sinter_build_options *options, const char *device, uint64_t seed,
                           net_result *out, sinter_error *error);
void   net_result_free(net_result *r);
double net_value(const sinter_tensor *t, int64_t i);        /* element i of any type */
int64_t net_count(const sinter_tensor *t);
/* The largest difference of two results, relative to the largest magnitude of each output; INFINITY: they cannot be
 * compared. `why` says where. */
double net_difference(const net_result *a, const net_result *b, char why[256]);

#endif
