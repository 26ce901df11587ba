// A stand-in for NVIDIA's libnvidia-ml.so.1, beside the one for the driver (driver.cpp), whose UUIDs it knows. It
// answers some of the questions that smembench asks; the others it lacks, as an old driver's library lacks new ones.
//
// Environment:
//   STAND_IN_MEMORY_MHZ      the memory's highest clock, which gives the peak bandwidth; 1000000, above any host's
//   STAND_IN_THROTTLED       the clock event reasons, 0
//   STAND_IN_THROTTLED_FROM  asked for the how many-th time they are first given, 1; before it is 0
//   STAND_IN_THROTTLED_TO    asked for the how many-th time they are last given, for ever

#include <climits>
#include <cstring>

#include "settings.h"

namespace {

enum { SUCCESS = 0, NOT_FOUND = 6 };
constexpr unsigned MEMORY_CLOCK = 2;
int the_gpu;

unsigned clock_mhz(unsigned kind)
{
    return kind == MEMORY_CLOCK ? setting("STAND_IN_MEMORY_MHZ", 1000000) : 1000;
}

}  // namespace

extern "C" {

int nvmlInitWithFlags(unsigned)
{
    return SUCCESS;
}

const char *nvmlErrorString(int)
{
    return "the NVML stand-in does not know";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    std::strncpy(version, "stand-in", length);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &the_gpu;
    // "driver stand-in" in hexadecimal, as the driver's UUID begins.
    return std::strncmp(uuid, "GPU-64726976-6572-2073-7461-6e642d696e", 38) == 0 ? SUCCESS : NOT_FOUND;
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
    long from = setting("STAND_IN_THROTTLED_FROM", 1), to = setting("STAND_IN_THROTTLED_TO", LONG_MAX);
    bool throttled = asked >= from && asked <= to;
    *reasons = throttled ? setting("STAND_IN_THROTTLED", 0) : 0;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *, unsigned, unsigned *celsius)
{
    *celsius = 40;
    return SUCCESS;
}

}  // extern "C"
