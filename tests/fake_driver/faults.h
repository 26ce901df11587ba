// What is to go wrong: the faults of the environment variable FAKE_DRIVER_FAULTS (README.md).

#pragma once

#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

struct Fault {
    std::string where;
    long nth;
    int result;
};

static std::vector<Fault> planned()
{
    std::vector<Fault> faults;
    std::istringstream all(std::getenv("FAKE_DRIVER_FAULTS") ? std::getenv("FAKE_DRIVER_FAULTS") : "");
    for (std::string one; std::getline(all, one, ',');) {
        Fault fault;
        std::istringstream(one) >> fault.where >> fault.nth >> fault.result;
        faults.push_back(fault);
    }
    return faults;
}

// The file that a fault leaves when it happens, or "" where each process has its own faults.
static std::string mark_of(size_t number)
{
    const char *path = std::getenv("FAKE_DRIVER_FAULTS_ONCE");
    return path ? path + std::to_string(number) : "";
}

// Whether a fault may happen: with marks, only to the process that makes its mark.
static bool may_happen(size_t number)
{
    std::string mark = mark_of(number);
    if (mark.empty())
        return true;
    int file = open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file >= 0)
        close(file);
    return file >= 0;
}

// The error planned for this call, the nth that `matches`; does not return when it is to hang.
static CUresult fault(const std::function<bool(const std::string &)> &matches)
{
    static std::vector<Fault> faults = planned();
    for (size_t number = 0; number < faults.size(); ++number)
        if (Fault &each = faults[number]; matches(each.where) && --each.nth == 0 && may_happen(number)) {
            while (each.result == 0)
                pause();
            return CUresult(each.result);
        }
    return CUDA_SUCCESS;
}
