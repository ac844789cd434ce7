"""Static token vectors distilled from an encoder: its output for each of its word pieces alone.

The encoder reads a piece between its special tokens, and the mean of its last layer is that piece's vector. The mean
over all pieces is subtracted, and the principal components are kept: the first d of them are the best d dimensions.
Summed with idf weights, such vectors compare texts about as well as the encoder does, without running it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError, MissingExtraError, ParameterError
from longtail.core.progress import Progress
from longtail.core.texts import Texts
from longtail.encoders.source import CONFIG, WEIGHTS, Source, encoder_files
from longtail.encoders.subwords import Subwords, opened, specials_of
from longtail.encoders.tfidf import Tfidf
from longtail.encoders.tokens import FIRST, TokenReader
from longtail.encoders.words import Words
from longtail.store.cache import cached

DIMENSIONS = 256
VERSION = 1  # of how vectors are made: raise it when the same encoder gives others
BATCH = 512  # pieces that the encoder reads at a time
MOST_READY = 3  # arrays in a file of ready-made vectors: model2vec may add a weight and a number for each piece
FEATURE = "vectors distilled from an encoder"


class StaticVectors(NamedTuple):
    """Vectors (P, d) of the P pieces of a tokenizer, by its ids; their mean squared length is 1.

    `about` is for the model to record: source, version, licence, card_licence (see `encoders.source`), dimensions.
    """

    vectors: NDArray[np.float32]
    about: dict[str, Any]
    source: Source


def static_vectors(
    source: str | Path | None = None, dimensions: int = DIMENSIONS, progress: Progress | None = None
) -> StaticVectors:
    """The static vectors of an encoder: a folder as transformers saves it, or None for the installed package.

    Needs torch only the first time: all components are kept in the cache, under a digest of the encoder's files, and
    fewer dimensions are the first columns of the same array. A folder may also hold ready-made vectors (`ready`).
    """
    files = encoder_files(source, FEATURE)
    components = ready(files)
    if components is None:
        key = f"static vectors of {digest_of(files)}, version {VERSION}"
        components = cached(key, lambda: {"components": principal(encoded(files, progress))})["components"]
    width = components.shape[1]
    if not 1 <= dimensions <= width:
        raise ParameterError(f"dimensions must be 1 to {width}, the width of this encoder, but is {dimensions}")
    vectors = np.array(components[:, :dimensions], np.float32)
    vectors /= max(float(np.sqrt(np.square(vectors, dtype=np.float64).sum(1).mean())), 1e-12)
    return StaticVectors(vectors, files.about | {"dimensions": dimensions}, files)


def ready(files: Source) -> NDArray[Any] | None:
    """The vectors (P, width) of a folder whose only array is a matrix of them; None for the folder of an encoder.

    model2vec saves its models in this form. The two files of wordllama's package also work in a folder of their own.
    """
    weights = list(files.folder.glob(WEIGHTS))
    if len(weights) != 1:
        return None
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise MissingExtraError(FEATURE, "deep") from error
    try:
        with safe_open(weights[0], framework="np") as found:
            names = [name for name in found.keys() if len(found.get_slice(name).get_shape()) == 2]  # noqa: SIM118
            if len(found.keys()) > MOST_READY or len(names) != 1:
                return None
            vectors: NDArray[Any] = found.get_tensor(names[0])
    except TypeError as error:  # NumPy has no bfloat16
        fix = "save them in float32 or float16"
        raise DataError("vectors of this type cannot be read", where=weights[0], found=str(error), fix=fix) from None
    except Exception as error:  # the library's own class for files that are damaged
        raise DataError("not a safetensors file", where=weights[0], found=str(error), fix="copy it again") from None
    pieces = len(pieces_of(opened(files.tokenizer.read_bytes())))
    if len(vectors) != pieces:
        fix = "give the tokenizer that these vectors were made for"
        raise DataError(f"{len(vectors)} vectors, but the tokenizer has {pieces} pieces", where=weights[0], fix=fix)
    return vectors


def vectors_of(reader: Tfidf | TokenReader, static: StaticVectors) -> NDArray[np.float32]:
    """The vectors (V, d) with which a table of a reader's terms can start.

    Sub-words have those of their pieces, if they are cut by the encoder's own tokenizer. A word has the sum of its
    pieces, weighted by TF-IDF among the words of the vocabulary: pieces that many words share say little about each.
    Padding, unknown tokens, and words without a known piece have zeros.
    """
    if isinstance(reader, Subwords):
        if static.source.tokenizer.read_bytes() != reader.file:
            raise ParameterError(
                f"these static vectors are those of {static.about['source']}, but the texts are cut by another "
                f"tokenizer ({reader.about.get('source', 'unknown')}); take both from the same source"
            )
        return with_first_rows(static.vectors)
    if isinstance(reader, Words):
        return with_first_rows(sums(reader.terms, static))
    if not isinstance(reader, Tfidf) or reader.settings.hashing is not None:
        raise ParameterError("static vectors need terms with names; leave out `hashing`")
    return sums(reader.terms, static)


def sums(terms: Texts, static: StaticVectors) -> NDArray[np.float32]:
    """The vector of each term (n, d): the sum of its pieces' vectors, weighted by their TF-IDF among the terms."""
    pieces = Subwords(static.source.tokenizer.read_bytes())
    counts = pieces.count(terms)
    return np.asarray(pieces.learnt_from(counts).weigh(counts)[:, FIRST:] @ static.vectors, np.float32)


