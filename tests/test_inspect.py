"""`longtail inspect`: statistics against literal counts, their display, and special cases."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import statistics as literal
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data import Corpus, Dataset
from longtail.data.inspect.bins import Histogram, length_bins, linear_bins, log_bins, rank_curve
from longtail.data.inspect.statistics import RANGES, characters, statistics_of
from longtail.data.read import read
from longtail.report.corpus_page import corpus_page
from longtail.report.corpus_terminal import render
from longtail.report.figures import number, percent, power, ticks
from longtail.report.svg import svg_histogram
from longtail.report.terminal import scatter


def matrix(rows: list[list[int]], L: int) -> sp.csr_matrix:
    indptr = np.cumsum([0, *map(len, rows)])
    columns = [column for row in rows for column in row]
    return sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=(len(rows), L))


def points(texts: list[str], rows: list[list[int]], L: int, ignore: list[list[int]] | None = None) -> Dataset:
    pairs = None if ignore is None else matrix(ignore, L).astype(bool)
    return Dataset(Texts.of(texts), matrix(rows, L), pairs)


def small() -> Corpus:
    """Five labels: a with 3 examples, b with 2, c with 1, d and e with none; e only in test."""
    train = points(
        ["Apple pie, 1", "apple PIE 2", "", "Kirsche", "Apple pie, 1"], [[0, 1], [0], [], [0, 1, 2], []], 5, [[3]] * 5
    )
    dev = points(["kirsche!"], [[0]], 5)
    test = points(["Apple pie, 1", "apple pie 77", "new – \x1b[31mtext"], [[4], [1, 4], [2]], 5)
    labels = Labels.of(list("abcde"), ["apple", "banana", "Kirsche", "", "elder"])
    return Corpus("small", train, labels, dev, test)


def features(test: bool = True) -> Corpus:
    X = sp.csr_matrix(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], np.float32))
    held = Dataset(X[:1], matrix([[1]], 2)) if test else None
    return Corpus("features", Dataset(X, matrix([[0], [0], []], 2)), Labels.of(["a", "b"]), test=held)


def alone() -> Corpus:
    return Corpus("alone", points([""], [[]], 1), Labels.of(["<i>"]))


def shown(corpus: Corpus, width: int = 80, **more: Any) -> str:
    console = Console(file=io.StringIO(), width=width, **more)
    render(statistics_of(corpus), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_small_corpus_by_hand() -> None:
    got = statistics_of(small()).to_json()
    assert got["train"] == {
        "points": 5,
        "labels": {"mean": 1.2, "median": 1.0, "max": 3},
        "unlabelled": 2,
        "ignored": 5,
        "words": {"mean": 2.0, "median": 3.0, "max": 3},
        "empty": 1,
    }
    assert got["dev"]["unseen_mass"] == 0 and got["dev"]["unseen"] == 0
    assert got["test"]["unseen_mass"] == 2 / 4 and got["test"]["unseen"] == 1
    assert (got["labels"], got["labels_with_text"], got["labels_in_train"], got["labels_unseen"]) == (5, 4, 3, 2)
    assert got["points_per_label"] == {"mean": 2.0, "median": 2.0, "max": 3}
    assert got["points_per_label_all"] == {"mean": 1.2, "median": 1.0, "max": 3}
    groups = {g["examples"]: (g["labels"], g["occurrences"], g["test_share"]) for g in got["labels_by_examples"]}
    assert groups["0"] == (2, 0, 0.5) and groups["1"] == (1, 1, 0.25) and groups["2–5"] == (2, 5, 0.25)
    assert list(groups) == ["0", "1", "2–5", "6–20", "21–100", "101–1000", "> 1000"]
    assert got["frequent"][:2] == [
        {"key": "a", "text": "apple", "examples": 3},
        {"key": "b", "text": "banana", "examples": 2},
    ]
    assert len(got["frequent"]) == 3  # labels without examples are not frequent
    assert [tuple(d.values()) for d in got["duplicates"]] == [
        ("train", "earlier", 5, 1, 2),
        ("dev", "train", 1, 0, 1),
        ("test", "train", 3, 1, 2),
        ("train", "labels", 5, 2, 2),  # Kirsche, and the empty text, which is the text of label d
    ]
    first = got["longest"][0]
    assert first == {"part": "test", "row": 2, "words": 3, "characters": 15, "start": "new –  [31mtext"}
    assert [(t["part"], t["row"]) for t in got["longest"][1:]] == [("train", 0), ("train", 4), ("test", 0), ("test", 1)]
    assert json.loads(json.dumps(got)) == got


def folded(text: str) -> str:
    return " ".join("".join(c for c in text.lower() if c.isalpha() or c.isspace()).split()) or text


LABELS = 6
TEXTS = st.lists(st.text(alphabet="aAbé 1.-日", max_size=6), min_size=1, max_size=12)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Corpus, dict[str, tuple[list[str], list[list[int]]]]]:
    parts: dict[str, tuple[list[str], list[list[int]]]] = {}
    for part in ["train", *draw(st.sets(st.sampled_from(["dev", "test"])))]:
        texts = draw(TEXTS)
        rows = [sorted(draw(st.sets(st.integers(0, LABELS - 1), max_size=4))) for _ in texts]
        parts[part] = (texts, rows)
    names = draw(st.none() | st.lists(st.text(alphabet="ab", max_size=2), min_size=LABELS, max_size=LABELS))
    data = {part: points(texts, rows, LABELS) for part, (texts, rows) in parts.items()}
    labels = Labels.of(map(str, range(LABELS)), names)
    return Corpus("drawn", data["train"], labels, data.get("dev"), data.get("test")), parts


@given(corpora())
def test_statistics_equal_literal_counts(drawn: tuple[Corpus, dict[str, tuple[list[str], list[list[int]]]]]) -> None:
    corpus, parts = drawn
    stats = statistics_of(corpus)
    texts, rows = parts["train"]
    counts = [sum(label in row for row in rows) for label in range(LABELS)]
    seen = [count for count in counts if count]
    assert (stats.labels, stats.labels_in_train, stats.labels_unseen) == (LABELS, len(seen), LABELS - len(seen))
    assert stats.per_label_all.mean == pytest.approx(literal.mean(counts))
    assert stats.per_label.median == (literal.median(seen) if seen else 0)
    assert stats.per_label.mean == pytest.approx(literal.mean(seen) if seen else 0)
    for part in stats.parts:
        part_texts, part_rows = parts[part.part]
        sizes, words = [len(row) for row in part_rows], [len(text.split()) for text in part_texts]
        assert (part.points, part.unlabelled, part.empty) == (len(part_texts), sizes.count(0), words.count(0))
        assert part.words is not None and part.words.max == max(words) and part.words.median == literal.median(words)
        assert part.labels.max == max(sizes) and part.labels.mean == pytest.approx(literal.mean(sizes))
        if part.part != "train":
            new = [label for row in part_rows for label in row if not counts[label]]
            assert part.unseen == len(set(new)) and part.unseen_mass == pytest.approx(len(new) / max(sum(sizes), 1))
    for group, (low, high) in zip(stats.groups, RANGES, strict=True):
        inside = [count for count in counts if low <= count <= (10**9 if high is None else high)]
        assert (group.labels, group.occurrences) == (len(inside), sum(inside))
        assert group.share == pytest.approx(len(inside) / LABELS)
    assert [f.examples for f in stats.frequent] == sorted(seen, reverse=True)
    keys = [int(f.key) for f in stats.frequent]
    assert keys == sorted(keys, key=lambda key: (-counts[key], key))
    for found in stats.duplicates:
        own = parts[found.part][0]
        for count, form in ((found.exact, str), (found.folded, folded)):
            mine = [form(text) for text in own]
            if found.other == "earlier":
                assert count == sum(text in mine[:i] for i, text in enumerate(mine))
            else:
                others = texts if found.other == "train" else list(corpus.labels.texts or [])
                assert count == sum(text in {form(other) for other in others} for text in mine)
    places = [(len(text), part, row) for part in parts for row, text in enumerate(parts[part][0])]
    longest = [text.characters for text in stats.longest]
    assert longest == sorted((size for size, *_ in places), reverse=True)[:5]
    assert all((text.characters, text.part, text.row) in places for text in stats.longest)


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5)))
def test_characters_are_those_of_str(texts: list[str]) -> None:
    assert characters(Texts.of(texts)).tolist() == [len(text) for text in texts]


def test_characters_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.data.inspect.statistics.BLOCK", 7)
    texts = ["", "日本語", "ascii", "é" * 20, "", "🙂🙂", ""]
    assert characters(Texts.of(texts)).tolist() == [0, 3, 5, 20, 0, 2, 0]
    assert characters(Texts.of(texts)[1:4]).tolist() == [3, 5, 20]


def test_features_have_columns_instead_of_words() -> None:
    stats = statistics_of(features())
    got = stats.to_json()
    assert got["train"]["columns"] == 3 and got["train"]["nonzeros"] == {"mean": 1.0, "median": 1.0, "max": 2}
    assert "words" not in got["train"] and "empty" not in got["train"]
    assert got["duplicates"] == [] and got["longest"] == []
    assert got["test"]["unseen_mass"] == 1.0 and got["labels_with_text"] == 0
    assert "non-zeros per point, mean" in shown(features()) and "words" not in shown(features())
    assert "Non-zero features per point." in corpus_page(stats) and "words" not in re.sub(
        r"(?s)<style>.*</style>", "", corpus_page(stats)
    )


@pytest.mark.parametrize("corpus", [small(), features(), features(test=False), alone()], ids=lambda c: c.name)
@pytest.mark.parametrize("width", [20, 80, 200])
def test_everything_can_be_shown(corpus: Corpus, width: int) -> None:
    lines = shown(corpus, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)  # no colours without a terminal, and no control codes from a text
    assert corpus_page(statistics_of(corpus)).endswith("</html>\n")


def test_no_test_no_share_of_test() -> None:
    without = dataclasses.replace(small(), dev=None, test=None)
    assert "of test" not in shown(without) and "never seen in training" not in shown(without)
    got = statistics_of(without).to_json()
    assert "test" not in got and "test_share" not in got["labels_by_examples"][0]
    assert "of test" in shown(small())


def test_terminal_tables() -> None:
    text = shown(small())
    assert re.search(r"^points +5 +1 +3$", text, re.M)
    assert re.search(r"^labels per point, mean +1\.20 +1 +1\.33$", text, re.M)
    assert re.search(r"^their share of label occurrences +– +0\.0 % +50\.0 %$", text, re.M)
    assert re.search(r"^test texts that equal a training text +1 +33\.3 % +2 +66\.7 %$", text, re.M)
    assert "training examples of a label" in text and "10⁰" in text


def test_ascii_console() -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"  # type: ignore[assignment]

    console = Console(file=Ascii(), width=80)
    render(statistics_of(small()), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.isascii() and "10^0" in text and "*" in text and "label's" in text


class Checker(HTMLParser):
    """Refuses tags that are left open or closed twice, scripts, and anything that would be fetched."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "i"} and not {"src", "href"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_page_stands_alone_and_escapes() -> None:
    nasty = '<i onclick="x">&amp;</i>'
    train = points([nasty, "b"], [[0], [0]], 1)
    corpus = Corpus(nasty, train, Labels.of([nasty], [nasty]), test=train, about={"kind": nasty, "group": "src"})
    html = corpus_page(statistics_of(corpus))
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.words.count(nasty) == 6  # title, heading, kind, most frequent label, and twice the longest text
    assert "url(" not in html and "http" not in html and "@import" not in html
    assert "prefers-color-scheme: dark" in html and html.count("<svg") == 4


