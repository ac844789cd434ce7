"""The settings of recipes with a graph of random walks over labels in their classifiers: ECLARE, InceptionXML-LF."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from longtail.augment import Augmentation
from longtail.core.parameters import param_of
from longtail.labels.graph import normalised, walk


@dataclass(frozen=True)
class WithGraph:
    """How the walks go; the same as of `augment=walk`."""

    hops: int = param_of(Augmentation, "hops")
    restart: float = param_of(Augmentation, "restart")
    top: int = param_of(Augmentation, "top")
    head: int = param_of(Augmentation, "head")

    def graph(self, Y: sp.csr_matrix, seed: int) -> sp.csr_matrix:
        """Ĝ (L, L), normalised by rows and columns."""
        return normalised(walk(Y, hops=self.hops, restart=self.restart, top=self.top, head=self.head, seed=seed))
