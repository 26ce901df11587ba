// libnvidia-ml.so.1 beside the fake driver, whose UUIDs it knows. It answers some of the questions that smembench asks; the
// others it lacks, as an old driver's library lacks new ones. See README.md.

#include <chrono>
#include <climits>
#include <cstring>

#include "settings.h"

namespace {

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
constexpr unsigned MEMORY_CLOCK = 2;
int the_gpu, an_instance;

unsigned clock_mhz(unsigned kind)
{
    return kind == MEMORY_CLOCK ? setting("FAKE_DRIVER_MEMORY_MHZ", 1000000) : 1000;
}

}  // namespace

extern "C" {

int nvmlInitWithFlags(unsigned)
{
    return SUCCESS;
}

const char *nvmlErrorString(int)
{
    return "the fake NVML has no words for it";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    std::strncpy(version, "fake", length);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    const bool mig = setting("FAKE_DRIVER_MIG", 0);
    *device = mig ? &an_instance : &the_gpu;
    // "the fake GPU" in hexadecimal, as the driver's UUID begins.
    const char *begin = mig ? "MIG-74686520-6661-6b65-2047-5055" : "GPU-74686520-6661-6b65-2047-5055";
    return std::strncmp(uuid, begin, 32) == 0 ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *instance, void **device)
{
    *device = &the_gpu;
    return instance == &an_instance ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetMigMode(void *, unsigned *now, unsigned *then)
{
    *now = *then = unsigned(setting("FAKE_DRIVER_MIG", 0));
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *, unsigned kind, unsigned *mhz)
{
    *mhz = clock_mhz(kind);
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *, unsigned kind, unsigned *mhz)
{
    *mhz = clock_mhz(kind);
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *, unsigned long long *reasons)
{
    static long asked = 0;
    ++asked;
    long from = setting("FAKE_DRIVER_THROTTLED_FROM", 1), to = setting("FAKE_DRIVER_THROTTLED_TO", LONG_MAX);
    bool throttled = asked >= from && asked <= to;
    *reasons = throttled ? setting("FAKE_DRIVER_THROTTLED", 0) : 0;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, unsigned, unsigned *celsius)
{
    *celsius = 40;
    return device == &the_gpu ? SUCCESS : NOT_SUPPORTED;
}

// Joules as a GPU takes them that always draws as many watts.
int nvmlDeviceGetTotalEnergyConsumption(void *, unsigned long long *millijoules)
{
    long watts = setting("FAKE_DRIVER_WATTS", 300);
    *millijoules = watts * std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
    return watts ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(void *, unsigned *milliwatts)
{
    *milliwatts = 1000 * setting("FAKE_DRIVER_WATTS", 300);
    return *milliwatts ? SUCCESS : NOT_SUPPORTED;
}

}  // extern "C"
