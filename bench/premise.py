"""When does Gandalf's premise hold? xr-linear on corpora with many and with few true co-labels.

python bench/premise.py FOLDER     # FOLDER holds man-seealso; debian-related is in the package

The corpora are debian-related, man-seealso, and man-seealso with links that are made one way, removed, or replaced at
random. For each, the table has the share of true co-labels (longtail.augment.premise) and, on the validation part, the
mean of P@1, P@5, PSP@1 and PSP@5 for each augmentation. The test part is not read.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import longtail
from longtail.augment.premise import premise, same_texts
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.sparse import csr, keep_entries
from longtail.evidence.score import score

METHODS = {"none": {}, "self": {}, "gandalf": {}, "gandalf-shrunk": {"augment.delta": 0.3}}
METRICS = ("P@1", "P@5", "PSP@1", "PSP@5")


def main(folder: Path) -> None:
    columns = ["corpus", "true co-labels", *(f"`{name}`" for name in METHODS)]
    print(row(columns), row(["---"] * len(columns)), sep="\n")
    seealso = longtail.read(folder / "man-seealso", test=False)
    measure("man-seealso", seealso, seealso.train.truth())
    measure("man-seealso, links one way", seealso, one_way(seealso))
    for share in (0.5, 0.75):
        measure(f"man-seealso, {share:.0%} of the links removed", seealso, drawn(seealso, share, replace=False))
    for share in (0.25, 0.5, 0.75):
        measure(f"man-seealso, {share:.0%} of the links replaced", seealso, drawn(seealso, share, replace=True))
    related = longtail.read("debian-related", test=False)
    measure("debian-related", related, related.train.truth())


def one_way(corpus: Corpus) -> sp.csr_matrix:
    """Y in which of two things that name each other only one does, by a random order of all things."""
    Y, L = corpus.train.truth(), len(corpus.labels)
    links = same_texts(corpus.train, corpus.labels).tocoo()
    thing = np.full(len(corpus.train), -1)
    thing[links.row] = links.col
    source, target = np.repeat(thing, np.diff(Y.indptr)), Y.indices
    pairs = source.astype(np.int64) * L + target
    mutual = (source >= 0) & np.isin(target.astype(np.int64) * L + source, pairs)
    rank = np.random.default_rng(0).permutation(L)
    return keep_entries(Y, ~(mutual & (rank[source] > rank[target])))


def drawn(corpus: Corpus, share: float, replace: bool) -> sp.csr_matrix:
    """Y in which a share of the links is removed, or goes to labels drawn by their frequency."""
    Y, rng = corpus.train.truth(), np.random.default_rng(0)
    kept = rng.random(Y.nnz) >= share
    if not replace:
        return keep_entries(Y, kept)
    target = Y.indices.copy()
    target[~kept] = rng.permutation(target[~kept])
    return csr(Y.indptr, target, Y.data, Y.shape)


def measure(name: str, corpus: Corpus, Y: sp.csr_matrix) -> None:
    """One line of the table, for this corpus with other labels at its training points."""
    labels = Labels.of(list(corpus.labels.keys), corpus.labels.texts)
    corpus = Corpus(corpus.name, dataclasses.replace(corpus.train, Y=Y), labels).with_validation(0)
    share = premise(corpus.train, corpus.labels).share or 0.0
    cells = []
    for method, options in METHODS.items():
        model = longtail.recipe("xr-linear", augment=method, **options).fit(corpus, Run(seed=0, threads=1))
        report = score(model, corpus, "dev").report()
        cells.append(f"{np.mean([report[metric] for metric in METRICS]):.1f}")
    print(row([name, f"{100 * share:.1f} %", *cells]), flush=True)


def row(cells: list[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
