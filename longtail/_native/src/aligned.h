// Vectors that begin at a cache line: eight-lane loads then never straddle two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace longtail {

template <typename T>
struct CacheAligned {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};
    CacheAligned() = default;
    template <typename U>
    CacheAligned(const CacheAligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
    void deallocate(T* memory, std::size_t) { ::operator delete(memory, kLine); }
    template <typename U>
    bool operator==(const CacheAligned<U>&) const { return true; }
    template <typename U>
    bool operator!=(const CacheAligned<U>&) const { return false; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheAligned<T>>;

}  // namespace longtail
