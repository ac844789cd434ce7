"""InceptionXML-LF (paper 000, appendix A): InceptionXML with label texts and a label graph in its classifiers.

longtail train DATA --recipe inceptionxml-lf --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.core.parameters import param
from longtail.recipes.inceptionxml import InceptionXML, Read
from longtail.recipes.walked import WithGraph

if TYPE_CHECKING:
    from longtail.cascade.joint import Shape
    from longtail.encoders.sequence import SequenceEncoder
    from longtail.train.learner import Phase


@dataclass(frozen=True)
class InceptionXMLLF(WithGraph, InceptionXML):
    """The weights of label l are an attention-weighted sum of Φ_l(z¹), Φ_g(z²) and a free row w_l.

    z¹ = E z⁰ is the label's text through the words' table, z² = Σ_m G_lm z¹_m that of its neighbours in the graph of
    random walks, Φ(z) = α·R·GELU(z) + β·z. The three convolutions of the encoder are mixed by each text, and the
    second one is each task's own. Phase I (`texts`) trains without w_l. Then labels are clustered anew by z¹, the
    clusters' classifiers begin again, w_l begins at z¹, and phase II (`joint`) repeats the training with all three.
    Labels train the encoder from the first step on.
    """

    name = "inceptionxml-lf"
    title = "InceptionXML with label texts and a label graph in its classifiers"
    paper = "Gandalf, Kharbanda et al. 2024, appendix"
    needs = ("text", "label text")
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "dimension": 128,
            "clusters": 4096,
            "shortlist": 400,
            "dropout": 0.2,
            "bias": True,
            "batch": 512,
            "epochs": 2,
            "lr": 0.02,
        }
    }

    detached: int = param(0, "epochs at first in which labels do not train the encoder", at_least=0)

    def phases(self) -> list[Phase]:
        """Without free rows, and with."""
        first = super().phases()[0]
        return [replace(first, name="texts"), first]

    def encoder(self, read: Read) -> SequenceEncoder:
        """Word vectors and the routed network."""
        from longtail.encoders.inception import Inception
        from longtail.encoders.sequence import SequenceEncoder

        E = self.word_vectors(read)
        return SequenceEncoder(E, Inception(E.width, self.length, routed=True))

    def shape(self, read: Read, seed: int) -> Shape:
        """With the graph Ĝ."""
        return replace(super().shape(read, seed), graph=self.graph(read.Y, seed))

    @property
    def routed(self) -> bool:
        """Yes."""
        return True
