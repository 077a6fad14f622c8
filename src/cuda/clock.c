/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - how fast a GPU runs, by NVML: asked for while kernels are measured, so opened when first asked.
 *
 * All of it is optional. A library that lacks a function, or a device that does not tell, is a clock that is not
 * watched. */
#include "cuda/cuda_device.h"

#include <stdio.h>

enum { NVML_UNKNOWN, NVML_OPEN, NVML_NONE };
enum {
    NVML_REASONS_SLOW = NVML_REASON_POWER_CAP | NVML_REASON_HARDWARE_SLOWDOWN | NVML_REASON_THERMAL |
                        NVML_REASON_HARDWARE_THERMAL | NVML_REASON_POWER_BRAKE
};

/* NVML counts devices that CUDA_VISIBLE_DEVICES hides, so a device is known by its number of manufacture. */
static bool find(device *d)
{
    const cuda_driver *l = &d->driver;
    CUuuid id = { { 0 } };
    char name[48] = "GPU-";
    if (!l->nvmlDeviceGetHandleByUUID || l->cuDeviceGetUuid(&id, d->handle) != CUDA_SUCCESS) return false;
    for (uint32_t i = 0, at = 4; i < sizeof id.bytes; i++) {
        at +=
            (uint32_t)snprintf(name + at, sizeof name - at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                               (unsigned)(unsigned char)id.bytes[i]);
    }
    return l->nvmlDeviceGetHandleByUUID(name, &d->nvml) == NVML_SUCCESS;
}

static bool open_clock(device *d)
{
    const cuda_driver *l = &d->driver;
    if (d->nvml_state != NVML_UNKNOWN) return d->nvml_state == NVML_OPEN;
    d->nvml_state = NVML_NONE;
    if (!d->is_present || !l->nvml || !l->nvmlDeviceGetClockInfo || !l->nvmlInit_v2 || !l->nvmlShutdown) return false;
    if (l->nvmlInit_v2() != NVML_SUCCESS) return false;
    if (find(d)) d->nvml_state = NVML_OPEN;
    else (void)l->nvmlShutdown();
    return d->nvml_state == NVML_OPEN;
}

bool cuda_device_clock(device *d, device_clock *out)
{
    const cuda_driver *l = &d->driver;
    unsigned mhz = 0;
    unsigned long long reasons = 0;
    cuda_lock_take(&d->lock);
    const bool is_open = open_clock(d);
    cuda_lock_give(&d->lock);
    if (!is_open || l->nvmlDeviceGetClockInfo(d->nvml, NVML_CLOCK_SM, &mhz) != NVML_SUCCESS || !mhz) return false;
    /* One name in newer libraries, the other in older ones. */
    const bool is_told = (l->nvmlDeviceGetCurrentClocksEventReasons &&
                          l->nvmlDeviceGetCurrentClocksEventReasons(d->nvml, &reasons) == NVML_SUCCESS) ||
                         (l->nvmlDeviceGetCurrentClocksThrottleReasons &&
                          l->nvmlDeviceGetCurrentClocksThrottleReasons(d->nvml, &reasons) == NVML_SUCCESS);
    *out = (device_clock){ .mhz = mhz, .is_throttled = is_told && (reasons & NVML_REASONS_SLOW) };
    return true;
}

sinter_status cuda_device_rates(env *e, device *d, size_t touched, device_rates *out)
{
    const kernel_target *t = &d->target;
    /* Multiply-adds of f16 in tensor cores, over those of f32 in the others. */
    const double more = t->isa == 75 ? 8 : t->isa == 80 || t->isa == 90 || t->isa == 100 ? 16 : 4;
    (void)e;
    (void)touched;
    *out = (device_rates){ .f32 = t->flops,
                           .f16 = more * t->flops,
                           .int8 = 2 * more * t->flops,
                           .memory = t->bandwidth,
                           .cache = t->bandwidth };
    return SINTER_OK;
}

void cuda_device_clock_close(device *d)
{
    if (d->nvml_state == NVML_OPEN) (void)d->driver.nvmlShutdown();
    d->nvml_state = NVML_NONE;
}
