"""What the loop trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from longtail.encoders.table import Table
from longtail.train.phase import Phase

Figures = dict[str, Tensor]  # of a step: each a scalar that is averaged over an epoch


class Learner(nn.Module, ABC):
    """A network together with its training points; `forward` computes the loss of a batch.

    `phases` say how it is trained. What a phase prepares and builds are functions of the phase, not methods here: the
    engine knows nothing of papers.
    """

    phases: Sequence[Phase]
    points: int  # N, of the training set
    done: float = 0.0  # the share of the current phase that had passed at its last prepare or refresh

    def begin(self, phase: Phase) -> None:
        """Called before the steps of a phase, and before those that are left when a training is resumed.

        For what parts that the phase freezes need to compute only once; by default nothing.
        """

    @abstractmethod
    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, Figures]:
        """The loss of these points (B,) and figures to log; `done` is the share of the phase that is over."""

    def tables(self) -> dict[str, Table]:
        """The tables among the modules, by name."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Table)}
