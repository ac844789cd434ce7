"""An analyzer of Annif that needs no data of NLTK. In a module of its own, since Annif saves it with its models."""

from __future__ import annotations

from annif.analyzer.snowball import SnowballAnalyzer
from nltk.stem.snowball import SnowballStemmer
from nltk.tokenize import word_tokenize


class Whole(SnowballAnalyzer):  # type: ignore[misc]
    """Annif's Snowball analyzer, "whole(LANGUAGE)" in a project's configuration; a text is one sentence."""

    name = "whole"

    def __init__(self, param: str) -> None:
        self.param, self.stemmer = param, SnowballStemmer(param)  # the base class would download NLTK's models

    def tokenize_sentences(self, text: str) -> list[str]:
        return [text]

    def tokenize_words(self, text: str, filter: bool = True) -> list[str]:
        words = word_tokenize(text, preserve_line=True)
        return [self._normalize_word(word) for word in words if not filter or self.is_valid_token(word)]
