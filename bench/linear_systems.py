"""One system of bench/linear.py in its own process: trains, predicts, prints one JSON line.

    python bench/linear_systems.py SYSTEM FOLDER THREADS

Only numpy, scipy and the system itself are imported, so that a peer's own environment can run it.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

BEAM, TOP, SINGLES = 10, 15, 300


class Longtail:
    """XR-Linear of this package: branching 16, leaves of 100, C 1, eps 0.1, pruned at 0.1."""

    def __init__(self, negatives, threads):
        from longtail import _native

        _native.set_threads(threads)
        self.negatives = negatives

    def train(self, X, Y):
        from longtail._native.linear import BeamSearch
        from longtail.core.run import Run
        from longtail.labels.tree import LabelTree
        from longtail.linear.train import LinearParameters, label_vectors, train_levels

        self.tree = LabelTree.balanced(label_vectors(X, Y), 16, 100, 0)
        self.levels = train_levels(X, Y, None, self.tree, LinearParameters(negatives=self.negatives), Run())
        self.search = BeamSearch(X.shape[1], self.levels)

    def predict(self, X, k):
        found, scores = self.search.search(X, bias=1.0, beam=BEAM, k=k, post="l3-hinge")
        return self.tree.order[found], scores

    def single(self, x):
        from longtail import _native

        _native.set_threads(1)
        return self.predict(x, 10)

    def size(self):
        arrays = [self.tree.order, *self.tree.levels, *(a for level in self.levels for a in level)]
        return sum(a.nbytes for a in arrays)


class Pecos:
    """libpecos' XLinearModel with the same settings."""

    def __init__(self, negatives, threads):
        self.negatives, self.threads = negatives, threads

    def train(self, X, Y):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        Z = LabelEmbeddingFactory.create(Y, X, method="pifa")
        options = {"indexer_type": "hierarchicalkmeans", "nr_splits": 16, "max_leaf_size": 100, "threads": self.threads}
        chain = Indexer.gen(Z, **options)
        scheme = {"negative_sampling_scheme": self.negatives, "threads": self.threads}
        self.model = XLinearModel.train(X, Y, chain, Cp=1.0, Cn=1.0, **scheme)

    def ready(self):
        from pecos.xmc.xlinear.model import XLinearModel

        self.folder = tempfile.mkdtemp()
        self.model.save(self.folder)
        self.model = XLinearModel.load(self.folder, is_predict_only=True)

    def predict(self, X, k, threads=None):
        P = self.model.predict(X, beam_size=BEAM, only_topk=k, threads=threads or self.threads)
        return top(P, k)

    def single(self, x):
        return self.model.predict(x, beam_size=BEAM, only_topk=10, threads=1)

    def size(self):
        return sum(p.stat().st_size for p in Path(self.folder).rglob("*") if p.is_file())


class Omikuji:
    """Three balanced Parabel trees, its default; trains from a file and predicts a row at a time."""

    def __init__(self, threads):
        self.threads = threads

    def train(self, X, Y):
        import omikuji

        path = Path(tempfile.mkdtemp()) / "train.txt"
        rows = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
        with path.open("w") as file:
            file.write(f"{len(rows)} {X.shape[1]} {Y.shape[1]}\n")
            for i in rows:
                labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
                pairs = zip(
                    X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]], strict=True
                )
                file.write(f"{labels} {' '.join(f'{j}:{v:.6g}' for j, v in pairs)}\n")
        self.began = time.perf_counter()  # the file is not part of training
        self.model = omikuji.Model.train_on_data(str(path), omikuji.Model.default_hyper_param(), self.threads)

    def single(self, x):
        pairs = list(zip(x.indices.tolist(), x.data.tolist(), strict=True))
        return self.model.predict(pairs, top_k=TOP, beam_size=BEAM)

    def predict(self, X, k):
        found = np.full((X.shape[0], k), -1)
        for i in range(X.shape[0]):
            best = self.single(X[i])[:k]
            found[i, : len(best)] = [label for label, _ in best]
        return found, None

    def size(self):
        folder = tempfile.mkdtemp()
        self.model.save(folder)
        return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


class Napkin:
    """A probabilistic label tree with its defaults."""

    def __init__(self, threads):
        self.threads = threads

    def train(self, X, Y):
        from napkinxc.models import PLT

        self.folder = tempfile.mkdtemp()
        self.model = PLT(self.folder, threads=self.threads)
        self.model.fit(X, [Y.indices[a:b].tolist() for a, b in zip(Y.indptr, Y.indptr[1:], strict=False)])

    def predict(self, X, k):
        found = np.full((X.shape[0], k), -1)
        for i, best in enumerate(self.model.predict(X, top_k=k)):
            found[i, : len(best)] = best
        return found, None

    def single(self, x):
        return self.model.predict(x, top_k=10)

    def size(self):
        return sum(p.stat().st_size for p in Path(self.folder).rglob("*") if p.is_file())


def top(P, k):
    """The k best columns of each row of a sparse score matrix."""
    found = np.full((P.shape[0], k), -1)
    for i in range(P.shape[0]):
        row = slice(P.indptr[i], P.indptr[i + 1])
        best = P.indices[row][np.argsort(-P.data[row], kind="stable")[:k]]
        found[i, : len(best)] = best
    return found, None


def precision(found, Y, ignore, k):
    """P@k in percent, ignored pairs dropped."""
    hits = 0
    for i, row in enumerate(found):
        gone = set(ignore.indices[ignore.indptr[i] : ignore.indptr[i + 1]])
        true = set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]]) - gone
        hits += len(set([label for label in row if label >= 0 and label not in gone][:k]) & true)
    return 100 * hits / (k * len(found))


def peak_mb():
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def main(system, folder, threads):
    X, Y, X_test, Y_test, ignore = (
        sp.load_npz(Path(folder) / f"{name}.npz").tocsr() for name in ("X", "Y", "X_test", "Y_test", "ignore")
    )
    name, _, form = system.partition(" ")
    made = {"longtail": Longtail, "pecos": Pecos}[name](form, threads) if name in ("longtail", "pecos") else None
    made = made or {"omikuji": Omikuji, "napkinxc": Napkin}[name](threads)
    began = time.perf_counter()
    made.train(X, Y)
    trained = time.perf_counter() - getattr(made, "began", began)
    peak = peak_mb()
    if hasattr(made, "ready"):
        made.ready()
    made.predict(X_test[:100], TOP)
    began = time.perf_counter()
    found, _ = made.predict(X_test, TOP)
    rate = X_test.shape[0] / (time.perf_counter() - began)
    rows = [X_test[i] for i in range(min(SINGLES, X_test.shape[0]))]
    times = []
    for x in rows:
        began = time.perf_counter()
        made.single(x)
        times.append(time.perf_counter() - began)
    row = {"train s": trained, "docs/s": rate, "p50 µs": 1e6 * float(np.median(times))}
    row |= {"p99 µs": 1e6 * float(np.percentile(times, 99)), "peak MB": peak, "model MB": made.size() / 1e6}
    row |= {f"P@{k}": precision(found, Y_test, ignore, k) for k in (1, 3, 5)}
    print(json.dumps(row))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
