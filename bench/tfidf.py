"""TF-IDF compared with scikit-learn. Run: `python bench/tfidf.py CORPUS [--threads 2] [--repeats 3] [--only words]`.

Both learn the vocabulary of the training texts and encode them ("fit", scikit-learn's fit_transform), then encode them
again as if they were new ("encode", its transform), with the same settings, alternating. Prints the medians of
wall-clock and processor time, ratios within this run, and the largest difference between the two matrices. At the end:
one short text, from `str` to a row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import longtail
from longtail import _native
from longtail.core.texts import Texts
from longtail.encoders.tfidf import Tfidf, TfidfParameters

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "words": ({}, {}),
    "words 1-2": ({"ngrams": 2}, {"ngram_range": (1, 2)}),
    "characters 3-5": ({"ngrams": 0, "char_ngrams": "3-5"}, {"analyzer": "char_wb", "ngram_range": (3, 5)}),
}
Times = dict[str, tuple[float, float]]


def timed(times: Times, step: str, call: Any) -> Any:
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    times[step] = time.perf_counter() - wall, time.process_time() - processor
    return result


def ours(texts: Texts, settings: dict[str, Any]) -> tuple[Times, Any, list[str]]:
    times: Times = {}
    encoder, counts = timed(times, "count", lambda: Tfidf.fit(texts, TfidfParameters(**settings)))
    matrix = timed(times, "weigh", lambda: encoder.weigh(counts))
    wall, processor = (a + b for a, b in zip(times.pop("count"), times.pop("weigh"), strict=True))
    times["fit"] = wall, processor
    timed(times, "encode", lambda: encoder.encode(texts))
    return times, matrix, list(encoder.terms)


def theirs(texts: list[str], settings: dict[str, Any]) -> tuple[Times, Any, list[str]]:
    times: Times = {}
    vectoriser = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **settings)
    matrix = timed(times, "fit", lambda: vectoriser.fit_transform(texts))
    timed(times, "encode", lambda: vectoriser.transform(texts))
    return times, matrix, list(vectoriser.get_feature_names_out())


def apart(texts: list[str], name: str) -> str:
    """How far apart are the two matrices on ASCII texts? Beyond ASCII they differ by design (docs/features.md)."""
    plain = [text for text in texts if text.isascii()][:3000]
    _, X, ours_terms = ours(Texts.of(plain), SETTINGS[name][0])
    _, Y, theirs_terms = theirs(plain, SETTINGS[name][1])
    place = {term: column for column, term in enumerate(theirs_terms)}
    if set(place) != set(ours_terms):
        return "not the same terms"
    return f"same terms, at most {abs(X - Y[:, [place[term] for term in ours_terms]]).max():.1e} apart"


def single(texts: Texts, text: str) -> None:
    for name, settings in [(name, pair[0]) for name, pair in SETTINGS.items()] + [("hashed", {"hashing": 2**20})]:
        encoder, _ = Tfidf.fit(texts[:10_000], TfidfParameters(**settings))
        times = []
        for _ in range(2000):
            start = time.perf_counter()
            encoder.encode(Texts.of([text]))
            times.append(1e6 * (time.perf_counter() - start))
        p50, p99 = np.percentile(times[100:], [50, 99])
        print(f"one text, {name}: p50 {p50:.0f} µs, p99 {p99:.0f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a folder, a file, or a bundled corpus by its name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--texts", type=int, help="use only this many texts")
    parser.add_argument("--only", action="append", choices=list(SETTINGS))
    args = parser.parse_args()
    _native.set_threads(args.threads)
    texts = longtail.read(args.corpus).train.texts[: args.texts]
    strings = list(texts)
    print(f"{len(texts):,} texts, {len(texts.data) / 1e6:,.0f} MB, {args.threads} threads, median of {args.repeats}")
    print("| terms | step | longtail s (processor) | scikit-learn s (processor) | ratio |")
    print("| --- | --- | --- | --- | --- |")
    told = []
    for name in args.only or SETTINGS:
        mine, other = SETTINGS[name]
        runs = [(ours(texts, mine)[0], theirs(strings, other)[0]) for _ in range(args.repeats)]
        told.append(f"{name}, up to 3,000 texts in plain ASCII: {apart(strings, name)}")
        for step in ("fit", "encode"):
            (a, a_cpu), (b, b_cpu) = (
                [statistics.median(run[side][step][clock] for run in runs) for clock in (0, 1)] for side in (0, 1)
            )
            print(f"| {name} | {step} | {a:.2f} ({a_cpu:.2f}) | {b:.2f} ({b_cpu:.2f}) | {b / a:.1f}× |", flush=True)
    print(*told, sep="\n")
    single(texts, "council regulation on fishery products from norway and iceland")


if __name__ == "__main__":
    main()
