/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a stream, and where kernels on it say what they found wrong in the data. */
#ifndef CUDA_STREAM_H
#define CUDA_STREAM_H

#include "cuda/cuda_device.h"
#include "cuda/device/device_args.h"

struct stream {
    CUstream    handle;
    bool        is_own;
    bool        may_have_fault;         /* a program that can find faults was launched since the last wait */
    CUdeviceptr fault;                  /* struct device_fault */
    struct device_fault *seen;          /* pinned: its copy */
    CUevent     mark[STREAM_MARKS];     /* NULL until first used */
    CUevent     here;                   /* for other streams to wait for; NULL until first used */
};

sinter_status cuda_stream_create(env *e, device *d, void *native, stream **out);
void          cuda_stream_destroy(env *e, device *d, stream *s);
void         *cuda_stream_native(const stream *s);
sinter_status cuda_stream_wait(env *e, device *d, stream *s, data_fault *fault);
void          cuda_stream_finish(env *e, device *d, stream *s);
sinter_status cuda_stream_order(env *e, device *d, stream *s, stream *before);
sinter_status cuda_stream_mark(env *e, device *d, stream *s, uint32_t mark);
sinter_status cuda_stream_elapsed(env *e, device *d, stream *s, uint32_t from, uint32_t to, double *ns);
bool          cuda_stream_is_done(device *d, stream *s);
sinter_status cuda_stream_copy(env *e, device *d, stream *s, copy_kind kind, void *to, const void *from, size_t size);

#endif
