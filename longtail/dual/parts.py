"""The parts that recipes of dual encoders are put together from, in one place. Needs torch.

A recipe file is read without torch too, so it names this module lazily (core/lazy.py) and writes `parts.Phase`.
"""

from longtail.dual.dual import CLF, DE, Contrast, Draws, Dual
from longtail.dual.heads import Head
from longtail.dual.mining import clusters_of
from longtail.encoders.bag import BagEncoder
from longtail.encoders.specials import Specials
from longtail.encoders.static import StaticEncoder
from longtail.encoders.table import Table
from longtail.encoders.transformer import TransformerEncoder
from longtail.scoring.chunked import FullBCE, FullDecoupled
from longtail.scoring.contrast import Decoupled, Summed, SupCon, Triplet
from longtail.scoring.losses import BCE, PoolLoss
from longtail.scoring.points import Points
from longtail.search.mining import nearest_negatives
from longtail.train.phase import Group, Phase, Refresh, Structure
from longtail.train.plan import Clustered, Shuffled
from longtail.train.step import GradCached, Plain

__all__ = [
    "BCE",
    "CLF",
    "DE",
    "BagEncoder",
    "Clustered",
    "Contrast",
    "Decoupled",
    "Draws",
    "Dual",
    "FullBCE",
    "FullDecoupled",
    "GradCached",
    "Group",
    "Head",
    "Phase",
    "Plain",
    "Points",
    "PoolLoss",
    "Refresh",
    "Shuffled",
    "Specials",
    "StaticEncoder",
    "Structure",
    "Summed",
    "SupCon",
    "Table",
    "TransformerEncoder",
    "Triplet",
    "clusters_of",
    "nearest_negatives",
]