@given(st.lists(st.integers(0, 5000), max_size=50).map(np.array))
def test_bins_hold_every_value(values: np.ndarray) -> None:
    values = values.astype(np.int64)
    for make in (linear_bins, log_bins, length_bins):
        histogram = make(values)
        assert len(histogram.edges) == len(histogram.counts) + 1 <= 42
        assert list(histogram.edges) == sorted(set(histogram.edges))
        assert sum(histogram.counts) + histogram.zeros == len(values)
        for i, count in enumerate(histogram.counts):
            above = histogram.more and i == len(histogram.counts) - 1
            inside = (values >= histogram.edges[i]) & (above | (values < histogram.edges[i + 1]))
            assert count == inside.sum()
        svg = svg_histogram(histogram, ("x", "y"), "label")
        assert svg.count("<rect") == len(histogram.counts) and "nan" not in svg


def test_bin_names_and_tick_labels() -> None:
    histogram = Histogram((0, 1, 2, 3), (5, 1, 4), more=True)
    assert [histogram.name(i) for i in range(3)] == ["0", "1", "≥ 2"]
    assert Histogram((10, 15, 1200), (1, 1), log=True).name(1) == "15–1,199"
    assert log_bins(np.repeat(np.arange(250, 352), 5)).log  # a range without 1, 2 or 5 in front has ticks all the same
    svg = svg_histogram(log_bins(np.arange(250, 352)), ("x", "y"), "label")
    assert re.findall(r'class="x"[^>]*>([^<]+)<', svg) == ["250", "300", "350"]


