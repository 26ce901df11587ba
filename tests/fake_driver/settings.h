// Numbers that the environment sets.

#pragma once

#include <cstdlib>

static inline long setting(const char *name, long otherwise)
{
    const char *text = std::getenv(name);
    return text ? std::atol(text) : otherwise;
}
