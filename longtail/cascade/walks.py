"""The settings of systems with a graph of random walks over labels in their classifiers: ECLARE, InceptionXML-LF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import scipy.sparse as sp

from longtail.augment import Augmentation
from longtail.core.parameters import param_of
from longtail.labels.graph import normalised, walk

if TYPE_CHECKING:
    from longtail.cascade.cascade import Cascade


@dataclass(frozen=True)
class WithWalks:
    """How random walks go from label to label; the same settings as of `augment=walk`."""

    hops: int = param_of(Augmentation, "hops")
    restart: float = param_of(Augmentation, "restart")
    top: int = param_of(Augmentation, "top")
    head: int = param_of(Augmentation, "head")

    def graph(self, net: Cascade) -> sp.csr_matrix:
        """Ĝ (L, L), normalised by rows and columns; walked once for each network."""
        if "walks" not in net.memo:
            walks = walk(net.data.Y, hops=self.hops, restart=self.restart, top=self.top, head=self.head, seed=net.seed)
            net.memo["walks"] = normalised(walks)
        return net.memo["walks"]
