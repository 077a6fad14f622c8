/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - a clock that runs as the test says; not there until it does. */
#include "fake_state.h"

#include <stdio.h>
#include <string.h>

enum { READINGS_MAX = 64 };

/* Tests set it before anybody asks. */
static struct {
    unsigned mhz[READINGS_MAX], count, next;
    unsigned long long reasons;
    long opened;
} meter;

void fake_set_clock(const unsigned *mhz, unsigned count, unsigned long long reasons)
{
    memset(&meter, 0, sizeof meter);
    meter.count = count < READINGS_MAX ? count : READINGS_MAX;
    if (meter.count) memcpy(meter.mhz, mhz, meter.count * sizeof *mhz);
    meter.reasons = reasons;
}

long fake_clock_opened(void)
{
    return meter.opened;
}

FAKE_EXPORT nvmlReturn nvmlInit_v2(void);
FAKE_EXPORT nvmlReturn nvmlShutdown(void);
FAKE_EXPORT nvmlReturn nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice *device);
FAKE_EXPORT nvmlReturn nvmlDeviceGetClockInfo(nvmlDevice device, nvmlClock which, unsigned *mhz);
FAKE_EXPORT nvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice device, unsigned long long *reasons);

nvmlReturn nvmlInit_v2(void)
{
    if (!meter.count) return NVML_ERROR_NOT_SUPPORTED;
    meter.opened++;
    return NVML_SUCCESS;
}

nvmlReturn nvmlShutdown(void)
{
    meter.opened--;
    return NVML_SUCCESS;
}

/* The devices' numbers are those of fake_cuDeviceGetUuid. */
nvmlReturn nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice *device)
{
    *device = (nvmlDevice)(void *)&meter;
    return strcmp(uuid, "GPU-01010101-0101-0101-0101-010101010101") == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* The last reading stays. */
nvmlReturn nvmlDeviceGetClockInfo(nvmlDevice device, nvmlClock which, unsigned *mhz)
{
    if ((void *)device != (void *)&meter || which != NVML_CLOCK_SM || !meter.count) return NVML_ERROR_NOT_SUPPORTED;
    *mhz = meter.mhz[meter.next];
    if (meter.next + 1 < meter.count) meter.next++;
    return NVML_SUCCESS;
}

nvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice device, unsigned long long *reasons)
{
    (void)device;
    *reasons = meter.reasons;
    return NVML_SUCCESS;
}
