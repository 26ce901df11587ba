// CUDA C as C++ of the host. The threads of a block are contexts that take turns, each until it ends or comes to a
// barrier, so a missing barrier goes wrong the same way every time. Blocks run one after the other.

#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "host_kernel.h"

struct Index {
    unsigned x, y;
};
static Index threadIdx, blockIdx, gridDim;

using std::fma;

template <class T> static inline T atomicAdd(T *to, T value)
{
    T before = *to;
    *to += value;
    return before;
}

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __constant__ static
#define __launch_bounds__(threads, blocks)
#define __syncwarp() on_host::take_turns()
#define __syncthreads() on_host::take_turns()

namespace on_host {

constexpr unsigned MOST_THREADS = 1024, STACK_BYTES = 64 << 10;
static char stacks[MOST_THREADS][STACK_BYTES];
static jmp_buf turns[MOST_THREADS], scheduler;  // swapcontext would set the signal mask, a system call, at every turn
static enum { NEW, WAITS, ENDED } states[MOST_THREADS];
static unsigned thread;
static std::function<void()> kernel;

static void run_thread()
{
    kernel();
    states[thread] = ENDED;
    _longjmp(scheduler, 1);
}

static void take_turns()
{
    states[thread] = WAITS;
    if (!_setjmp(turns[thread]))
        _longjmp(scheduler, 1);
}

static void begin_thread()
{
    ucontext_t begin;
    getcontext(&begin);
    begin.uc_stack = {stacks[thread], 0, STACK_BYTES};
    begin.uc_link = nullptr;
    makecontext(&begin, run_thread, 0);
    setcontext(&begin);
}

static void run_block(Index block)
{
    static unsigned threads, running;  // kept in memory across the jumps
    threads = running = block.x * block.y;
    std::fill_n(states, threads, NEW);
    while (running)
        for (thread = 0; thread < threads; ++thread)
            if (states[thread] != ENDED) {
                threadIdx = {thread % block.x, thread / block.x};
                if (!_setjmp(scheduler))
                    states[thread] == NEW ? begin_thread() : _longjmp(turns[thread], 1);
                running -= states[thread] == ENDED;
            }
}

static void run_without_barriers(Index block)
{
    for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
            kernel();
}

static void launch(Index grid, Index block, bool has_barriers, std::function<void()> body)
{
    kernel = body;
    gridDim = grid;
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
            has_barriers ? run_block(block) : run_without_barriers(block);
}

}  // namespace on_host
