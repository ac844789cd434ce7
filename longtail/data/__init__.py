"""Corpora: points with labels, read from the field's formats, split and described."""

from longtail.data.corpus import Corpus as Corpus
from longtail.data.dataset import Dataset as Dataset
