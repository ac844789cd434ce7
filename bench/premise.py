"""When does Gandalf's premise hold? Corpora between "relations point one way" and "relations are mutual".

python bench/premise.py FOLDER     # FOLDER holds man-seealso; debian-related is in the package

From man-seealso links are taken away so that they point one way, to debian-related returned links are added. For each
corpus the table has the share of true co-labels (longtail.augment.premise) and xr-linear on the validation part.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import longtail
from longtail.augment.premise import premise, same_texts
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.evidence.score import score

METHODS = {"none": {}, "self": {}, "gandalf": {}, "gandalf-shrunk": {"augment.delta": 0.3}}
METRICS = ("P@1", "P@5", "PSP@1", "PSP@5")


def main(folder: Path) -> None:
    columns = ["corpus", "true co-labels", *(f"`{name}`" for name in METHODS)]
    print(row(columns), row(["---"] * len(columns)), sep="\n")
    seealso, related = longtail.read(folder / "man-seealso"), longtail.read("debian-related")
    for share in (0.0, 0.5, 1.0):
        measure(f"man-seealso, {share:.0%} of the links one way", changed(seealso, -share))
    for share in (0.0, 0.1, 0.3, 1.0):
        measure(f"debian-related, {share:.0%} of the links returned", changed(related, share))


def changed(corpus: Corpus, share: float) -> Corpus:
    """The training part with a share of its links returned, or made one way where the share is below 0."""
    data, L = corpus.train, len(corpus.labels)
    rng = np.random.default_rng(0)
    links = same_texts(data, corpus.labels)
    A = (links.T.astype(np.float32) @ data.truth()).tocoo()  # (L, L): from a label, as a point, to its labels
    point = np.full(L, -1)
    point[links.indices] = links.tocoo().row
    pair = np.minimum(A.row, A.col).astype(np.int64) * L + np.maximum(A.row, A.col)
    values, place = np.unique(pair, return_inverse=True)
    drawn = rng.random(len(values))[place] < abs(share)
    rank = rng.permutation(L)
    if share < 0:  # of a pair that is drawn only one direction stays
        out = drawn & (rank[A.row] > rank[A.col])
        Y = edited(data.truth(), point[A.row[out]], A.col[out], 0)
    else:
        back = drawn & (point[A.col] >= 0) & (A.row != A.col)
        Y = edited(data.truth(), point[A.col[back]], A.row[back], 1)
    labels = Labels.of(list(corpus.labels.keys), list(corpus.labels.texts or []))
    return Corpus(corpus.name, replace(data, Y=Y), labels).with_validation(0)


def edited(Y: sp.csr_matrix, rows: np.ndarray, columns: np.ndarray, value: int) -> sp.csr_matrix:
    """Y with these pairs set to 0 or 1."""
    chosen = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=Y.shape)
    chosen.data[:] = 1
    Y = (Y.maximum(chosen) if value else Y - Y.multiply(chosen)).tocsr()
    Y.eliminate_zeros()
    return Y


def measure(name: str, corpus: Corpus) -> None:
    """One line: the premise, then the means of the four metrics."""
    share = premise(corpus.train, corpus.labels).share or 0.0
    cells = []
    for method, options in METHODS.items():
        model = longtail.recipe("xr-linear", augment=method, **options).fit(corpus, Run(seed=0, threads=1))
        report = score(model, corpus, "dev").report()
        values = [report[metric] for metric in METRICS]
        cells.append(f"{np.mean(values):.1f} ({' / '.join(f'{value:.1f}' for value in values)})")
    print(row([name, f"{100 * share:.1f} %", *cells]), flush=True)


def row(cells: list[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
