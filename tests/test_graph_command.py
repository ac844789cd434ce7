"""`longtail graph`: a label among its neighbours, for people and programs."""

import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.cli.main import main
from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.labels.neighbourhood import Neighbourhood, find_label, neighbourhood
from longtail.report.names import cut_name, full_name, short_name
from longtail.report.neighbours import STEP, WIDTH, drawing, picture_page, places

ROWS = [
    ["tea", "milk"],
    ["tea", "milk", "sugar"],
    ["tea"],
    ["milk", "sugar"],
    ["coffee", "sugar"],
    ["coffee"],
    ["tea", "cup"],
]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def a_wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Seven points, five labels with texts and one that never occurs."""
    folder = tmp_path / "drinks"
    folder.mkdir()
    lines = [json.dumps({"text": f"text {i}", "labels": row}) for i, row in enumerate(ROWS)]
    (folder / "train.jsonl").write_text("\n".join(lines))
    texts = {
        "tea": "Tea, the leaf",
        "milk": "Milk",
        "sugar": "White sugar",
        "coffee": "Coffee",
        "cup": "A cup",
        "ice": "Ice",
    }
    labels = [json.dumps({"key": key, "text": text}) for key, text in texts.items()]
    (folder / "labels.jsonl").write_text("\n".join(labels))
    return str(folder)


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["graph", *words, "--json", "--quiet"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_counts_by_hand(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, data, "tea")
    assert {k: found[k] for k in ("label", "text", "points", "kind", "found")} == {
        "label": "tea", "text": "Tea, the leaf", "points": 4, "kind": "counts", "found": 3,
    }  # fmt: skip
    figures = [
        (n["label"], n["degree"], n["p_given_label"], n["p_of_label"], n["shared"], n["points"])
        for n in found["neighbours"]
    ]
    third = pytest.approx(1 / 3)
    assert figures == [
        ("milk", 0.5, 0.5, pytest.approx(2 / 3), 2, 3),
        ("cup", 0.25, 0.25, 1.0, 1, 1),  # as often as sugar, but a cup says more of tea
        ("sugar", 0.25, 0.25, third, 1, 3),
    ]
    assert found["between"] == [["milk", "sugar", pytest.approx(2 / 3)]]


def test_what_the_graph_can_be_asked_for(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = lambda found: [n["label"] for n in found["neighbours"]]  # noqa: E731
    assert keys(ran(capsys, data, "tea", "-k", "1")) == ["milk"]
    assert keys(ran(capsys, data, "tea", "--threshold", "0.3")) == ["milk"]
    assert ran(capsys, data, "tea", "--shrink", "1")["neighbours"][0]["degree"] == pytest.approx(2 / 5)
    symmetric = ran(capsys, data, "tea", "--kind", "symmetric")
    assert keys(symmetric) == ["cup", "milk", "sugar"] and symmetric["neighbours"][0]["degree"] == 0.625
    walked = ran(capsys, data, "tea", "--kind", "walk")
    assert {"milk", "cup", "sugar"} <= set(keys(walked)) <= {"milk", "cup", "sugar", "coffee"}
    assert walked == ran(capsys, data, "tea", "--kind", "walk", "--seed", "0")
    assert walked != ran(capsys, data, "tea", "--kind", "walk", "--seed", "1")
    coffee = [n for n in walked["neighbours"] if n["label"] == "coffee"]  # two hops away
    assert all(n["shared"] == n["p_given_label"] == 0 for n in coffee)


def test_the_table(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", data, "tea", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "tea  Tea, the leaf" in out and "4 training points, 3 of 3 neighbours" in out
    assert "P[i|j]" in out and "P[j|i]" in out
    assert re.search(r"milk  Milk +━{12} +0\.500 +0\.667 +2 +3", out)
    assert main(["graph", data, "tea", "--quiet", "--kind", "walk"]) == 0
    assert "visits" in capsys.readouterr().out


def test_a_label_that_never_occurs(data: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "ice.svg"
    for kind in ("counts", "symmetric", "walk"):
        assert main(["graph", data, "ice", "--quiet", "--kind", kind, "--picture", str(picture)]) == 0
        assert "0 training points, no neighbours" in capsys.readouterr().out
    assert "No neighbours." in picture.read_text()


@pytest.mark.parametrize("name", ["sugar", "White sugar", "white SUGAR", "SUGAR"])
def test_found_by_key_or_text(data: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert ran(capsys, data, name)["label"] == "sugar"


def test_unknown_labels(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", data, "mlik", "--quiet"]) == 2
    assert "no label has the key or text 'mlik'. Similar: 'milk' (Milk)." in capsys.readouterr().err
    assert main(["graph", data, "leaf", "--quiet"]) == 2
    assert "Similar: 'tea' (Tea, the leaf)." in capsys.readouterr().err
    assert main(["graph", data, "zzz", "--quiet"]) == 2
    assert "Labels have names such as 'tea' (Tea, the leaf)." in capsys.readouterr().err
    assert main(["graph", data, "", "--quiet"]) == 2
    labels = Labels.of(["1", "2", "3"], ["same", "same", "Same"])
    with pytest.raises(ParameterError, match="2 labels have the name 'same'; give the key of one: '1', '2'"):
        find_label(labels, "same")
    assert find_label(labels, "Same") == 2
    with pytest.raises(ParameterError, match=r"Similar: '1' \(same\)"):
        find_label(labels, "smae")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--threshold", "1"], "threshold must be a number of at least 0 and below 1"),
        (["--threshold", "nan"], "threshold"),
        (["-k", "0"], "k must be a whole number of at least 1; got 0"),
        (["--shrink", "-1"], "shrink must be"),
        (["--shrink", "1", "--kind", "symmetric"], "--shrink is only for --kind counts; leave it out with symmetric"),
        (["--threshold", "0.1", "--kind", "walk"], "--threshold is only for --kind counts or symmetric"),
        (["--seed", "1"], "--seed is only for --kind walk"),
        (["--picture", "x.png"], "--picture must end in .svg or .html"),
    ],
)
def test_wrong_usage(data: str, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["graph", data, "tea", "--quiet", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_corpus_without_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "a", "labels": []}\n')
    (tmp_path / "labels.jsonl").write_text('{"key": "x"}\n')
    assert main(["graph", str(tmp_path), "x", "--quiet"]) == 1
    assert "a label graph needs points with labels" in capsys.readouterr().err


def test_pictures(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page = tmp_path / "tea.svg", tmp_path / "tea.html"
    for path in (svg, page):
        assert main(["graph", data, "tea", "--quiet", "--picture", str(path)]) == 0
    drawn = ET.fromstring(svg.read_text())
    texts = ["".join(t.itertext()) for t in drawn.iter(f"{SVG}text")]
    assert {"tea", "4 points", "milk", "cup", "sugar", "0.50", "0.25"} <= set(texts)
    spokes = [float(line.get("stroke-width", 0)) for line in drawn.iter(f"{SVG}line")]
    assert len(spokes) == 3 and spokes[0] > spokes[1] == spokes[2]
    assert len(list(drawn.iter(f"{SVG}path"))) == 1  # milk and sugar
    whole = page.read_text()
    assert whole.startswith("<!DOCTYPE html>") and "<svg" in whole and "<td>milk  Milk</td><td>0.500</td>" in whole
    assert not re.search(r"(src|href)=", whole)


def large(names: list[str], top: int) -> tuple[Labels, Neighbourhood]:
    L = len(names)
    Y = sp.csr_matrix((np.random.default_rng(0).random((60, L)) < 0.5).astype(np.float32))
    return Labels.of(names), neighbourhood(Y, 0, "symmetric", top=top)


def test_what_comes_from_the_data_is_escaped_and_cut() -> None:
    labels, found = large([f"<b>&\"'{i}</b>" + "x" * 200 + "\x07" for i in range(6)], 5)
    drawn = ET.fromstring(drawing(labels, found))
    assert all(len("".join(t.itertext())) <= 30 for t in drawn.iter(f"{SVG}text") if t.get("class") != "small centre")
    assert "<b>" not in picture_page(labels, found, "<corpus>") and "<corpus>" not in picture_page(
        labels, found, "<corpus>"
    )


@pytest.mark.parametrize("count", [1, 2, 3, 10, 25, 60])
def test_names_in_a_picture_do_not_meet(count: int) -> None:
    found = places(count)
    assert len(found) == count
    for side in (True, False):
        heights = sorted(p.y for p in found if p.left == side)
        assert all(b - a > 0.9 * STEP for a, b in itertools.pairwise(heights))
    assert all(100 < abs(p.x) < WIDTH / 2 - 28 * 7.4 for p in found)
    right = [p for p in found if not p.left]
    assert found[: len(right)] == right and right[0].y == min(p.y for p in right)  # clockwise from the top right


@settings(max_examples=60)
@given(st.text(max_size=20), st.integers(1, 12))
def test_cut_names(name: str, width: int) -> None:
    cut = cut_name(name, width)
    assert cut == name or (cut.endswith("…") and len(cut) <= width and name.startswith(cut[:-1]))
    if name.isascii():
        assert (cut == name) == (len(name) <= width)


def test_names() -> None:
    labels = Labels.of(["12", "vim", "emacs"], ["fresh cheese", "vim: an editor", "another\none"])
    assert [short_name(labels, i) for i in range(3)] == ["fresh cheese", "vim", "emacs"]
    assert [full_name(labels, i) for i in range(3)] == ["12  fresh cheese", "vim: an editor", "emacs  another one"]
    assert short_name(Labels.of(["12"]), 0) == full_name(Labels.of(["12"]), 0) == "12"


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(["counts", "symmetric", "walk"]))
def test_figures_of_neighbours_are_counted_from_the_targets(seed: int, kind: Any) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.random((25, 8)) < 0.25
    dense[0, 0] = True
    Y = sp.csr_matrix((dense * rng.uniform(0.1, 1, dense.shape)).astype(np.float32))
    found = neighbourhood(Y, 0, kind, top=5)
    assert len(found.neighbours) == min(5, found.found) and found.points == dense[:, 0].sum()
    degrees = [n.degree for n in found.neighbours]
    assert degrees == sorted(degrees, reverse=True)
    for n in found.neighbours:
        shared = int((dense[:, 0] & dense[:, n.label]).sum())
        assert (n.shared, n.points) == (shared, dense[:, n.label].sum())
        assert n.forward == pytest.approx(shared / dense[:, 0].sum()) and n.backward == pytest.approx(shared / n.points)
        if kind == "counts":
            assert n.degree == pytest.approx(n.forward)
    chosen = {n.label for n in found.neighbours}
    pairs = {(a, b) for a in chosen for b in chosen if a != b and (dense[:, a] & dense[:, b]).any()}
    assert {frozenset(edge[:2]) for edge in found.between} == {frozenset(pair) for pair in pairs}
