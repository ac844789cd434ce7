"""Label texts as training points, and what else makes more of a training set (paper 001, chapter 1)."""

from longtail.augment.points import augment
from longtail.augment.settings import Augmentation

__all__ = ["Augmentation", "augment"]
