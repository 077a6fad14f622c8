/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c - the rig that damages engines, for those with two places too. */
#include "../fuzz/engine_mutate.c"
#include "../fuzz/mutate_size.c"
#include "../fuzz/engine_parts.c"
#include "../fuzz/engine_rig.c"
#include "../fuzz/guarded.c"
