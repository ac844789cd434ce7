// Array types and small helpers shared by all kernels. Work is always divided by data, never by thread, and
// reductions run in a fixed order, so results do not depend on the number of threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
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

int threads();  // number of threads for the kernels; set from Python (module.cpp)

// The number of the calling thread inside parallel_for, below threads().
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

// Calls body(i) for i in [0, n), in blocks of `grain` that free threads take one by one. An exception inside is passed
// out of the parallel region and thrown again.
template <typename Body>
void parallel_for(int64_t n, int64_t grain, Body body) {
#ifdef _OPENMP
    if (threads() > 1 && n > grain) {
        std::exception_ptr failed = nullptr;
#pragma omp parallel for schedule(dynamic) num_threads(threads())
        for (int64_t start = 0; start < n; start += grain) {
            try {
                for (int64_t i = start; i < std::min(n, start + grain); i++) body(i);
            } catch (...) {
#pragma omp critical
                failed = std::current_exception();
            }
        }
        if (failed) std::rethrow_exception(failed);
        return;
    }
#endif
    (void)grain;
    for (int64_t i = 0; i < n; i++) body(i);
}

inline void check(bool good, const char* message) {
    if (!good) throw std::invalid_argument(message);
}

}  // namespace longtail
