// Array types and small helpers shared by all kernels. Work is always divided by data, never by thread, and
// reductions run in a fixed order, so results do not depend on the number of threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace nb = nanobind;

namespace longtail {

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<nb::numpy, T>;

// How many threads a kernel that is called now may use (module.cpp). It may change at any time: a kernel that keeps
// something for each thread asks once, by PerThread.
int threads();

// The number of the calling thread inside parallel_for, below the number of its threads.
inline int thread_number() {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

// A numpy array that owns `values`.
template <typename T>
Out<T> to_numpy(std::vector<T>&& values) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(held->data(), {held->size()}, owner);
}

// An uninitialised numpy array of the given shape; its memory is at `out.data()`.
template <typename T>
Out<T> new_numpy(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (size_t n : shape) size *= n;
    T* memory = new T[size > 0 ? size : 1];
    nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(memory, shape, owner);
}

// Calls body(i) for i in [0, n), in blocks of `grain` that free threads, at most `count`, take one by one. After an
// exception no further block is begun, since what the body was working on may be half made; the first one is thrown
// again outside of the parallel region.
template <typename Body>
void parallel_for(int64_t n, int64_t grain, Body body, int count = threads()) {
#ifdef _OPENMP
    if (count > 1 && n > grain) {
        std::exception_ptr first = nullptr;
        std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic) num_threads(count)
        for (int64_t start = 0; start < n; start += grain) {
            if (failed.load(std::memory_order_acquire)) continue;
            try {
                for (int64_t i = start; i < std::min(n, start + grain); i++) body(i);
            } catch (...) {
                if (!failed.exchange(true, std::memory_order_acq_rel)) first = std::current_exception();
            }
        }
        if (first) std::rethrow_exception(first);
        return;
    }
#endif
    (void)grain, (void)count;
    for (int64_t i = 0; i < n; i++) body(i);
}

// What each thread of one parallel_for keeps for itself, made when the thread first asks for it. The threads are counted
// once: give `count()` to the parallel_for.
template <typename T>
class PerThread {
public:
    PerThread() : own_(static_cast<size_t>(std::max(1, threads()))) {}
    int count() const { return static_cast<int>(own_.size()); }

    template <typename... Args>
    T& mine(Args&&... args) {
        auto& own = own_[static_cast<size_t>(thread_number())];
        if (!own) own = std::make_unique<T>(std::forward<Args>(args)...);
        return *own;
    }

private:
    std::vector<std::unique_ptr<T>> own_;
};

inline void check(bool good, const char* message) {
    if (!good) throw std::invalid_argument(message);
}

}  // namespace longtail
