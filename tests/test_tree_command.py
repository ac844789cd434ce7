"""The label tree in the forms that users and programs read."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail.cli.main import main
from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.labels.export import label_paths, nested, parent_list
from longtail.labels.show import ROOT, Line, TreeView, outline, pieces
from longtail.labels.tree import LabelTree


@pytest.fixture(autouse=True)
def a_wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def random_view(seed: int, L: int, branching: int, leaf_size: int) -> TreeView:
    rng = np.random.default_rng(seed)
    shape = LabelTree.balanced(sp.csr_matrix((L, 3), dtype=np.float32), branching, leaf_size, seed)
    tree = LabelTree(rng.permutation(L).astype(np.int32), shape.levels)
    labels = Labels.of([f"label{i}" for i in range(L)], counts=rng.integers(0, 9, L))
    return TreeView(tree, labels)


def clusters(tree: LabelTree, t: int) -> set[frozenset[int]]:
    ends = tree.levels[t]
    return {frozenset(tree.order[a:b].tolist()) for a, b in itertools.pairwise(ends)}


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 60), st.sampled_from([2, 4]), st.integers(2, 9))
def test_the_parent_list_is_the_tree(seed: int, L: int, branching: int, leaf_size: int) -> None:
    view = random_view(seed, L, branching, leaf_size)
    below: dict[str, set[int]] = {}
    parents = {}
    for line in map(json.loads, parent_list(view, ROOT, view.depth)):
        if "label" in line:
            at, label = line["parent"], int(line["label"].removeprefix("label"))
            while at != "root":
                below.setdefault(at, set()).add(label)
                at = parents[at]
            below.setdefault("root", set()).add(label)
        else:
            parents[line["node"]] = line["parent"]  # a parent comes before its children
    assert below.pop("root") == set(range(L))
    for t in range(view.depth - 1):
        named = {frozenset(found) for name, found in below.items() if name.count(".") == t}
        assert named == clusters(view.tree, t)


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 60), st.sampled_from([2, 4]), st.integers(2, 9))
def test_all_forms_say_the_same(seed: int, L: int, branching: int, leaf_size: int) -> None:
    view = random_view(seed, L, branching, leaf_size)
    lines = b"".join(label_paths(view, ROOT, view.depth)).decode().splitlines()
    path_of = dict(line.split("\t") for line in lines)
    assert len(lines) == len(path_of) == L

    def check(node: dict[str, object]) -> set[str]:
        children = node.get("children")
        if children is None:
            return {str(node["label"])}
        assert isinstance(children, list)
        labels = set().union(*(check(child) for child in children))
        assert node["labels"] == len(labels)
        assert {path_of[c["label"]] for c in children if "label" in c} <= {node["node"]}
        return labels

    assert check(nested(view, ROOT, view.depth)) == set(path_of)
    for label in range(L):
        way = view.way(label)
        assert way[0] is ROOT and view.label_of(way[-1]) == label
        assert way[-2].name == path_of[f"label{label}"]
        assert [view.find(node.name) for node in way] == way
        assert all(child in view.children(node) for node, child in itertools.pairwise(way))


def test_examples_are_the_most_frequent_and_removed_labels_are_gone() -> None:
    tree = LabelTree(np.array([2, 0, 3, 1], np.int32), (np.array([0, 2, 4]), np.arange(5)))
    labels = Labels.of(["a", "b", "c", "d"], counts=np.array([3, 9, 5, 1])).remove(["b"])
    view = TreeView(tree, labels, lambda level, node, count: ["w"] * count, word_count=2)
    assert view.facts(ROOT) == {"node": "root", "labels": 3, "words": [], "examples": ["c", "a", "d"]}
    left, right = view.children(ROOT)
    assert view.facts(left) == {"node": "0", "labels": 2, "words": ["w", "w"], "examples": ["c", "a"]}
    assert [view.facts(child) for child in view.children(right)] == [{"label": "d", "count": 1}]
    assert b"".join(label_paths(view, ROOT, 2)) == b"a\t0\nc\t0\nd\t1\n"
    assert b"".join(label_paths(view, ROOT, 1)) == b"a\t0\nc\t0\nd\t1\n"
    assert b"".join(label_paths(view, ROOT, 0)) == b"a\troot\nc\troot\nd\troot\n"


def test_an_outline_is_cut_and_says_so() -> None:
    view = random_view(0, 40, 4, 5)
    names = [line.node.name if line.node else f"+{line.left_out}" for line in outline(view, ROOT, 2, 1)]
    children = view.children(ROOT)
    assert names == ["0", "0.0", f"+{len(view.children(children[0])) - 1}", f"+{len(children) - 1}"]
    way = view.way(17)
    followed = [line.node for line in outline(view, ROOT, view.depth, 1, way)]
    assert [node for node in followed if node is not None] == way[1:]
    last = next(line for line in outline(view, ROOT, view.depth, 1, way) if line.node == way[-1])
    assert "label17" in "".join(text for text, _ in pieces(view, last, way))


def test_numbers_are_shown_by_their_text_and_odd_keys_stay_on_one_line() -> None:
    tree = LabelTree(np.arange(3, dtype=np.int32), (np.arange(4),))
    view = TreeView(tree, Labels.of(["7", "a\tb\nc\\", "x"], ["seven", "odd", ""]))
    assert [view.name_of(i) for i in range(3)] == ["seven", "a b c\\", "x"]
    assert b"".join(label_paths(view, ROOT, 1)).decode() == "7\troot\na\\tb\\nc\\\\\troot\nx\troot\n"
    assert "seven" in pieces(view, Line("", view.children(ROOT)[0]))[1]


@pytest.mark.parametrize("name", ["9", "0.9", "x", "", "0.", "-1"])
def test_unknown_nodes(name: str) -> None:
    with pytest.raises(ParameterError, match="the tree has no node"):
        random_view(0, 40, 4, 5).find(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "model"
    longtail.recipe("xr-linear", leaf_size=2, branching=2).fit(topic_corpus()).save(path)
    return path


def out_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def error_of(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == code
    return capsys.readouterr().err


def test_the_words_of_a_cluster_are_those_of_its_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from corpora import TOPICS

    root = json.loads(out_of(capsys, "tree", folder, "--json"))
    assert root["labels"] == 6
    for top in root["children"]:
        topics = [leaf["label"] for node in top["children"] for leaf in node.get("children", [node])]
        assert sorted(top["examples"]) == sorted(topics)
        known = {word for topic in topics for word in TOPICS.get(topic, "").split()}
        assert top["words"] and set(top["words"]) <= known


def test_the_outline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "tree", folder)
    assert out.splitlines()[0] == "6 labels in 2 → 4 clusters (xr-linear)"
    assert "├─ 0  3 labels  [" in out
    assert "chess" in out and "astronomy  0×" in out  # so small a tree is shown whole
    assert "0.0" not in out_of(capsys, "tree", folder, "--depth", 1)
    assert out_of(capsys, "tree", folder, "--node", 1).splitlines()[2].startswith("1  3 labels")


def test_one_label(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "tree", folder, "--label", "chess")
    assert "chess" in next(line for line in out.splitlines() if "◀" in line)
    found = json.loads(out_of(capsys, "tree", folder, "--label", "chess", "--json"))
    opened = [child for child in found["children"] if "children" in child]
    assert len(found["children"]) == 2 and len(opened) == 1
    assert "Did you mean 'chess'?" in error_of(capsys, 2, "tree", folder, "--label", "chss")


def test_files_are_named_by_their_ending(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ending, start in (
        ("json", "{"),
        ("jsonl", '{"parent":"root"'),
        ("tsv", ""),
        ("dot", "digraph"),
        ("txt", "6 l"),
    ):
        path = tmp_path / f"tree.{ending}"
        assert out_of(capsys, "tree", folder, "--out", path) == ""
        form = {"txt": "text"}.get(ending, ending)
        assert path.read_text("utf-8") == out_of(capsys, "tree", folder, "--format", form)
        assert path.read_text("utf-8").startswith(start)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"tree.{e}" for e in ("dot", "json", "jsonl", "tsv", "txt")]


def test_the_graph_links_every_node(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "tree", folder, "--format", "dot")
    assert out.count("->") == 12  # 2 + 4 clusters, 6 labels
    assert out.count("[label=") == 13 and out.rstrip().endswith("}")


def test_wrong_use(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longtail.recipe("neighbours").fit(topic_corpus()).save(tmp_path / "n")
    assert "recipe 'neighbours' has no label tree" in error_of(capsys, 1, "tree", tmp_path / "n")
    assert "this ending is not known" in error_of(capsys, 2, "tree", folder, "--out", tmp_path / "tree.xml")
    assert "--depth must be" in error_of(capsys, 2, "tree", folder, "--depth", 0)
    assert "--tree must be at most 1" in error_of(capsys, 2, "tree", folder, "--tree", 2)
    assert "no node '5'" in error_of(capsys, 2, "tree", folder, "--node", 5)
    assert "contradict each other" in error_of(capsys, 2, "tree", folder, "--json", "--format", "tsv")
    assert "--label shows one path" in error_of(capsys, 2, "tree", folder, "--label", "chess", "--format", "tsv")
    assert "no such" in error_of(capsys, 1, "tree", folder, "--out", tmp_path / "nowhere" / "tree.tsv").lower()


def test_a_tree_without_clusters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longtail.recipe("xr-linear").fit(topic_corpus()).save(tmp_path / "m")
    out = out_of(capsys, "tree", tmp_path / "m")
    assert out.startswith("6 labels in no clusters")
    assert len(out.splitlines()) == 7
