"""CascadeXML (paper 002): several resolutions of the labels at several depths of one transformer, trained together.

longtail train DATA --recipe cascadexml --preset small --out MODEL
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.cascade.rankers import RankedRecipe
from longtail.cascade.recipe import WithBreadth
from longtail.cascade.transformer import numbers_of
from longtail.core.errors import ParameterError
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")

# Table 9, by the number of levels: Wiki10-31K and AmazonCat-13K have three, the larger corpora four
BEAMS: dict[int, tuple[float, ...]] = {2: (64,), 3: (64, 64), 4: (128, 256, 400)}
DROPOUTS: dict[int, tuple[float, ...]] = {2: (0.2, 0.4), 3: (0.2, 0.3, 0.4), 4: (0.2, 0.25, 0.4, 0.5)}
FAN, LEAST, MOST = 8, 16, 2**16  # children of a cluster, about; fewest and most clusters of the finest level


@dataclass(frozen=True)
class CascadeXML(WithBreadth, RankedRecipe):
    """Coarse clusters are told apart by early layers of a transformer, labels by the last one.

    Level t has K_t nodes: clusters of labels, clusters of these, …, and the labels. Its classifiers read the first
    token of layer n_t; the first level that of two neighbouring layers, through a linear layer. A point is trained on
    the children of the `beams[t]` nodes of the level above that score best, true ones first; the losses of all levels
    are added up. Each level is trained in every step, so shortlists and the labels' negatives grow harder together. A
    label's score is σ(label) · σ(its cluster), and each level's shortlist goes by that level's own σ. With `ranker`,
    linear classifiers on TF-IDF and the feature of the last level rank instead (A.3; slower, and better).
    """

    name = "cascadexml"
    version = 2
    title = "label resolutions from coarse to fine at rising depths of a transformer, trained together"
    paper = "CascadeXML, Kharbanda et al. 2022"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {"length": 48, "batch": 64, "epochs": 5, "lr": 2e-4, "table_lr": 4e-3}
    }

    resolutions: str | None = param(None, "clusters of each level, as 64:512 (none: a label for 8, 8 clusters for …)")
    taps: str | None = param(None, "layers that the levels read, as 3+4:5:6 (none: by the transformer's depth)")
    beams: str | None = param(None, "nodes of each level of clusters whose children are candidates, as 64:64")
    dropouts: str | None = param(None, "dropout of each level's feature, as 0.2:0.3:0.4")  # paper: Table 9
    batch: int = param(256, "points of a step", at_least=1)  # paper: 256
    epochs: int = param(15, "passes over the training set", at_least=1)  # paper: 6 – 15
    lr: float = param(1e-4, "learning rate of the transformer", above=0.0)  # paper: 1e-4
    table_lr: float = param(1e-3, "learning rate of classifiers", above=0.0)  # paper: 1e-3
    decay: float = param(0.05, "weight decay of the transformer; classifiers have a tenth", at_least=0.0)
    schedule: Schedule = param("plateau", "how learning rates change")  # noqa: RUF009  # paper: up, constant, down
    bias: bool = param(True, "biases begin at log odds, which saves steps; false: at 0")  # paper: 0

    def settings_after_training(self) -> frozenset[str]:
        """`breadth`, unless rankers take over."""
        return frozenset() if self.ranks else super().settings_after_training()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sizes(1)
        self.given_taps()
        for name in ("beams", "dropouts"):
            self.given(name)

    def check_corpus(self, corpus: Any) -> None:
        """Refuse settings that do not fit the number of levels or the transformer, before time is spent on texts."""
        super().check_corpus(corpus)
        T = len(self.sizes(len(corpus.labels))) + 1
        self.layers_read(T, self.depth())
        self.per_level("beams", BEAMS, T)
        self.per_level("dropouts", DROPOUTS, T)

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """The transformer with a tap for each level, and one phase that trains everything."""
        about: dict[str, Any] = {}
        T = len(self.sizes(read.labels)) + 1
        first, *others = self.layers_read(T, self.depth())
        names = [f"cls{layer}" for layer in dict.fromkeys([*first, *itertools.chain(*others)])]
        encoder = self.transformer(read, names, about)
        pair = tuple(f"cls{layer}" for layer in first)
        levels = {"level0": parts.Tap(pair, 0.2, encoder.widths[pair[0]])}  # Linear(2H → H)
        levels |= {f"level{t}": parts.Tap(tuple(f"cls{n}" for n in own)) for t, own in enumerate(others, 1)}
        return parts.Cascade(
            read, parts.Tapped(encoder, levels, tuple(levels)), self.phases(T), seed, self.mixing(), about
        )

    def embedding(self, net: parts.Cascade) -> str:
        """The feature of the labels' level."""
        return f"level{net.depth - 1}"

    def phases(self, T: int) -> list[parts.Phase]:
        """One phase: all levels in every step."""
        return [
            parts.Phase(
                "together",
                self.epochs,
                self.fine_tuned(self.decay, self.decay / 10, layers=True),
                levels=tuple(range(T)),
                prepare=lambda net: self.label_clusters(net, self.sizes(net.data.labels)),
                build=self.build,
                plan=self.by_length(),
            )
        ]

    def build(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Classifiers of every level; below the first they are trained on shortlists."""
        net.set_tree(structure)
        net.join = parts.ParentJoin()
        beams, dropouts = (self.per_level(*of, net.depth) for of in (("beams", BEAMS), ("dropouts", DROPOUTS)))
        for t in range(net.depth):
            K, below = net.size(t), None if t == 0 else net.below(t, int(beams[t - 1]))
            rows = parts.Free(parts.Table.xavier(K, net.encoder.widths[f"level{t}"]))
            net.set_level(t, parts.Dot(K, f"level{t}", rows, net.begun_bias(t, below, self.bias), dropouts[t], below))

    # --- Table 9, for a transformer of any depth and any number of labels

    def sizes(self, L: int) -> list[int]:
        """K_0, …, K_{T−2}: clusters of each level, coarse first. The finest have about eight labels each."""
        if self.resolutions is not None:
            sizes = numbers_of(self, "resolutions", int, "64:512")
            if min(sizes) < 1 or any(after % before for before, after in itertools.pairwise(sizes)):
                raise ParameterError(
                    f"{self.kind}: resolutions={self.resolutions} must rise from coarse to fine, each a multiple of "
                    "the one before"
                )
            return list(sizes)
        finest = min(max(2 ** round(math.log2(max(L / FAN, 1))), LEAST), MOST)
        levels = 3 if finest == MOST else 2
        return [max(finest // FAN**up, 2) for up in reversed(range(levels))]

    def given_taps(self) -> list[tuple[int, ...]]:
        """The layers in `taps`, for each level; none if it is not set."""
        if self.taps is None:
            return []
        try:
            return [tuple(map(int, level.split("+"))) for level in self.taps.replace(",", ":").split(":")]
        except ValueError:
            raise ParameterError(f"{self.kind}: taps must be layers such as 3+4:5:6, but is {self.taps!r}") from None

    def layers_read(self, T: int, depth: int) -> list[tuple[int, ...]]:
        """The layers that each of T levels reads: of 12 layers (5, 6), 8, 10 and 12 if there are four levels."""
        found = self.given_taps()
        if not found:
            if depth <= T:
                raise ParameterError(
                    f"{self.kind}: {T} levels read {T + 1} layers of the transformer, but it has {depth}; take one "
                    "with more layers, fewer resolutions, or name layers by taps"
                )
            last = [min(round(depth * (7 - T + t) / 6), depth - (T - 1 - t)) for t in range(T)]
            return [(last[0] - 1, last[0]), *((layer,) for layer in last[1:])]
        if len(found) != T:
            raise ParameterError(f"{self.kind}: taps={self.taps} are for {len(found)} levels, but there are {T}")
        wrong = [layer for layer in itertools.chain(*found) if not 1 <= layer <= depth]
        if wrong:
            raise ParameterError(
                f"{self.kind}: taps={self.taps} name layer {wrong[0]}, but the transformer has layers 1 to {depth}"
            )
        return found

    def given(self, name: str) -> tuple[float, ...] | None:
        """The numbers of `beams` or `dropouts`; None where they are not set."""
        if getattr(self, name) is None:
            return None
        return numbers_of(self, name, int, "64:64") if name == "beams" else numbers_of(self, name, float, "0.2:0.3:0.4")

    def per_level(self, name: str, usual: dict[int, tuple[float, ...]], levels: int) -> tuple[float, ...]:
        """The numbers of `beams` or `dropouts` for so many levels: as given, else the paper's."""
        wanted = levels - 1 if name == "beams" else levels
        numbers = self.given(name) or usual.get(levels)
        if numbers is None or len(numbers) != wanted:
            found = "none" if numbers is None else len(numbers)
            raise ParameterError(f"{self.kind}: {levels} levels need {wanted} numbers in {name}, but there are {found}")
        return numbers
