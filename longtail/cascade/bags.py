"""What cascades over bags of words have in common."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longtail.cascade.mixing import Mixing
from longtail.cascade.network import Cascade, Corpus
from longtail.encoders.bag import BagEncoder, Bags
from longtail.train.learner import Phase

BLOCK = 4096  # points encoded at a time


class BagCascade(Cascade):
    """A cascade whose texts are bags: its encoder's features can be had for all training points."""

    encoder: BagEncoder

    def __init__(self, corpus: Corpus, encoder: BagEncoder, phases: list[Phase], parents: int, mixing: Mixing | None):
        super().__init__(corpus, encoder, phases, parents, mixing)

    @property
    def bags(self) -> BagEncoder:
        """The encoder; a second attribute would be saved a second time."""
        return self.encoder

    def rows_of_points(self) -> sp.csr_matrix:
        """The TF-IDF rows of the training points (N, V)."""
        tokens: Bags = self.corpus.tokens.apply(Tensor.cpu)
        arrays = (tokens.weights.numpy(), tokens.words.numpy().astype(np.int32), tokens.ptr.numpy())
        return sp.csr_matrix(arrays, shape=(len(tokens), tokens.vocabulary))

    def blocks(self) -> tuple[Tensor, ...]:
        """The numbers of the training points, some at a time."""
        return torch.arange(self.points, device=self.bags.E.weight.device).split(BLOCK)

    @torch.no_grad()
    def features(self, name: str) -> np.ndarray:
        """A feature of all training points (N, D)."""
        self.eval()
        found = [self.encoder(self.corpus.tokens.take(points))[name].cpu() for points in self.blocks()]
        return torch.cat(found).float().numpy()

    def copy_residual(self, source: str, target: str) -> None:
        """Have one residual block begin where another is."""
        self.bags.residuals[target].load_state_dict(self.bags.residuals[source].state_dict())
