// The extension module: what the kernels share, and the binding of each file's functions.
#include "common.h"
#include "simd.h"

#include <atomic>

namespace longtail {

static std::atomic<int> thread_count{1};
int threads() { return thread_count.load(); }

void bind_bootstrap(nb::module_&);
void bind_json_lines(nb::module_&);
void bind_nearest(nb::module_&);
void bind_rank(nb::module_&);
void bind_sparse_text(nb::module_&);
void bind_terms(nb::module_&);
void bind_text(nb::module_&);

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
    m.def("dot", [](In<float> a, In<float> b) {
        check(a.shape(0) == b.shape(0), "dot: lengths differ");
        return simd().dot(a.data(), b.data(), a.shape(0));
    });
    bind_bootstrap(m);
    bind_json_lines(m);
    bind_nearest(m);
    bind_rank(m);
    bind_sparse_text(m);
    bind_terms(m);
    bind_text(m);
}