@given(st.lists(st.integers(0, 10**6), max_size=400))
def test_rank_curve_is_the_sorted_counts(counts: list[int]) -> None:
    ranks, values = rank_curve(np.array(counts, np.int64), points=50)
    falling = sorted((count for count in counts if count), reverse=True)
    assert len(ranks) <= 50 and values.tolist() == [falling[rank - 1] for rank in ranks]
    if falling:
        assert ranks[0] == 1 and ranks[-1] == len(falling)


def test_scatter_places_dots_on_the_axes() -> None:
    """A corner at 10⁰, 10⁰ and the last dot just left of the padding; one character a dot in ASCII."""
    lines = scatter(np.array([1, 10, 100]), np.array([100, 10, 1]), 40, 9, ("rank", "count"), ascii=True)
    assert lines[0] == "count" and lines[-1] == "rank".rjust(40)
    body = [line[6:] for line in lines[1:10]]
    assert [(row, line.index("*")) for row, line in enumerate(body) if "*" in line] == [(0, 0), (4, 16), (8, 32)]
    assert [line[:5].strip() for line in lines[1:10]] == ["10^2", "", "", "", "10^1", "", "", "", "10^0"]
    assert lines[10] == "     ++---------------+---------------+-"
    assert max(map(len, lines)) <= 40
    braille = "".join(scatter(np.array([1]), np.array([1]), 40, 9, ("rank", "count"), ascii=False))
    assert "⡀" in braille  # the lower left dot of a cell


