// The GPUs that the driver's entry points work on: contexts, streams and their captures, events, memory, kernels.

#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "faults.h"
#include "host_kernel.h"
#include "settings.h"

using Clock = std::chrono::steady_clock;
using Operation = std::function<CUresult()>;

// cuda.h leaves these types open.
struct CUgraphNode_st {
    CUgraphNodeType type;
    Operation operation;
    CUevent event;  // that it records
};
struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    std::vector<std::pair<CUgraphNode, CUgraphNode>> edges;
    std::vector<CUstream> streams;  // from which it is captured

    CUgraphNode add(CUgraphNodeType type, const Operation &operation, CUevent event)
    {
        nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{type, operation, event}));
        return nodes.back().get();
    }

    // Its operations, each behind those that it depends on.
    std::vector<Operation> in_order() const
    {
        std::map<CUgraphNode, size_t> missing;
        std::multimap<CUgraphNode, CUgraphNode> behind(edges.begin(), edges.end());
        for (const auto &[from, to] : edges)
            ++missing[to];
        std::vector<CUgraphNode> ready;
        for (const auto &node : nodes)
            if (!missing[node.get()])
                ready.push_back(node.get());
        std::vector<Operation> found;
        for (size_t next = 0; next < ready.size(); ++next) {
            found.push_back(ready[next]->operation);
            for (auto [edge, end] = behind.equal_range(ready[next]); edge != end; ++edge)
                if (!--missing[edge->second])
                    ready.push_back(edge->second);
        }
        return found;
    }
};
struct CUgraphExec_st {
    std::vector<Operation> operations;
    CUcontext context;
};
struct CUstream_st {
    CUcontext context;
    CUgraph capture = nullptr;
    std::vector<CUgraphNode> last;  // what its next node depends on
    bool invalidated = false;
};
struct CUevent_st {
    CUcontext context;
    Clock::time_point recorded;
    bool ready = false;
    CUgraph capture = nullptr;  // in which it orders nodes
    std::vector<CUgraphNode> last;
};
struct CUctx_st {
    CUstream_st null_stream{this};
    unsigned retained = 0;
    CUresult pending = CUDA_SUCCESS;  // of a kernel, told by the next call that waits
    CUresult sticky = CUDA_SUCCESS;   // told by every call from then on
};
struct CUlib_st {
    std::string image;
    std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
    std::map<std::string, std::string> variables;  // their bytes by name
};
struct CUfunc_st {
    CUlibrary library;
    std::string name;
    std::map<CUfunction_attribute, int> attributes;
};

struct Allocation {
    size_t bytes;
    CUcontext context;
    CUmemorytype type;
};

constexpr int MOST_THREADS = 1024;

// Read when they are asked for: a process may be forked from one that has loaded this library.
static int number_of_devices() { return setting("FAKE_DRIVER_DEVICES", 1); }
static bool in_mig_mode() { return setting("FAKE_DRIVER_MIG", 0); }
static size_t memory_bytes() { return setting("FAKE_DRIVER_MEMORY", 1L << 30); }

static CUuuid uuid_of(int device)
{
    const int serial = int(setting("FAKE_DRIVER_SERIAL", 0)) * 16 + device;
    CUuuid uuid;
    std::memcpy(uuid.bytes, "the fake GPU", 12);
    std::memcpy(uuid.bytes + 12, &serial, 4);
    return uuid;
}

static std::string named(int device)
{
    std::string text = in_mig_mode() ? "MIG-" : "GPU-";
    for (int i = 0; i < 16; ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid_of(device).bytes[i]);
        text += digits;
    }
    return text;
}

// The devices that CUDA_VISIBLE_DEVICES names, up to one that is none. In MIG mode a process sees a single instance.
static const std::vector<int> &visible()
{
    static const std::vector<int> found = [] {
        std::vector<int> devices;
        const int all = number_of_devices();
        const char *given = std::getenv("CUDA_VISIBLE_DEVICES");
        std::stringstream names(given ? given : "");
        for (int device = 0; !given && device < all; ++device)
            devices.push_back(device);
        for (std::string name; std::getline(names, name, ',');) {
            int device = 0;
            while (device < all && std::to_string(device) != name && named(device).rfind(name, 0) != 0)
                ++device;
            if (device == all)
                break;
            devices.push_back(device);
        }
        devices.resize(std::min(devices.size(), size_t(in_mig_mode() ? 1 : all)));
        return devices;
    }();
    return found;
}

