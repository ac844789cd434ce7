"""AttentionXML (You et al., NeurIPS 2019): each label attends to the words of a text, level by level of a label tree.

longtail train DATA --recipe attentionxml --preset small --out MODEL
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.cascade.recipe import SequenceRecipe, WithBreadth
from longtail.cascade.transformer import numbers_of
from longtail.core.errors import ParameterError
from longtail.core.lazy import Lazy
from longtail.core.parameters import param

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")

FAN, COARSEST, FINEST = 8, 2**11, 2**17  # children of a cluster, about; most clusters of the first and last level


@dataclass(frozen=True)
class AttentionXML(WithBreadth, SequenceRecipe):
    """Word vectors, a bidirectional LSTM, and for each label an attention of its own over the words in context.

    With at most `flat` labels (and no `resolutions`) there is one network, and every label is a candidate. Of more
    labels a tree is made: clusters of labels, clusters of these, …. Each level has a network of its own, and they are
    trained one after the other: a level begins with LSTM and shared layers of the level above and new attention
    vectors, and is trained on the children of the `beam` best nodes that the levels above find, true ones first; this
    shortlist is made once. A label's score is the product of σ down the path. Dropout follows word vectors and LSTM;
    weights are averaged in the second part of a phase.

    What is different here: all levels share one table of word vectors, which the paper freezes (vectors=glove or
    static, word_rate=0). Vectors that begin at random are always trained, any others if `word_rate` says so, with the
    first level only. They are scaled to entries of mean square 1: of small ones an LSTM makes nearly nothing, and
    learning begins late. Weights are averaged at the ends of epochs, in the authors' code every few hundred steps.
    Nodes have biases if `bias` says so.
    """

    name = "attentionxml"
    title = "bidirectional LSTM, each label attends to the words of a text; a network for each level of a label tree"
    paper = "AttentionXML, You et al. 2019"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "reader": "subwords",
            "vectors": "static",
            "dimension": 128,
            "length": 48,
            "hidden": 128,
            "layers": "128",
            "flat": 1000,
            "beam": 40,
            "batch": 64,
            "epochs": 8,
            "lr": 4e-3,
            "bias": True,
        }
    }

    length: int = param(500, "words of a text that are read", at_least=1)  # paper: 500
    word_rate: float = param(
        0.0,
        "learning rate of word vectors as a share of the others', if they are not `learnt`; 0 freezes",
        at_least=0.0,
    )  # paper: frozen
    hidden: int | None = param(
        None, "dimensions of an LSTM's state in one direction (none: 256, of more than `flat` labels 512)", at_least=1
    )  # paper: the same
    layers: str | None = param(None, "widths of the layers that labels share (none: 256, of many labels 512:256)")
    flat: int = param(40_000, "up to so many labels, there is no tree", at_least=0)  # paper: flat for 31K
    resolutions: str | None = param(None, "clusters of each level, as 64:512 (none: a label for 8, 8 clusters for …)")
    beam: int = param(160, "nodes of each level whose children are candidates", at_least=1)  # paper: 160
    word_dropout: float = param(0.2, "dropout of word vectors", at_least=0.0, below=1.0)  # paper: 0.2
    dropout: float = param(0.5, "dropout after the LSTM", at_least=0.0, below=1.0)  # paper: 0.5
    batch: int = param(40, "points of a step", at_least=1)  # paper: 40 of few labels, 200 of many
    epochs: int = param(30, "passes over the training set, for each level", at_least=1)  # paper: 5 – 30
    lr: float = param(1e-3, "learning rate", above=0.0)  # paper: 1e-3
    average: float | None = param(
        0.33, "part of a phase after which weights are averaged (none: never)", at_least=0.0, below=1.0
    )  # paper: from epoch 10 of 30 on
    clip_recent: float | None = param(
        5.0, "clip gradients at so many times the largest of the last five norms (none: by `clip` alone)", above=0.0
    )  # paper: 5
    bias: bool = param(False, "a bias for each node, begun at log odds; saves steps")  # paper: none

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sizes(self.flat + 1)
        self.widths(1)

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """Word vectors, an LSTM for each level, and a phase for each level."""
        about: dict[str, Any] = {}
        E = self.word_vectors(read.reader, about)
        E.scale_to(1.0)
        L, levels = read.labels, len(self.sizes(read.labels)) + 1
        hidden = self.hidden or (256 if self.is_flat(L) else 512)
        names = [f"tokens{t}" for t in range(levels)]
        encoder = parts.LSTMEncoder(E, names, hidden, self.length, self.word_dropout, self.dropout)
        return parts.Cascade(read, encoder, self.phases(levels), seed, self.mixing(), about)

    def phases(self, levels: int) -> list[parts.Phase]:
        """A phase for each level, from coarse to fine; the first also trains word vectors, unless they are frozen."""
        return [self.phase(t, "labels" if t == levels - 1 else f"clusters{t}") for t in range(levels)]

    def phase(self, t: int, name: str) -> parts.Phase:
        """The network of level t, on shortlists of the levels above."""
        rate = self.word_rate if self.vectors != "learnt" else self.word_rate or 1.0
        groups = [self.group(f"encoder.nets.tokens{t}", self.lr), self.group(f"levels.{t}", self.lr)]
        if t == 0:
            groups.append(self.group("encoder.E", self.lr * rate))
        return parts.Phase(
            name,
            self.epochs,
            tuple(groups),
            levels=(t,),
            prepare=self.clusters if t == 0 else lambda net: {"nodes": net.best_nodes(t - 1, self.beam)},
            build=self.build_first if t == 0 else lambda net, structure: self.build_below(net, t, structure),
            plan=parts.Sized(lambda net: net.tokens.value.lengths.cpu().numpy(), self.batch),
            average=self.average,
            clip_recent=self.clip_recent,
        )

    def clusters(self, net: parts.Cascade) -> parts.Structure:
        """The tree of labels: balanced clusters by the TF-IDF of their points; none if all labels are candidates."""
        if self.is_flat(net.data.labels):
            return {}
        Z = parts.pifa(net.data.rows, net.data.Y)  # (L, V)
        return parts.tree_structure(parts.LabelTree.in_clusters(Z, self.sizes(net.data.labels), net.seed))

    def build_first(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """The first level: all its nodes are candidates."""
        if structure:
            net.set_tree(structure)
        self.set_level(net, 0, None)

    def build_below(self, net: parts.Cascade, t: int, structure: parts.Structure) -> None:
        """A level on shortlists, with LSTM and shared layers of the level above."""
        candidates = parts.Static(structure["nodes"], net.below(t, self.beam), truth_first=True)
        level = self.set_level(net, t, candidates)
        net.encoder.copy_net(f"tokens{t - 1}", f"tokens{t}")
        level.copy_shared(net.level(t - 1))

    def set_level(self, net: parts.Cascade, t: int, candidates: parts.Static | None) -> parts.Attended:
        """New attention vectors and shared layers for level t."""
        K, d = net.size(t), net.encoder.widths[f"tokens{t}"]
        rows = parts.Free(parts.Table.random(K, d, d**-0.5))
        shared = parts.Shared(d, self.widths(net.data.labels))
        bias = None
        if self.bias:
            bias = net.bias_of_shares(t) if candidates is None else net.bias_of_candidates(candidates.width, t)
        level = parts.Attended(K, f"tokens{t}", rows, shared, bias, candidates)
        net.set_level(t, level)
        return level

    # --- sizes, which depend on the number of labels

    def is_flat(self, L: int) -> bool:
        """Whether so many labels need no tree, and none is asked for."""
        return self.resolutions is None and self.flat >= L

    def widths(self, L: int) -> tuple[int, ...]:
        """The widths of the layers that all nodes of a level share."""
        if self.layers is not None:
            return numbers_of(self, "layers", int, "512:256")
        return (256,) if self.is_flat(L) else (512, 256)

    def sizes(self, L: int) -> list[int]:
        """K_0, …, K_{T−2}: clusters of each level, coarse first; of 2.8 million labels the paper's 2^11, 2^14, 2^17."""
        if self.is_flat(L):
            return []
        if self.resolutions is not None:
            given = numbers_of(self, "resolutions", int, "64:512")
            if any(after % before for before, after in itertools.pairwise(given)):
                raise ParameterError(
                    f"{self.kind}: resolutions={self.resolutions} must rise from coarse to fine, each a multiple of "
                    "the one before"
                )
            return list(given)
        sizes = [min(2 ** max(round(math.log2(L / FAN)), 1), FINEST)]
        while sizes[0] > COARSEST:
            sizes.insert(0, sizes[0] // FAN)
        return sizes
