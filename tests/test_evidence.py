"""The parts of the bench runner that run nothing: names of runs, result files, rules for verdicts."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longtail.recipes  # noqa: F401  (recipes by name)
from longtail.core.errors import ParameterError
from longtail.core.recipe import recipes
from longtail.evidence import judge
from longtail.evidence.claim import Arm, Claim, Part
from longtail.evidence.claims import CLAIMS, claims_of
from longtail.evidence.judge import ArmDifference, Verdict
from longtail.evidence.process import without_places
from longtail.evidence.results import Results
from longtail.evidence.trials import System, Trial, grid, trials_of
from longtail.store.lines import append_line, read_lines


def trial(seed: int = 0, digest: str = "d", **settings: object) -> Trial:
    return Trial.of("topics", digest, System.of("xr-linear", settings), seed)


# ---- the name of a run


def test_the_name_of_a_run_never_moves() -> None:
    # written down once: should it move, every line recorded so far would be void
    assert trial().id == "ca2a83d1fee4fa8b7e90fee731d47324"
    assert trial(beam=20, C=0.5).id == "6005d1a3c27de908ebfa114f7f126ac9"


def test_a_run_is_known_whatever_way_it_is_spelt() -> None:
    assert trial(beam="20", C=0.5).id == trial(C="0.5", beam=20).id
    assert trial(beam=10).id == trial().id  # the default
    assert trial(beam=10).name == "xr-linear"


OTHER_SETTINGS: list[dict[str, object]] = [
    {},
    {"negatives": "tfn+man"},
    {"loss": "logistic", "solver": "newton"},
    {"solver": "newton"},
    {"C": 0.5},
    {"C_negative": 0.5},
    {"costs": "counts"},
    {"eps": 0.5},
    {"weights": "float32"},
    {"beam": 1},
    {"beam": 11},
    {"trees": 2},
    {"ngrams": 2},
    {"ngrams": 2, "min_ngrams": 2},
    {"represent": "text"},
    {"neighbours": True},
    {"branching": 2},
    {"depth": 2},
    {"depth": 3},
    {"calibration": "platt"},
    {"cut_off": "f1"},
    {"cut_off": "labels=5"},
]


def test_every_setting_makes_another_run() -> None:
    assert len({trial(**settings).id for settings in OTHER_SETTINGS}) == len(OTHER_SETTINGS)


VALUES = st.integers(-(2**63), 2**63 - 1) | st.text() | st.booleans() | st.none()


@given(a=st.dictionaries(st.text(), VALUES, max_size=3), b=st.dictionaries(st.text(), VALUES, max_size=3))
def test_what_differs_in_anything_has_another_name(a: dict[str, object], b: dict[str, object]) -> None:
    one, other = (replace(trial(), changed=tuple(sorted(changed.items()))) for changed in (a, b))
    assert (one.id == other.id) == (repr(one.changed) == repr(other.changed))  # repr: 1 is not True


def test_seed_corpus_and_version_make_another_run() -> None:
    base = trial()
    assert len({base.id, trial(seed=1).id, trial(digest="e").id, replace(base, version=2).id}) == 4
    assert replace(base, corpus="renamed").id == base.id  # a corpus is what it holds


def test_a_recipe_of_another_version_is_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trial().id
    monkeypatch.setattr(recipes["xr-linear"], "version", 2)
    assert trial().id != before


def test_a_file_counts_by_its_content_and_its_place_is_not_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tree.tsv").write_text("x\ty\n")
    a, b = (trial(hierarchy=str(tmp_path / folder / "tree.tsv")) for folder in ("a", "b"))
    assert a.id == b.id
    assert str(tmp_path) not in str(a.record())
    assert a.name.startswith("xr-linear hierarchy=tree.tsv:")
    (tmp_path / "b" / "tree.tsv").write_text("x\tz\n")
    assert trial(hierarchy=str(tmp_path / "b" / "tree.tsv")).id != a.id


def test_a_grid_is_every_combination_each_once() -> None:
    systems = grid(["xr-linear", "parabel"], {"C": "2"}, {"beam": ["1", "10"], "eps": ["0.1", "0.2", "0.5"]})
    assert len(systems) == 12
    assert str(systems[0]) == "xr-linear C=2 beam=1 eps=0.1"
    trials = trials_of("topics", "d", grid(["xr-linear"], {}, {"beam": ["1", "10", "10"]}), [0, 1, 0])
    assert [(t.name, t.seed) for t in trials] == [
        ("xr-linear beam=1", 0),
        ("xr-linear beam=1", 1),
        ("xr-linear", 0),
        ("xr-linear", 1),
    ]


def test_a_grid_with_one_key_twice_and_a_bad_setting_are_refused() -> None:
    with pytest.raises(ParameterError, match="beam is given both one value"):
        grid(["xr-linear"], {"beam": "1"}, {"beam": ["2"]})
    with pytest.raises(ParameterError, match="Did you mean 'beam'"):
        trial(beem=1)
    with pytest.raises(ParameterError, match="seed must be at least 0"):
        trial(seed=-1)


# ---- the files


def test_lines_come_back_in_order_sorted_by_key(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "a.jsonl"
    append_line(path, {"b": 1, "a": 2})
    append_line(path, {"c": "ü"})
    assert path.read_bytes() == '{"a":2,"b":1}\n{"c":"ü"}\n'.encode()
    assert read_lines(path) == [{"a": 2, "b": 1}, {"c": "ü"}]
    assert read_lines(tmp_path / "none.jsonl") == []


@given(cut=st.integers(1, 40))
def test_a_torn_line_costs_itself_alone(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    for i in range(3):
        append_line(path, {"kind": "run", "n": i, "text": "x" * 20})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])  # a power cut in the last line
    torn = [{"kind": "run", "n": i, "text": "x" * 20} for i in range(3 if cut == 1 else 2)]
    assert read_lines(path) == torn
    append_line(path, {"n": 9})
    assert read_lines(path) == [*torn, {"n": 9}]
    assert path.read_bytes().startswith(whole[:-cut])  # append-only


def test_a_torn_line_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n[1]\n{"a": 3}')
    with caplog.at_level("WARNING", "longtail"):
        assert read_lines(tmp_path / "a.jsonl") == [{"a": 1}, {"a": 3}]
    assert "line 2: skipped, because it is incomplete" in caplog.text
    assert "line 3: skipped, because it is incomplete" in caplog.text


def test_the_later_line_counts_and_lines_of_others_are_left_alone(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert results.of("topics").run == {}
    run = {"kind": "run", "id": "1", "recipe": "popular", "settings": {}, "seed": 0}
    run["corpus"] = {"name": "topics", "digest": "d"}
    results.add("topics", run | {"status": "killed"})
    results.add("topics", {"kind": "something else", "id": "1"})
    results.add("topics", {"system": "a bench of another kind"})
    assert not results.of("topics").done("1")
    results.add("topics", {"kind": "run", "id": "2"})  # as a merge by hand may leave it
    results.add("topics", {"kind": ["run"], "id": {}})
    results.add("topics", {"kind": "intervals", "id": "1"})
    assert set(results.of("topics").run) == {"1"} and not results.of("topics").intervals
    results.add("topics", run | {"status": "done"})
    assert results.of("topics").done("1")
    assert results.of("topics").digest == "d"
    assert len(read_lines(tmp_path / "topics.jsonl")) == 7


def test_names_of_corpora_are_safe_as_names_of_files(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert results.path("debian-related") == tmp_path / "debian-related.jsonl"
    assert results.path("../a b/c").parent == tmp_path


WRITER = """
import sys
from pathlib import Path
from longtail.store.lines import append_line
for i in range(60):
    append_line(Path(sys.argv[1]), {"writer": sys.argv[2], "n": i, "text": sys.argv[2] * 9000})
