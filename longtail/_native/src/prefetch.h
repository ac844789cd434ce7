// Prefetching: loading memory before it is needed.
#pragma once

namespace longtail {
namespace {

// Always inlined, and so should be its callers: GCC treats a function that only prefetches as one without effect, and
// drops calls to it.
#if defined(__GNUC__) || defined(__clang__)
__attribute__((always_inline)) inline void prefetch(const void* address) { __builtin_prefetch(address); }
#else
inline void prefetch(const void*) {}
#endif

}  // namespace
}  // namespace longtail
