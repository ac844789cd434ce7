// The extension module: functions shared by the kernels, and the bindings of each file.
#include "common.h"
#include "simd.h"

#include <atomic>
#include <utility>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace longtail {

static std::atomic<int> thread_count{1};  // of all Python threads that have no count of their own
static thread_local int own_count = 0;     // of the calling Python thread; 0: none

// OpenMP's threads do not exist in a process made by fork, and its library waits for them forever. Such a process works
// on the one thread it has.
static std::atomic<bool> forked{false};

int threads() {
    if (forked.load(std::memory_order_relaxed)) return 1;
    return own_count > 0 ? own_count : thread_count.load(std::memory_order_relaxed);
}

void bind_boost(nb::module_&);
void bind_bootstrap(nb::module_&);
void bind_beam(nb::module_&);
void bind_candidates(nb::module_&);
void bind_check_level(nb::module_&);
void bind_dense(nb::module_&);
void bind_graph(nb::module_&);
void bind_json_lines(nb::module_&);
void bind_kmeans(nb::module_&);
void bind_label_sums(nb::module_&);
void bind_nearest(nb::module_&);
void bind_newton(nb::module_&);
void bind_pack(nb::module_&);
void bind_unpack(nb::module_&);
void bind_rank(nb::module_&);
void bind_rows(nb::module_&);
void bind_sparse_text(nb::module_&);
void bind_solve(nb::module_&);
void bind_terms(nb::module_&);
void bind_text(nb::module_&);
void bind_tree(nb::module_&);
void bind_unicode(nb::module_&);
void bind_weigh(nb::module_&);

}  // namespace longtail

NB_MODULE(_kernels, m) {
    using namespace longtail;
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
#endif
    m.def("set_threads", [](int count) { thread_count.store(count < 1 ? 1 : count); });
    m.def("set_own_threads", [](int count) { return std::exchange(own_count, count < 0 ? 0 : count); });
    m.def("get_threads", &threads);
    m.def("simd_name", [] { return simd().name; });
    m.def("has_openmp", [] {
#ifdef _OPENMP
        return true;
#else
        return false;
#endif
    });
    bind_boost(m);
    bind_bootstrap(m);
    bind_beam(m);
    bind_candidates(m);
    bind_check_level(m);
    bind_dense(m);
    bind_graph(m);
    bind_json_lines(m);
    bind_kmeans(m);
    bind_label_sums(m);
    bind_nearest(m);
    bind_newton(m);
    bind_pack(m);
    bind_unpack(m);
    bind_rank(m);
    bind_rows(m);
    bind_sparse_text(m);
    bind_solve(m);
    bind_terms(m);
    bind_text(m);
    bind_tree(m);
    bind_unicode(m);
    bind_weigh(m);
}
