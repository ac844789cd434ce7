// Vectors that start at a cache line, so that an eight-lane load never needs two lines.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace longtail {

template <typename T>
struct CacheAligned {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};
    CacheAligned() = default;
    template <typename U>
    CacheAligned(const CacheAligned<U>&) {}
    static constexpr std::align_val_t kHuge{std::size_t(1) << 21};  // larger blocks are requested as huge pages
    static bool huge(std::size_t n) { return n * sizeof(T) >= 2 * static_cast<std::size_t>(kHuge); }
    T* allocate(std::size_t n) {
        void* memory = ::operator new(n * sizeof(T), huge(n) ? kHuge : kLine);
#ifdef __linux__
        if (huge(n)) madvise(memory, n * sizeof(T), MADV_HUGEPAGE);
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t n) { ::operator delete(memory, huge(n) ? kHuge : kLine); }
    template <typename U>
    bool operator==(const CacheAligned<U>&) const { return true; }
    template <typename U>
    bool operator!=(const CacheAligned<U>&) const { return false; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheAligned<T>>;

}  // namespace longtail
