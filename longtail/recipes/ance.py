"""ANCE (Xiong et al., ICLR 2021): DPR with negatives that are mined again and again.

longtail train DATA --recipe ance --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass

from longtail.core.parameters import param
from longtail.recipes.dpr import DPR


@dataclass(frozen=True)
class ANCE(DPR):
    """As DPR, and each query also meets the wrong labels that were nearest to it at the last search.

    The authors search in a second process while training goes on; here training waits for the search.
    """

    name = "ance"
    title = "DPR with negatives that are near, searched again every few epochs"
    paper = "ANCE, Xiong et al. 2021"

    negatives: int = param(1, "mined negatives of a query that are drawn", at_least=0)  # paper: 1
