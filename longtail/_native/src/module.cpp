// The extension module: functions shared by the kernels, and the bindings of each file.
#include "common.h"
#include "simd.h"

#include <atomic>

namespace longtail {

static std::atomic<int> thread_count{1};
int threads() { return thread_count.load(); }

void bind_boost(nb::module_&);
void bind_bootstrap(nb::module_&);
void bind_beam(nb::module_&);
void bind_candidates(nb::module_&);
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
    m.def("set_threads", [](int count) { thread_count.store(count < 1 ? 1 : count); });
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
