"""Texts as sequences of word numbers: the input of encoders that use the order of words."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from longtail.core.errors import DataError, StoreError
from longtail.core.progress import Progress
from longtail.core.texts import Texts
from longtail.encoders.tokens import (
    FIRST,
    PADDING,
    UNKNOWN,
    TokenReader,
    at_least_one,
    blocks,
    refuse_other_version,
    tokenizers,
)
from longtail.store.parts import pack_texts, unpack_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAMES = {" ": PADDING, "\n": UNKNOWN}  # no word contains white space, so that no text can spell these

# Scripts written without spaces, as tools/unicode_table.py has them, in a regular expression's brackets.
UNSPACED = "".join(
    f"\\x{{{first:X}}}-\\x{{{last:X}}}"
    for first, last in (
        (0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Tibetan, Burmese, Khmer
        (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),  # kana, Han
        (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F), (0x20000, 0x323AF),
    )
)  # fmt: skip
LETTER = r"\p{L}\p{M}\p{N}"  # marks belong to the letter before: vowels of Hindi, accents that stand alone
WORD = rf"[{LETTER}&&[^{UNSPACED}]]+|[{LETTER}&&[{UNSPACED}]]\p{{M}}*"


class Words(TokenReader):
    """A vocabulary learnt from texts, and texts as sequences of its numbers.

    A word is a run of letters and digits, brought to one spelling (Unicode NFKC) and lower-cased; in scripts written
    without spaces (Chinese, Japanese, Thai, …) every character is one. `terms[i]` is the word with number i + 2, the
    most frequent first, equally frequent ones by their bytes; 0 is padding and 1 every other word.
    """

    kind, version = "words", 1

    def __init__(self, terms: Texts):
        self.terms = terms

    @classmethod
    def fit(
        cls, texts: Texts, *, min_texts: int = 1, limit: int | None = None, progress: Progress | None = None
    ) -> Words:
        """The words that occur in at least `min_texts` of the texts; of these at most `limit`."""
        at_least_one(cls.kind, min_texts=min_texts, limit=1 if limit is None else limit)
        texts = Texts.of(texts)
        tokenizer = cutter({})
        # without a number it would stop at 30,000 words
        trainer = tokenizers().trainers.WordLevelTrainer(vocab_size=2**31, min_frequency=0, show_progress=False)
        with (progress or Progress()).bar("Words", len(texts), "texts") as bar:
            tokenizer.train_from_iterator(blocks(texts, bar), trainer)
        number = tokenizer.get_vocab(with_added_tokens=False)
        terms = Texts.of(sorted(number, key=number.__getitem__))
        if min_texts > 1:
            terms = terms[cls(terms).document_frequency(texts)[FIRST:] >= min_texts]
        if not len(terms):
            fix = "a word has at least one letter or digit; min_texts may leave out too many words"
            found_text = texts[0] if len(texts) else None
            raise DataError("the texts contain no word that can be used", found=found_text, fix=fix)
        return cls(terms if limit is None else terms[:limit])

    def __len__(self) -> int:
        return FIRST + len(self.terms)

    def names(self, columns: Iterable[int]) -> list[str]:
        """The words with these numbers; padding and unknown are empty strings."""
        return ["" if column < FIRST else self.terms[int(column) - FIRST] for column in columns]

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the vocabulary."""
        return self.terms.digest()

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values from which `from_state` makes the same reader."""
        return dict(pack_texts("words", self.terms)), {"version": self.version}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Words:
        """The reader that `state` described."""
        terms = unpack_texts("words", arrays)
        if terms is None:
            raise StoreError("the arrays of the words are not in this folder; it is damaged: make it again")
        refuse_other_version(cls, meta)
        return cls(terms)

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        return cutter(dict(zip(self.terms, itertools.count(FIRST), strict=False)))


def cutter(numbers: Mapping[str, int]) -> Tokenizer:
    """A tokenizer that cuts texts to words and gives their numbers."""
    of = tokenizers()
    made = of.Tokenizer(of.models.WordLevel({**NAMES, **numbers}, unk_token="\n"))
    made.normalizer = of.normalizers.Sequence([of.normalizers.NFKC(), of.normalizers.Lowercase()])
    made.pre_tokenizer = of.pre_tokenizers.Split(of.Regex(WORD), "removed", invert=True)
    return made
