/* SPDX-License-Identifier: Apache-2.0 */
/* seeds.h - small engines to damage: between them they have every feature of the format. */
#ifndef SEEDS_H
#define SEEDS_H

#include "engine_parts.h"
#include "onnx_bytes.h"

enum { SEED_MAX = 64 };

/* Models that make control flow nest, sizes that data decides, storages that grow. Each has inputs x: f32[n,4], c: bool
 * and t: i64, and a result y. The caller frees .at. */
enum { SEED_MODELS = 13 };
bytes    seed_model(uint32_t which);
/* Engines of all samples and models, some at each instruction set; returns how many. The caller frees each. */
uint32_t seed_engines(image out[SEED_MAX]);
/* The same for CUDA, on the driver that is none (cuda_fake.h): its kernels do nothing. */
uint32_t seed_engines_cuda(image out[SEED_MAX]);

#endif
