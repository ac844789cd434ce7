"""The field's formats, one per file, each with the same two functions: `matches` and `read`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from longtail.core.registry import Registry
from longtail.data.corpus import Corpus
from longtail.data.options import ReadOptions


@dataclass(frozen=True)
class Format:
    """`matches(path)` looks only at file names and first bytes; `read(path, options)` returns the corpus."""

    name: str
    title: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], Corpus]


# In the order in which they are tried: formats that are recognised with certainty come first.
formats: Registry[Format] = Registry("format")
formats.add("native", "longtail.data.formats.native:FORMAT")
formats.add("jsonl", "longtail.data.formats.jsonl:FORMAT")
formats.add("pecos", "longtail.data.formats.pecos:FORMAT")
formats.add("attentionxml", "longtail.data.formats.attentionxml:FORMAT")
formats.add("repository", "longtail.data.formats.repository:FORMAT")
formats.add("huggingface", "longtail.data.formats.huggingface:FORMAT")
formats.add("fasttext", "longtail.data.formats.fasttext:FORMAT")
formats.add("annif", "longtail.data.formats.annif:FORMAT")
formats.add("table", "longtail.data.formats.table:FORMAT")
