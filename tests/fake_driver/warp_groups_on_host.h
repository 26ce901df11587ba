// What ports by warp groups have from compute capability 9.0, for 16-bit types, of which bfloat16 is computed with: the
// TMA copies tiles at once, and reads and writes them when a thread waits for that, as late as it may on a GPU; at
// barriers in shared memory threads take turns, products are ready at once.

#pragma once

#include <functional>
#include <list>
#include <map>
#include <vector>

#include "cuda_on_host.h"

struct Barrier {
    unsigned arrivals, missing, phase;
    long missing_bytes;
};

static inline void change(Barrier *barrier, unsigned arrived, long bytes)
{
    barrier->missing -= arrived;
    barrier->missing_bytes += bytes;
    if (!barrier->missing && !barrier->missing_bytes) {
        barrier->missing = barrier->arrivals;
        barrier->phase ^= 1;
    }
}

static inline void set_barrier(Barrier *barrier, unsigned arrivals) { *barrier = {arrivals, arrivals, 0, 0}; }
static inline void expect_bytes(Barrier *barrier, unsigned count) { change(barrier, 1, count); }
static inline void arrive(Barrier *barrier) { change(barrier, 1, 0); }
static inline void wait_for_phase(const Barrier *barrier, unsigned phase)
{
    while (barrier->phase == phase)
        on_host::take_turns();
}

static inline void *dynamic_memory()
{
    alignas(1024) static unsigned char memory[227 << 10];
    return memory;
}

static inline void publish_barriers() {}
static inline void acquire_map(const void *) {}
static inline void prefetch_map(const void *) {}
static inline void publish_tile() {}
static inline unsigned own_group() { return threadIdx.x / 128; }
static inline void begin_products() {}
static inline void commit_products() {}
template <unsigned NEWEST> static inline void finish_products() {}
template <unsigned COUNT> static inline void add_registers() {}
template <unsigned COUNT> static inline void give_registers() {}

// By thread, its groups of tiles to be written, the last one not yet committed.
static std::map<unsigned, std::list<std::vector<std::function<void()>>>> stores;

static inline auto &started()
{
    auto &groups = stores[threadIdx.x];
    if (groups.empty())
        groups.emplace_back();
    return groups;
}

static inline void commit_stores() { started().emplace_back(); }
template <unsigned NEWEST> static inline void finish_stores()
{
    for (auto &groups = started(); groups.size() > NEWEST + 1; groups.pop_front())
        for (auto &write : groups.front())
            write();
}

// An element of a swizzled tile, whose rows have 64 or 128 bytes.
template <class T> static inline T &in_tile(T *tile, unsigned row, unsigned column, unsigned columns = 128 / sizeof(T))
{
    constexpr unsigned WIDE = 16 / sizeof(T);
    unsigned swizzle = columns * sizeof(T) == 128 ? row % 8 : row / 2 % 4;
    return tile[row * columns + (column / WIDE ^ swizzle) * WIDE + column % WIDE];
}

// Where an element is in the matrix of a tensor map, null outside it.
template <class T> static inline T *in_matrix(const HostMap &map, unsigned row, unsigned column)
{
    bool inside = row < map.rows && column < map.columns;
    return inside ? (T *)(map.address + row * map.stride_bytes) + column : nullptr;
}

template <class T>
static void start_copy(T *tile, const void *source, unsigned column, unsigned row, Barrier *barrier)
{
    const auto &map = *(const HostMap *)source;
    for (unsigned i = 0; i < map.tile_rows; ++i)
        for (unsigned j = 0; j < map.tile_columns; ++j) {
            const T *from = in_matrix<T>(map, row + i, column + j);
            in_tile(tile, i, j, map.tile_columns) = from ? *from : T(0);
        }
    change(barrier, 0, -long(map.tile_rows * map.tile_columns * sizeof(T)));
}

template <class T> static void start_store(const void *target, unsigned column, unsigned row, const T *tile)
{
    started().back().push_back([=, &map = *(const HostMap *)target] {
        for (unsigned i = 0; i < map.tile_rows; ++i)
            for (unsigned j = 0; j < map.tile_columns; ++j)
                if (T *to = in_matrix<T>(map, row + i, column + j))
                    *to = in_tile(tile, i, j, map.tile_columns);
    });
}

static inline float widened(unsigned short bits)
{
    unsigned wide = bits << 16;
    return *(float *)&wide;
}

static inline unsigned short narrowed(float value)
{
    unsigned bits = *(unsigned *)&value;
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

template <class T> static inline void store_pair(T *to, float one, float other)
{
    to[0] = narrowed(one), to[1] = narrowed(other);
}

template <unsigned WIDTH, bool BY_ROWS, class T>
static void multiply(float (&sums)[WIDTH / 2], const T *a_tile, const T *b_tile, unsigned thread)
{
    constexpr unsigned DEPTH = 128 / sizeof(T), PIECE = WIDTH % DEPTH ? DEPTH / 2 : DEPTH;
    for (unsigned i = 0; i < WIDTH / 2; ++i) {
        unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        const T *b = BY_ROWS ? b_tile + column / PIECE * PIECE * DEPTH : b_tile;
        for (unsigned k = 0; k < DEPTH; ++k) {
            T of_b = BY_ROWS ? in_tile(b, k, column % PIECE, PIECE) : in_tile(b, column, k);
            sums[i] += widened(in_tile(a_tile, row, k)) * widened(of_b);
        }
    }
}
