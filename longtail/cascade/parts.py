"""The parts that recipes of cascades are put together from, in one place. Needs torch.

A recipe file is read without torch too, so it names this module lazily (core/lazy.py) and writes `parts.Phase`.
"""

from longtail.cascade.cascade import Cascade, tree_structure
from longtail.cascade.coarse import coarse_points
from longtail.cascade.joins import LastJoin, ParentJoin, PathJoin, WalkJoin
from longtail.cascade.near import Nearby, NearJoin
from longtail.data.sparse import normalise_rows
from longtail.encoders.bag import BagEncoder, Bags
from longtail.encoders.inception import Inception
from longtail.encoders.lstm import LSTMEncoder
from longtail.encoders.pretrained import depth_of
from longtail.encoders.sequence import SequenceEncoder
from longtail.encoders.specials import Specials
from longtail.encoders.table import Table
from longtail.encoders.taps import Tap, Tapped
from longtail.encoders.transformer import TransformerEncoder
from longtail.labels.graph import normalised, walk
from longtail.labels.represent import centroids, largest, pifa, with_neighbours
from longtail.labels.tree import LabelTree
from longtail.scoring.attended import Attended, Shared
from longtail.scoring.candidates import All, Below, Static
from longtail.scoring.level import Dot, Level
from longtail.scoring.losses import BCE, SquaredHinge
from longtail.scoring.points import Points
from longtail.scoring.weights import Blended, Free, FromGraph, FromText, Gated, LabelWeights
from longtail.search.dense import unit
from longtail.train.phase import Group, Phase, Refresh, Structure
from longtail.train.plan import Clustered, Shuffled, Sized

CLUSTERS, LABELS = 0, 1  # the levels of a cascade over clusters, as phases name them

__all__ = [
    "BCE",
    "CLUSTERS",
    "LABELS",
    "All",
    "Attended",
    "BagEncoder",
    "Bags",
    "Below",
    "Blended",
    "Cascade",
    "Clustered",
    "Dot",
    "Free",
    "FromGraph",
    "FromText",
    "Gated",
    "Group",
    "Inception",
    "LSTMEncoder",
    "LabelTree",
    "LabelWeights",
    "LastJoin",
    "Level",
    "NearJoin",
    "Nearby",
    "ParentJoin",
    "PathJoin",
    "Phase",
    "Points",
    "Refresh",
    "SequenceEncoder",
    "Shared",
    "Shuffled",
    "Sized",
    "Specials",
    "SquaredHinge",
    "Static",
    "Structure",
    "Table",
    "Tap",
    "Tapped",
    "TransformerEncoder",
    "WalkJoin",
    "centroids",
    "coarse_points",
    "depth_of",
    "largest",
    "normalise_rows",
    "normalised",
    "pifa",
    "tree_structure",
    "unit",
    "walk",
    "with_neighbours",
]