@given(st.floats(1e-3, 1e6))
def test_ticks_cover(high: float) -> None:
    marks = ticks(high)
    assert marks[0] == 0 and marks[-1] >= high * 0.999 and 2 <= len(marks) <= 7
    steps = np.diff(marks)
    assert np.allclose(steps, steps[0])


def test_figures_for_reading() -> None:
    assert [number(x) for x in (0, 7.0, 5.049, 55.58, 582.6, 1234.5, 63557)] == [
        *("0", "7", "5.05", "55.6", "582.6", "1,234", "63,557")
    ]
    assert [percent(x) for x in (0, 0.0001, 0.2506, 1)] == ["0.0 %", "< 0.1 %", "25.1 %", "100.0 %"]
    assert power(12) == "10¹²" and power(3, ascii=True) == "10^3"


def test_bundled_corpus_has_its_published_figures() -> None:
    """The row of the corpus in the table of data sets, and what is said of its duplicates and unseen labels."""
    got = statistics_of(read("debian-related")).to_json()
    assert (got["train"]["points"], got["test"]["points"]) == (59_925, 15_305)
    assert (got["labels"], got["labels_with_text"], got["labels_in_train"]) == (63_557, 63_557, 54_639)
    assert number(got["train"]["labels"]["mean"]) == "5.05" and number(got["train"]["words"]["mean"]) == "7.63"
    assert number(got["points_per_label"]["mean"]) == "5.54" and got["points_per_label"]["median"] == 2
    assert percent(got["test"]["unseen_mass"]) == "25.1 %"
    assert (got["train"]["ignored"], got["test"]["ignored"]) == (42_284, 10_938)
    equal = {(d["part"], d["other"]): d["exact"] for d in got["duplicates"]}
    assert equal == {("train", "earlier"): 0, ("test", "train"): 0, ("train", "labels"): 42_284}
