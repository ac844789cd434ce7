"""Label texts as training points, and other ways to enlarge a training set (paper 001, chapter 1)."""

from longtail.augment.points import augment
from longtail.augment.settings import Augmentation

__all__ = ["Augmentation", "augment"]
