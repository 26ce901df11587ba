// libcuda.so.1 without a GPU: the driver's entry points on the host's memory and clock. See README.md.

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "cubin.h"
#include "faults.h"
#include "gpu.h"
#include "settings.h"

extern "C" {

// The driver itself.

CUresult cuInit(unsigned)
{
    ENTER;
    bool lost = setting("FAKE_DRIVER_LOST", 0) && access(mark_of(0).c_str(), F_OK) == 0;
    return lost || visible().empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION / 1000 * 1000;
    return CUDA_SUCCESS;
}

// cuda.h renames a function to its latest version, and so are they called here.
CUresult cuGetProcAddress(const char *symbol, void **function, int, cuuint64_t, CUdriverProcAddressQueryResult *status)
{
    Dl_info self;
    dladdr((void *)cuInit, &self);
    static void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = nullptr;
    for (const char *version : {"_v4", "_v3", "_v2", ""})
        if (!*function)
            *function = dlsym(library, (symbol + std::string(version)).c_str());
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// Tables of functions without documentation, of which there are none here. NVRTC asks for some, and does without.
CUresult cuGetExportTable(const void **table, const CUuuid *)
{
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

struct ErrorText {
    CUresult error;
    const char *name, *text;
};

static const ErrorText *error_text(CUresult error)
{
    static const ErrorText texts[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
        {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
        {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
        {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
         "operation not permitted when stream is capturing"},
        {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
         "operation failed due to a previous error during capture"},
    };
    for (const ErrorText &each : texts)
        if (each.error == error)
            return &each;
    static const ErrorText other{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "an error the fake driver has no words for"};
    return &other;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error_text(error)->name;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error_text(error)->text;
    return CUDA_SUCCESS;
}

// Devices.

CUresult cuDeviceGetCount(int *count)
{
    ENTER;
    *count = int(visible().size());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER;
    *device = ordinal;
    return ordinal < int(visible().size()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice)
{
    ENTER;
    std::strncpy(name, in_mig_mode() ? "fake driver MIG 1g.5gb, no GPU" : "fake driver, no GPU", length);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ENTER;
    *uuid = uuid_of(visible()[device]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice)
{
    ENTER;
    *bytes = memory_bytes();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice)
{
    ENTER;
    static const std::map<CUdevice_attribute, int> values = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, MOST_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, MOST_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, MOST_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 8192},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    };
    auto found = values.find(attribute);
    *value = found == values.end() ? 0 : found->second;
    return CUDA_SUCCESS;
}

// Contexts: the primary ones.

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER;
    *context = &contexts()[device];
    ++(*context)->retained;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER;
    CUctx_st &context = contexts()[device];
    return context.retained && context.retained-- ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current.empty() ? nullptr : current.back();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER;
    if (!current.empty())
        current.pop_back();
    if (context)
        current.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    ENTER;
    current.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    ENTER_IN_CONTEXT;
    *context = current.back();
    current.pop_back();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER_IN_CONTEXT;
    *device = CUdevice(current.back() - contexts());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER_IN_CONTEXT;
    *least = *greatest = 0;
    return CUDA_SUCCESS;
}

// Profiling: of no profiler.

CUresult cuProfilerStart()
{
    ENTER_IN_CONTEXT;
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop()
{
    ENTER_IN_CONTEXT;
    return CUDA_SUCCESS;
}

// Memory.

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
    ENTER_IN_CONTEXT;
    *free = *total = memory_bytes();
    for (const auto &[address, allocation] : allocations)
        if (allocation.context == current.back() && allocation.type == CU_MEMORYTYPE_DEVICE)
            *free -= allocation.bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    ENTER_UNLESS_CAPTURING;
    return allocate(address, bytes, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemFree(CUdeviceptr address)
{
    ENTER_AND_WAIT;
    return release(address, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned)
{
    ENTER_UNLESS_CAPTURING;
    return allocate((CUdeviceptr *)address, bytes, CU_MEMORYTYPE_HOST);
}

CUresult cuMemAllocHost(void **address, size_t bytes)
{
    ENTER_UNLESS_CAPTURING;
    return allocate((CUdeviceptr *)address, bytes, CU_MEMORYTYPE_HOST);
}

CUresult cuMemFreeHost(void *address)
{
    ENTER_AND_WAIT;
    return release(CUdeviceptr(address), CU_MEMORYTYPE_HOST);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    ENTER_IN_CONTEXT;
    auto found = allocation_of(address);
    if (found == allocations.end())
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = found->second.context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)data = found->second.type;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = int(found->second.context - contexts());
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    ENTER_IN_CONTEXT;
    bool known = allocation_of(address) != allocations.end();
    for (unsigned i = 0; i < count; ++i) {
        if (!known)  // not an error here: nothing is known of it
            *(int *)data[i] = 0;
        else if (CUresult error = cuPointerGetAttribute(data[i], attributes[i], address); error != CUDA_SUCCESS)
            return error;
    }
    return CUDA_SUCCESS;
}

// Copies. The address says where memory is; all of it is the host's.

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER_IN_CONTEXT;
    return submit_copy(stream, (void *)to, (void *)from, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER_IN_CONTEXT;
    return submit_copy(stream, (void *)to, from, bytes);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER_IN_CONTEXT;
    return submit_copy(stream, to, (void *)from, bytes);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    ENTER_AND_WAIT;
    return submit_copy(nullptr, (void *)to, from, bytes);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    ENTER_AND_WAIT;
    return submit_copy(nullptr, to, (void *)from, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
    ENTER_IN_CONTEXT;
    return submit(stream, [=] {
        std::memset((void *)address, value, bytes);
        return CUDA_SUCCESS;
    }, CU_GRAPH_NODE_TYPE_MEMSET);
}

// Streams and captures.

CUresult cuStreamCreate(CUstream *stream, unsigned)
{
    ENTER_IN_CONTEXT;
    *stream = new CUstream_st{current.back()};
    return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    if (priority != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy(CUstream stream)
{
    ENTER_IN_CONTEXT;
    delete stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER_IN_CONTEXT;
    return resolved(stream)->capture ? spoiled() : waited(resolved(stream)->context);
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    ENTER_IN_CONTEXT;
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || resolved(stream)->capture || stream != resolved(stream))
        return CUDA_ERROR_ILLEGAL_STATE;
    join(stream, new CUgraph_st, {});
    capturing.insert(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    ENTER_IN_CONTEXT;
    if (!capturing.erase(stream))
        return CUDA_ERROR_ILLEGAL_STATE;
    *graph = stream->capture;
    for (CUstream each : (*graph)->streams) {
        each->capture = nullptr;
        each->last.clear();
    }
    if (!stream->invalidated)
        return CUDA_SUCCESS;
    delete *graph;
    *graph = nullptr;
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long)
{
    ENTER_UNLESS_CAPTURING;
    *executable = new CUgraphExec_st{graph->in_order(), current.back()};
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER;
    delete graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    ENTER_IN_CONTEXT;
    if (executable->context != resolved(stream)->context)
        return CUDA_ERROR_INVALID_HANDLE;
    return submit(stream, [operations = executable->operations] {
        for (const Operation &operation : operations)
            if (CUresult error = operation(); error != CUDA_SUCCESS)
                return error;
        return CUDA_SUCCESS;
    }, CU_GRAPH_NODE_TYPE_GRAPH);
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    ENTER;
    delete executable;
    return CUDA_SUCCESS;
}

// The nodes of a graph. Without room for them the lists' lengths are told.

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    ENTER;
    *count = nodes ? std::min(*count, graph->nodes.size()) : graph->nodes.size();
    for (size_t i = 0; nodes && i < *count; ++i)
        nodes[i] = graph->nodes[i].get();
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
    ENTER;
    *count = from ? std::min(*count, graph->edges.size()) : graph->edges.size();
    for (size_t i = 0; from && i < *count; ++i) {
        std::tie(from[i], to[i]) = graph->edges[i];
        if (data)
            data[i] = CUgraphEdgeData{};
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    ENTER;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
    ENTER;
    *event = node->event;
    return node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                   CUevent event)
{
    ENTER;
    *node = graph->add(CU_GRAPH_NODE_TYPE_EVENT_RECORD, recording(event), event);
    for (size_t i = 0; i < count; ++i)
        graph->edges.emplace_back(before[i], *node);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *, size_t count)
{
    ENTER;
    for (size_t i = 0; i < count; ++i)
        graph->edges.emplace_back(from[i], to[i]);
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *, size_t count)
{
    ENTER;
    for (size_t i = 0; i < count; ++i) {
        auto edge = std::find(graph->edges.begin(), graph->edges.end(), std::make_pair(from[i], to[i]));
        if (edge == graph->edges.end())
            return CUDA_ERROR_INVALID_VALUE;
        graph->edges.erase(edge);
    }
    return CUDA_SUCCESS;
}

// Events.

CUresult cuEventCreate(CUevent *event, unsigned)
{
    ENTER_IN_CONTEXT;
    *event = new CUevent_st{current.back(), {}};
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    ENTER;
    delete event;
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    ENTER_IN_CONTEXT;
    if (event->context != resolved(stream)->context)
        return CUDA_ERROR_INVALID_HANDLE;
    // Recorded in a capture without this flag an event only orders the graph's nodes, and has no time.
    event->capture = flags & CU_EVENT_RECORD_EXTERNAL ? nullptr : resolved(stream)->capture;
    if (!event->capture)
        return submit(stream, recording(event), CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    event->ready = false;
    event->last = resolved(stream)->last;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    ENTER;
    return waited(event->context);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

// Outside of captures streams wait for everything.
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned)
{
    ENTER_IN_CONTEXT;
    if (event->capture)
        join(resolved(stream), event->capture, event->last);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end)
{
    ENTER;
    if (!begin->ready || !end->ready)
        return CUDA_ERROR_INVALID_HANDLE;
    *ms = std::chrono::duration<float, std::milli>(end->recorded - begin->recorded).count();
    return CUDA_SUCCESS;
}

// Code. A kernel's and a function's handle are the same here, as the driver takes either for a launch.

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned,
                           CUlibraryOption *, void **, unsigned)
{
    ENTER_UNLESS_CAPTURING;
    if (std::memcmp(code, ELFMAG, SELFMAG) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    *library = new CUlib_st{std::string((const char *)code, elf_bytes(code)), {}, {}};
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    ENTER;
    delete library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ENTER;
    int symbol = symbol_of(library->image, name);
    if (symbol < 0)
        return CUDA_ERROR_NOT_FOUND;
    auto &function = library->functions[name];
    if (!function) {
        function = std::make_unique<CUfunc_st>(CUfunc_st{library, name, {}});
        function->attributes = {
            {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, MOST_THREADS},
            {CU_FUNC_ATTRIBUTE_NUM_REGS, recorded(library->image, REGISTERS, symbol)},
            {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, recorded(library->image, FRAME_BYTES, symbol)},
            {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, int(shared_bytes(library->image, name))},
        };
    }
    *kernel = (CUkernel)function.get();
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    ENTER_IN_CONTEXT;
    *bytes = variable_bytes(library->image, name);
    if (!*bytes)
        return CUDA_ERROR_NOT_FOUND;
    std::string &variable = library->variables[name];
    variable.resize(*bytes);
    *address = CUdeviceptr(variable.data());
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice)
{
    ENTER;
    *value = ((CUfunction)kernel)->attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice)
{
    ENTER;
    ((CUfunction)kernel)->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ENTER_IN_CONTEXT;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

// One block at a time runs here.
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t)
{
    ENTER_IN_CONTEXT;
    *blocks = 1;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction, const CUlaunchConfig *)
{
    ENTER_IN_CONTEXT;
    *clusters = 1;
    return CUDA_SUCCESS;
}

// What CUDA refuses of a matrix in rows is refused, and of one whose rows are two dimensions. Of two dimensions the map is
// one that host forms copy by; no host form copies by three.
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
{
    ENTER;
    const int itemsize = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : type == CU_TENSOR_MAP_DATA_TYPE_UINT16 ? 2 : 4;
    const unsigned row_bytes = itemsize * box[0], swizzled_bytes = swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64 : 128;
    if (rank < 2 || rank > 3 || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < rank; ++i)
        if (!sizes[i] || sizes[i] > 1ull << 31 || !box[i] || box[i] > 256 || !steps[i] || steps[i] > 8)
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < rank - 1; ++i)
        if (!strides[i] || strides[i] % 16 || strides[i] >= 1ull << 40 || (i && strides[i] % strides[i - 1]))
            return CUDA_ERROR_INVALID_VALUE;
    if (row_bytes % 16 || (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row_bytes > swizzled_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    *map = CUtensorMap{};
    if (rank == 2) {
        const HostMap encoded{(char *)address, sizes[0], sizes[1], strides[0], box[0], box[1]};
        std::memcpy(map, &encoded, sizeof encoded);
    }
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *launch, CUfunction function, void **parameters, void **)
{
    ENTER_IN_CONTEXT;
    return submit_launch(*launch, function, parameters);
}

}  // extern "C"