// Never destroyed: at a process's end libraries still release what they have.
static CUctx_st *contexts()  // the primary ones, by device
{
    static CUctx_st *const all = new CUctx_st[number_of_devices()];
    return all;
}
static auto &allocations = *new std::map<CUdeviceptr, Allocation>;
static thread_local std::vector<CUcontext> current;  // a stack; its top is the context of the thread's calls
static thread_local std::set<CUstream> capturing;    // streams in a capture that this thread began

static bool sticks(CUresult error)
{
    return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT || error == CUDA_ERROR_ASSERT ||
           (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED);
}

// A call that fails in a capture of its thread, or that the capture forbids, ends the capture's use.
static CUresult spoiled()
{
    for (CUstream stream : capturing)
        stream->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// Add a line to the file of the environment variable FAKE_DRIVER_LOG.
static void log(const std::string &line)
{
    static FILE *file = std::getenv("FAKE_DRIVER_LOG") ? std::fopen(std::getenv("FAKE_DRIVER_LOG"), "a") : nullptr;
    if (file) {
        std::fputs((line + "\n").c_str(), file);
        std::fflush(file);
    }
}

// What a call of an entry point is answered before it does anything.
static CUresult entered(const char *function)
{
    std::string name = function;
    if (size_t version = name.rfind("_v"); version != std::string::npos)
        name.resize(version);
    log(name);
    CUcontext context = current.empty() ? nullptr : current.back();
    if (context && context->sticky)
        return context->sticky;
    CUresult error = fault([&](const std::string &where) { return where == name; });
    if (context && sticks(error))
        context->sticky = error;
    if (error)
        spoiled();
    return error;
}

static CUresult waited(CUcontext context)
{
    if (context->pending) {
        context->sticky = context->pending;
        context->pending = CUDA_SUCCESS;
    }
    return context->sticky;
}

// The four ways to begin an entry point.
#define ENTER                                                         \
    if (CUresult refused = entered(__func__); refused != CUDA_SUCCESS) \
    return refused
#define ENTER_IN_CONTEXT \
    ENTER;               \
    if (current.empty()) \
    return CUDA_ERROR_INVALID_CONTEXT
#define ENTER_UNLESS_CAPTURING \
    ENTER_IN_CONTEXT;          \
    if (!capturing.empty())    \
    return spoiled()
#define ENTER_AND_WAIT      \
    ENTER_UNLESS_CAPTURING; \
    if (CUresult failed = waited(current.back()); failed != CUDA_SUCCESS) \
    return failed

static CUstream resolved(CUstream stream)
{
    return stream <= CU_STREAM_PER_THREAD ? &current.back()->null_stream : stream;
}

// Work takes this long beside the host's time for it, so that no work is over before the host's clock has moved.
static constexpr auto LEAST = std::chrono::microseconds(5);
static Clock::duration worked{};

static Operation working(const Operation &operation)
{
    return [=] {
        worked += LEAST;
        return operation();
    };
}

// Do it, or note it down while the stream is captured.
static CUresult submit(CUstream handle, const Operation &given, CUgraphNodeType type, CUevent event = nullptr)
{
    const Operation operation = type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? given : working(given);
    CUstream stream = resolved(handle);
    if (!stream->capture)
        return operation();
    if (stream->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraph_st &graph = *stream->capture;
    CUgraphNode node = graph.add(type, operation, event);
    for (CUgraphNode last : stream->last)
        graph.edges.emplace_back(last, node);
    stream->last = {node};
    return CUDA_SUCCESS;
}

// The stream's next node is a node of the graph, behind these.
static void join(CUstream stream, CUgraph graph, const std::vector<CUgraphNode> &nodes)
{
    if (!stream->capture) {
        stream->capture = graph;
        stream->invalidated = false;
        graph->streams.push_back(stream);
    }
    stream->last.insert(stream->last.end(), nodes.begin(), nodes.end());
}

static Operation recording(CUevent event)
{
    return [=] {
        event->recorded = Clock::now() + worked;
        event->ready = true;
        return CUDA_SUCCESS;
    };
}

static CUresult submit_copy(CUstream stream, void *to, const void *from, size_t bytes)
{
    return submit(stream, [=] {
        std::memcpy(to, from, bytes);
        return CUDA_SUCCESS;
    }, CU_GRAPH_NODE_TYPE_MEMCPY);
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemorytype type)
{
    constexpr size_t ALIGNMENT = 512;
    size_t free = 0, total = 0;
    cuMemGetInfo(&free, &total);
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEMORYTYPE_DEVICE && bytes > free)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = std::aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    *address = CUdeviceptr(memory);
    allocations[*address] = {bytes, current.back(), type};
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, CUmemorytype type)
{
    auto found = allocations.find(address);
    if (found == allocations.end() || found->second.type != type)
        return CUDA_ERROR_INVALID_VALUE;
    allocations.erase(found);
    std::free((void *)address);
    return CUDA_SUCCESS;
}

// The allocation that an address is in, or the map's end.
static auto allocation_of(CUdeviceptr address)
{
    auto found = allocations.upper_bound(address);
    if (found == allocations.begin())
        return allocations.end();
    --found;
    return address < found->first + found->second.bytes ? found : allocations.end();
}

// Launches.

static const HostKernel *host_kernels()
{
    static const HostKernel *table = [] {
        const char *path = std::getenv("FAKE_DRIVER_KERNELS");
        void *library = path ? dlopen(path, RTLD_NOW) : nullptr;
        return library ? (const HostKernel *)dlsym(library, "HOST_KERNELS") : nullptr;
    }();
    static const HostKernel none{};
    return table ? table : &none;
}

// A kernel's parameters are those of its arrays, then its scalars, then its tensor maps. What a compiler makes of a one-dimensional array: how
// many parameters, and which of them is the address of its elements. Triton's kernels have more behind the scalars.
struct Passed {
    unsigned parameters, data;
};
constexpr Passed BY_C{1, 0}, BY_NUMBA{7, 4}, BY_MLIR{5, 1};

static Passed passed_to(const HostKernel &kernel, unsigned parameters)
{
    for (const Passed &each : {BY_NUMBA, BY_MLIR})
        if (parameters == kernel.arrays * each.parameters + kernel.scalars + kernel.maps)
            return each;
    return BY_C;
}

// The host form of a kernel's name and block, with a copy of its parameters: a graph replays them after the call.
static std::function<void()> host_form(CUfunction function, const CUlaunchConfig &launch, void **parameters)
{
    const std::string &name = function->name;
    for (const HostKernel *kernel = host_kernels(); kernel->name; ++kernel) {
        bool named = name == kernel->name || name.find(kernel->mangled) != std::string::npos;
        if (!named || kernel->block_x != launch.blockDimX || kernel->block_y != launch.blockDimY)
            continue;
        const Passed array = passed_to(*kernel, parameters_of(function->library->image, name));
        std::vector<void *> arrays;
        std::vector<CUtensorMap> maps;
        std::vector<unsigned> scalars;
        for (unsigned i = 0; i < kernel->arrays; ++i)
            arrays.push_back(*(void **)parameters[i * array.parameters + array.data]);
        void **behind = parameters + kernel->arrays * array.parameters;
        for (unsigned i = 0; i < kernel->scalars; ++i)
            scalars.push_back(*(unsigned *)behind[i]);
        for (unsigned i = 0; i < kernel->maps; ++i)
            maps.push_back(*(CUtensorMap *)behind[kernel->scalars + i]);
        return [=, library = function->library]() mutable {
            for (const auto &[variable, bytes] : library->variables)  // such a module has the one
                std::memcpy(kernel->constant, bytes.data(), std::min(bytes.size(), kernel->constant_bytes));
            std::vector<void *> passed = arrays;
            for (CUtensorMap &map : maps)
                passed.push_back(&map);
            kernel->run(launch.gridDimX, launch.gridDimY, passed.data(), scalars.data());
        };
    }
    return [] {};
}

static CUresult submit_launch(const CUlaunchConfig &launch, CUfunction function, void **parameters)
{
    if (launch.blockDimX * launch.blockDimY * launch.blockDimZ > MOST_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    // Unasked a block gets 48 KiB with what the kernel declares.
    const int asked = function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    const int unasked = (48 << 10) - function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    if (int(launch.sharedMemBytes) > std::max(asked, unasked))
        return CUDA_ERROR_INVALID_VALUE;
    log(function->name);
    CUcontext context = current.back();
    if (resolved(launch.hStream)->context != context)  // a copy may go to any stream, a launch may not
        return CUDA_ERROR_INVALID_HANDLE;
    return submit(launch.hStream, [=, name = function->name, run = host_form(function, launch, parameters)] {
        if (!context->pending)
            context->pending = fault([&](const std::string &part) { return name.find(part) != std::string::npos; });
        if (!context->pending)
            run();
        return CUDA_SUCCESS;
    }, CU_GRAPH_NODE_TYPE_KERNEL);
}