def with_first_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of zeros for padding and unknown tokens, before those of the known tokens."""
    return np.concatenate([np.zeros((FIRST, vectors.shape[1]), np.float32), vectors])


def digest_of(files: Source) -> str:
    """SHA-256 of the tokenizer, settings and weights."""
    weights = sorted(files.folder.glob(WEIGHTS))
    if not weights or not (files.folder / CONFIG).is_file():
        fix = f"give a folder with {CONFIG} and {WEIGHTS}, as the library `transformers` saves an encoder"
        raise DataError("there are no encoder weights in this folder", where=files.folder, fix=fix)
    hasher = hashlib.sha256()
    for path in (files.tokenizer, files.folder / CONFIG, *weights):
        with path.open("rb") as file:
            hasher.update(hashlib.file_digest(file, "sha256").digest())
    return hasher.hexdigest()


def encoded(files: Source, progress: Progress | None = None) -> NDArray[np.float32]:
    """The encoder's output for each piece alone (P, width): the mean of its last layer, special tokens included."""
    try:
        import torch
        from transformers import AutoModel
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError(FEATURE, "deep") from error
    tokenizer = opened(files.tokenizer.read_bytes())
    pieces = pieces_of(tokenizer)
    before, after = specials_of(tokenizer)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # there is our own
    model = AutoModel.from_pretrained(files.folder, local_files_only=True, use_safetensors=True).eval()
    found = []
    with torch.inference_mode(), (progress or Progress()).bar("Distilling word pieces", len(pieces), "pieces") as bar:
        for start in range(0, len(pieces), BATCH):
            ids = torch.tensor([[*before, piece, *after] for piece in pieces[start : start + BATCH]])  # (B, T)
            hidden = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state  # (B, T, width)
            found.append(hidden.mean(1).float().numpy())
            bar.advance(len(ids))
    return np.concatenate(found)


def pieces_of(tokenizer: Any) -> range:
    """All ids of a tokenizer."""
    return range(1 + max(tokenizer.get_vocab(with_added_tokens=True).values()))


def principal(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """The principal components of the rows X (P, width) without their mean, the largest first: (P, width).

    Of the two signs a component can have, the one is taken that makes its largest weight positive.
    """
    centred = X.astype(np.float64) - X.mean(0, dtype=np.float64)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]  # (width, width), by falling variance
    largest = np.take_along_axis(axes, np.abs(axes).argmax(0)[None, :], 0)
    return np.asarray(centred @ (axes * np.sign(largest)), np.float32)
