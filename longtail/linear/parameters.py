"""The settings of linear classifiers over a label tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtail.core.errors import ParameterError
from longtail.core.parameters import Parameters, param

Post = Literal["l3-hinge", "sigmoid", "none", "l3-hinge+none"]
BARE: tuple[Post, ...] = ("none", "l3-hinge+none")  # scores are margins: any number, and not on one scale


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """The settings of training and prediction with a tree of linear classifiers; the defaults are XR-Linear's."""

    kind = "linear"
    negatives: Literal["tfn", "tfn+man"] = param("tfn", "tfn: teacher-forced; +man: also what the level above confuses")
    loss: Literal["squared-hinge", "logistic"] = param("squared-hinge", "what a wrong margin costs")
    solver: Literal["dcd", "newton"] = param("dcd", "dual coordinate descent, or Newton's method (logistic: newton)")
    C: float = param(1.0, "cost of errors against the size of weights", above=0.0)  # PECOS, XR-Transformer: 1
    C_negative: float | None = param(None, "cost of errors on negatives (none: C)", above=0.0)  # PECOS Cn: C
    costs: Literal["equal", "counts"] = param("equal", "counts: a node costs by its share of the point's labels")
    eps: float = param(0.1, "how far from optimal the solver may stop", above=0.0)  # LIBLINEAR, PECOS: 0.1
    prune: float = param(0.1, "weights smaller than this are dropped", at_least=0.0)  # PECOS: 0.1
    weights_per_label: int | None = param(None, "keep at most this many weights per label", at_least=1)
    weights: Literal["float32", "float16", "int8"] = param(
        "int8", "how weights are kept: int8 is smallest, float32 exact"
    )
    beam: int = param(10, "nodes kept at each level of the search", at_least=1)  # PECOS: 10
    post: Post = param(  # noqa: RUF009
        "l3-hinge", "how margins become scores down the path; l3-hinge+none: the last level's margin alone"
    )

    def check(self) -> None:
        """Refuse settings that do not go together."""
        if self.loss == "logistic" and self.solver == "dcd":
            raise ParameterError("loss=logistic needs solver=newton: coordinate descent is for the squared hinge")
