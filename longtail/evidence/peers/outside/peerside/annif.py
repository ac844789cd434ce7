"""Annif, through its Python interface: one project with one backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from peerside.driver import TOP, Driver, lines, matrix, padded, rows_of

BATCH = 32  # documents that are indexed at once, as by Annif's own commands
URI = "https://example.org/label/"


class Project(Driver):
    """A project as `annif train` and `annif index` use it; the settings are those of its configuration.

    The analyzer is Annif's own, but takes each text as one sentence. Annif would split sentences with NLTK's models,
    which it downloads when first used.
    """

    def load(self, folder: Path) -> None:
        import annif.registry
        from annif.analyzer import register_analyzer
        from annif.corpus.types import Document, DocumentCorpus, SubjectSet

        from peerside.annif_words import Whole

        register_analyzer(Whole)
        config = {"name": "longtail", "language": "en", "vocab": "labels", "limit": "100"}
        config |= {name: str(value) for name, value in self.settings.items()}
        data, listing = self.place / "annif", self.place / "projects.cfg"
        listing.write_text("[peer]\n" + "".join(f"{name}={value}\n" for name, value in config.items()))
        registry = annif.registry.AnnifRegistry(str(listing), str(data), init_projects=False)
        self.Y = matrix(folder, "Y")
        texts = lines(folder, "labels.texts") if (folder / "labels.texts").exists() else None
        registry.get_vocab("labels").load_vocabulary(self.vocabulary(texts))
        self.project, self.data, self.document = registry.get_project("peer"), data, Document
        index = self.project.subjects
        self.ids = [index.by_uri(f"{URI}{label}") for label in range(self.Y.shape[1])]
        self.labels = np.full(len(index), -1, np.int32)
        self.labels[self.ids] = np.arange(len(self.ids))
        sets = [SubjectSet([self.ids[label] for label in row]) for row in rows_of(self.Y)]
        documents = [Document(text, found) for text, found in zip(lines(folder, "train.texts"), sets, strict=True)]

        class Listed(DocumentCorpus):  # type: ignore[misc]
            @property
            def documents(self) -> Iterator[Any]:
                return iter(documents)

        self.corpus = Listed()

    def vocabulary(self, texts: Sequence[str] | None) -> Any:
        """Write the labels as a SKOS vocabulary, their texts (else numbers) as preferred labels, and open it."""
        import rdflib
        from annif.vocab import VocabFileSKOS

        names = rdflib.Namespace("http://www.w3.org/2004/02/skos/core#")
        graph, path = rdflib.Graph(), self.place / "labels.ttl"
        for label in range(self.Y.shape[1]):
            concept = rdflib.URIRef(f"{URI}{label}")
            text = (texts[label] if texts is not None else "") or str(label)
            graph.add((concept, rdflib.RDF.type, names.Concept))
            graph.add((concept, names.prefLabel, rdflib.Literal(text, lang="en")))
        graph.serialize(str(path), format="turtle")
        return VocabFileSKOS(str(path))

    def train(self) -> None:
        self.project.train(self.corpus, jobs=self.threads)

    def save(self, folder: Path) -> None:
        (self.data / "projects").rename(folder)  # it has saved its model while training
        folder.parent.joinpath("annif", "projects").symlink_to(folder)

    def ready(self) -> None:
        self.project.initialize()

    def points(self, folder: Path) -> list[str]:
        return lines(folder, "test.texts")

    def batch(self, points: list[str], k: int) -> np.ndarray:
        starts = range(0, len(points), BATCH)
        return np.concatenate([self._suggest(points[start : start + BATCH], k) for start in starts])

    def _suggest(self, texts: Sequence[str], k: int) -> np.ndarray:
        found = self.project.suggest([self.document(text) for text in texts]).array.tocsr()
        rows = []
        for first, last in pairwise(found.indptr):
            best = np.argsort(-found.data[first:last], kind="stable")[:k]
            rows.append(self.labels[found.indices[first:last][best]])
        return padded(rows, k)

    def one(self, x: str) -> Any:
        return self._suggest([x], TOP)