"""


def test_several_writers_at_once_never_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for name in "abc":
        assert [r["n"] for r in records if r["writer"] == name] == list(range(60))
    assert all(r["text"] == r["writer"] * 9000 for r in records)


def test_messages_lose_the_folders_of_the_machine() -> None:
    assert without_places("/home/me/data/x.jsonl, line 3: bad; found 'a/b'") == "x.jsonl, line 3: bad; found 'a/b'"
    assert without_places("cannot open '/tmp/a b/c.npy' and/or 1/2") == "cannot open 'c.npy' and/or 1/2"
    assert without_places(r"C:\Users\me\x.csv: bad") == "x.csv: bad"


# ---- the rules (spec: claims.md)


def spread(low: float, high: float, metric: str = "P@1") -> ArmDifference:
    middle = (low + high) / 2
    return ArmDifference(metric, 50 + middle, 50.0, middle, low, high)


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([(0.1, 0.4), (0.01, 2.0)], "reproduced"),
        ([(0.1, 0.4), (0.0, 2.0)], "not separable"),  # above zero, not at it
        ([(0.1, 0.4), (-0.3, 2.0)], "not separable"),
        ([(0.1, 0.4), (-0.3, -0.1)], "contradicted"),  # below on any
        ([(-0.1, 0.4), (-0.3, -0.1)], "contradicted"),
        ([(-0.1, 0.0)], "not separable"),
    ],
)
def test_ahead(rows: Sequence[tuple[float, float]], verdict: Verdict) -> None:
    assert judge.ahead([spread(*row) for row in rows]) == verdict


@pytest.mark.parametrize(
    ("rows", "margin", "verdict"),
    [
        ([(-0.5, 0.5), (0.2, 0.4)], 0.5, "reproduced"),  # within, though it is not zero
        ([(-0.51, 0.2)], 0.5, "not separable"),
        ([(-0.51, 0.2)], 1.0, "reproduced"),  # U8
        ([(-0.2, 0.2), (0.51, 0.9)], 0.5, "contradicted"),
        ([(-2.0, -0.6)], 0.5, "contradicted"),
        ([(0.4, 0.9)], 0.5, "not separable"),
    ],
)
def test_equal(rows: Sequence[tuple[float, float]], margin: float, verdict: Verdict) -> None:
    assert judge.equal([spread(*row) for row in rows], margin) == verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.01, 3.0], "reproduced"),
        ([0.01, -0.01], "contradicted"),
        ([0.0, 1.0], "not separable"),
    ],
)
def test_trend_looks_at_the_ends_alone(differences: Sequence[float], verdict: Verdict) -> None:
    # their intervals may hold zero: the rule asks for the order only
    assert judge.trend([ArmDifference("P@1", 1 + d, 1.0, d, d - 9, d + 9) for d in differences]) == verdict


@pytest.mark.parametrize(
    ("bins", "verdict"),
    [
        ([(10.0, 11.0), (5.0, 5.1), (2.0, 3.0)], "reproduced"),
        ([(1.0, 2.0), (0.0, 0.1)], "reproduced"),  # from nothing is more than any share
        ([(10.0, 12.0), (5.0, 5.1)], "contradicted"),  # the head gains more, relatively
        ([(10.0, 9.0), (5.0, 7.0)], "contradicted"),  # the head loses
        ([(10.0, 10.0), (5.0, 7.0)], "not separable"),
    ],
)
def test_tail_asks_for_gains_everywhere_and_relatively_most_at_the_end(
    bins: Sequence[tuple[float, float]], verdict: Verdict
) -> None:
    assert judge.tail([ArmDifference("bin", after, before, after - before) for before, after in bins]) == verdict


@pytest.mark.parametrize(
    ("ratio", "difference", "verdict"),
    [
        (0.99, -0.5, "reproduced"),
        (0.5, -0.51, "contradicted"),
        (1.0, 3.0, "contradicted"),
    ],
)
def test_faster(ratio: float, difference: float, verdict: Verdict) -> None:
    assert judge.faster(ratio, ArmDifference("P@1", 50 + difference, 50.0, difference), 0.5) == verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["reproduced", "not separable"], "not separable"),
        (["reproduced", "contradicted", "not measured"], "contradicted"),
        (["reproduced", "not measured"], "not measured"),
        (["reported", "reproduced"], "reproduced"),
        (["reported"], "reported"),
    ],
)
def test_the_parts_of_a_claim_must_all_hold(parts: list[Verdict], verdict: Verdict) -> None:
    assert judge.together(parts) == verdict


@pytest.mark.parametrize(
    ("corpora", "verdict"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["reproduced", "contradicted"], "mixed"),
        (["reproduced", "not separable"], "mixed"),
        (["contradicted", "no corpus"], "contradicted"),  # only what was measured can disagree
        (["not measured", "no corpus"], "not measured"),
        (["no corpus"], "no corpus"),
        (["reported", "reported"], "reported"),
    ],
)
def test_where_corpora_disagree_a_claim_is_mixed(corpora: list[Verdict], verdict: Verdict) -> None:
    assert judge.over_corpora(corpora) == verdict


# ---- the table of claims


def test_the_table_is_sound() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        for part in claim.parts:
            assert part.metrics or part.kind in ("faster", "level")
            assert len(part.arms) == 2 or part.kind in ("trend", "level"), claim.id
            assert len({arm.system for arm in part.arms}) == len(part.arms), claim.id


def test_claims_by_name() -> None:
    assert [claim.id for claim in claims_of(["g13", "G2"])] == ["G2", "G13"]
    assert claims_of() == list(CLAIMS)
    with pytest.raises(ParameterError, match="no claim 'G99'"):
        claims_of(["G99"])


def test_both_sides_of_a_claim_about_networks_take_the_same_steps_of_the_same_batch() -> None:
    for corpus in ("debian-related", "man-seealso"):
        systems = [arm.system for claim in CLAIMS for arm in claim.on(corpus).arms if arm.system.preset is not None]
        networks = [system.made() for system in systems if system.lacks is None]
        taken = {(made.name, made.steps, made.batch) for made in networks}  # type: ignore[attr-defined]
        assert len(taken) == len({made.name for made in networks})
        assert {"decaf", "astec", "renee", "unidec", "depsl", "ngame", "siamesexml"} <= {made.name for made in networks}
        assert all(made.steps is not None for made in networks)  # type: ignore[attr-defined]


def test_seeds_that_are_asked_for_replace_those_of_the_claims() -> None:
    linear, networks = claims_of(["G2", "G9a"])
    assert linear.on("debian-related").seeds == linear.on("man-seealso").seeds == (0, 1, 2)
    assert networks.on("debian-related").seeds == (0,)
    assert networks.on("man-seealso").seeds == (0, 1, 2)
    asked = claims_of(["G2", "G9a"], [4, 3, 4])
    assert [claim.on("debian-related").seeds for claim in asked] == [(4, 3), (4, 3)]


def test_an_arm_takes_the_steps_of_its_corpus_and_is_left_out_elsewhere() -> None:
    network, other = Arm("n", System.of("decaf"), (("here", 7), ("there", 9))), Arm("p", System.of("popular"))
    claim = Claim("T", "–", "t", (Part("level", "", (network, other), ()), Part("level", "", (network,), ())), ())
    assert [dict(claim.on(name).arms[0].system.settings)["steps"] for name in ("here", "there")] == [7, 9]
    assert claim.on("elsewhere").arms == (other,)
    assert len(claim.on("elsewhere").parts) == 1


def test_a_system_says_what_it_lacks() -> None:
    assert System.of("no-such-recipe").lacks == "no-such-recipe"
    assert System.of("xr-linear", {"beam": 3, "curl": True}).lacks == "the setting curl of xr-linear"
    assert System.of("xr-linear", {"augment": "gandalf", "augment.delta": 0.2}).lacks is None


def test_a_system_with_a_preset_is_the_same_run_as_one_with_its_settings() -> None:
    short = System.of("decaf", {"epochs": 3}, "small")
    spelt = System.of("decaf", {**recipes["decaf"].presets["small"], "epochs": 3})
    assert Trial.of("topics", "d", short, 0).id == Trial.of("topics", "d", spelt, 0).id
    assert short.given == dict(spelt.settings) and str(short) == "decaf --preset small epochs=3"


def test_a_claim_knows_its_kinds_and_arms() -> None:
    a, b = Arm("a", System.of("popular")), Arm("b", System.of("neighbours"))
    parts = (Part("trend", "", (a, b), ("P@1",)), Part("ahead", "", (b, a), ("P@1",)), Part("ahead", "", (a, b), ()))
    claim = Claim("T", "–", "t", parts, ())
    assert claim.kind == "trend, ahead"
    assert claim.arms == (a, b)
