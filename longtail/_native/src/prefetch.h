// Asking for memory ahead of its use.
#pragma once

namespace longtail {
namespace {

// Always inlined, as whatever calls it should be: GCC takes a function that only prefetches as one that does nothing, and
// drops calls of it.
#if defined(__GNUC__) || defined(__clang__)
__attribute__((always_inline)) inline void prefetch(const void* address) { __builtin_prefetch(address); }
#else
inline void prefetch(const void*) {}
#endif

}  // namespace
}  // namespace longtail
