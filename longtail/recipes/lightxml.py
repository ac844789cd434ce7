"""LightXML (Jiang et al., AAAI 2021): a transformer whose negatives are sampled by its own clusters while it learns.

longtail train DATA --recipe lightxml --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.cascade.recipe import WithBreadth
from longtail.cascade.transformer import TransformerRecipe
from longtail.core.errors import ParameterError
from longtail.core.lazy import Lazy
from longtail.core.parameters import param

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class LightXML(WithBreadth, TransformerRecipe):
    """All classifiers read the first tokens of the last `tapped` layers side by side, after much dropout.

    A generator scores all clusters of labels; a discriminator the labels below the `beam` best clusters, true ones
    first, through a narrower layer (`width`). Both are trained in every step, so the negatives grow harder with the
    generator. A label's score is σ(cluster) · σ(label). With at most `flat` labels there are no clusters, and every
    label is a candidate. In the second part of the training, weights are averaged (here at the ends of epochs, in the
    authors' code every few hundred steps). The authors' code leaves dropout out after the first scoring of an epoch,
    which is not in the paper; here it stays.
    """

    name = "lightxml"
    version = 2
    title = "a transformer with clusters of labels that sample its negatives, all trained together"
    paper = "LightXML, Jiang et al. 2021"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {"length": 48, "batch": 64, "epochs": 5, "lr": 2e-4, "table_lr": 4e-3, "dropout": 0.3}
    }

    tapped: int = param(5, "last layers whose first tokens are read", at_least=1)  # paper: 5
    dropout: float = param(0.5, "dropout of these", at_least=0.0, below=1.0)  # paper: 0.5
    width: int = param(300, "dimensions in which labels are compared, with clusters", at_least=1)  # paper: 300 – 500
    flat: int = param(40_000, "up to so many labels, there are no clusters", at_least=0)  # paper: flat for 31K
    labels_per_cluster: float = param(100.0, "labels in a cluster, about", at_least=1.0)  # paper: up to 100
    beam: int = param(75, "clusters whose labels are candidates", at_least=1)  # paper: 75, 32 on Wiki-500K
    batch: int = param(16, "points of a step", at_least=1)  # paper: 16 – 32
    epochs: int = param(15, "passes over the training set", at_least=1)  # paper: 5 – 30
    lr: float = param(1e-4, "learning rate of the transformer", above=0.0)  # paper: 1e-4
    table_lr: float = param(1e-4, "learning rate of classifiers", above=0.0)  # paper: the same
    average: float | None = param(
        0.3, "part of the training after which weights are averaged (none: never)", at_least=0.0, below=1.0
    )  # paper: from epoch 4 of 15 on, 10 of 20 or 30
    bias: bool = param(True, "biases begin at log odds, which saves steps; false: at 0")  # paper: 0

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """The last layers of the transformer side by side, and one phase."""
        depth = self.depth()
        if depth < self.tapped:
            raise ParameterError(
                f"{self.kind}: tapped={self.tapped} layers are read, but the transformer has {depth}; "
                f"set tapped={depth}, or take one with more layers"
            )
        about: dict[str, Any] = {}
        names = tuple(f"cls{layer}" for layer in range(depth - self.tapped + 1, depth + 1))
        taps = {"cls": parts.Tap(names, self.dropout)}
        if not self.is_flat(read.labels):
            taps["narrow"] = parts.Tap(("cls",), 0.0, self.width)
        encoder = parts.Tapped(self.transformer(read, names, about), taps, tuple(taps))
        return parts.Cascade(read, encoder, [self.phase(read.labels)], seed, self.mixing(), about)

    def is_flat(self, L: int) -> bool:
        """Whether so many labels need no clusters."""
        return self.flat >= L

    def phase(self, L: int) -> parts.Phase:
        """Generator and discriminator in every step; of few labels only one level."""
        flat = self.is_flat(L)
        return parts.Phase(
            "together",
            self.epochs,
            self.fine_tuned(layers=not flat),
            levels=(0,) if flat else (parts.CLUSTERS, parts.LABELS),
            prepare=lambda net: {} if flat else self.clusters(net),
            build=self.build_flat if flat else self.build,
            plan=self.by_length(),
            average=self.average,
        )

    def clusters(self, net: parts.Cascade) -> parts.Structure:
        """Balanced clusters of labels by the TF-IDF of their points."""
        count = max(2, round(net.data.labels / self.labels_per_cluster))
        Z = parts.pifa(net.data.rows, net.data.Y)  # (L, V)
        return parts.tree_structure(parts.LabelTree.in_clusters(Z, [count], net.seed))

    def build(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """The generator over all clusters, the discriminator over the labels of the best ones."""
        net.set_tree(structure)
        candidates = net.below(parts.LABELS, self.beam)
        for t, feature, below in ((parts.CLUSTERS, "cls", None), (parts.LABELS, "narrow", candidates)):
            rows = parts.Free(parts.Table.xavier(net.size(t), net.encoder.widths[feature]))
            bias = net.begun_bias(t, below, self.bias)
            net.set_level(t, parts.Dot(net.size(t), feature, rows, bias, candidates=below))

    def build_flat(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """One classifier for each label over all that is read."""
        L = net.data.labels
        rows = parts.Free(parts.Table.xavier(L, net.encoder.widths["cls"]))
        net.set_level(0, parts.Dot(L, "cls", rows, net.begun_bias(0, None, self.bias)))
