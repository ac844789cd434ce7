"""What to choose when: the table and the picture made from recorded runs; marked tables; lines that no longer count."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import longtail.recipes
from longtail.cli.main import main
from longtail.core.errors import DataError
from longtail.evidence import regions
from longtail.evidence.bench import Bench
from longtail.evidence.choices import CORPORA, NEEDS, unrecorded
from longtail.evidence.corpora import Corpora
from longtail.evidence.html_page import least_shown, quality_dots
from longtail.evidence.paired import comparison_id, intervals_id
from longtail.evidence.prune import prune
from longtail.evidence.results import Results
from longtail.evidence.trials import System, Trial
from longtail.report.choose_table import use_rows
from longtail.report.figures import duration, instant, ticks_between
from longtail.report.placing import CHARACTER, DOT, LINE, Box, crosses, place_names
from longtail.report.quality_time import HEIGHT, WIDTH, Dot, chart, picture
from longtail.store.lines import append_line

ROOT = Path(__file__).parent.parent
MARKED = ("README.md", "docs/cascade.md", "docs/dual.md")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Results(tmp_path / "results"), Corpora())


def trial_of(recipe: str, corpus: str = "debian-related", preset: str | None = None, **settings: Any) -> Trial:
    return Trial.of(corpus, "some digest", System.of(recipe, settings, preset), 0)


def add(bench: Bench, trial: Trial, value: float, seconds: float = 10.0, **more: Any) -> dict[str, Any]:
    """Record a run whose every score is `value`, with `more` fields."""
    bins = {"k": 5, "bins": [{"name": f"bin {i}", "contribution": 1.0} for i in range(1, 6)]}
    scores = {f"{family}@{k}": value for family in ("P", "PSP", "C") for k in (1, 3, 5)}
    record = trial.record() | {"status": "done", "scores": scores, "by_frequency": bins, "points": 10}
    record |= {"seconds": {"train": seconds, "predict": 0.5}, "peak_mb": 1500.0, "machine": {"threads": 1}} | more
    append_line(bench.results.path(trial.corpus), record)
    return record


def add_peer(bench: Bench, corpus: str = "debian-related") -> None:
    line = {"kind": "peer", "id": "p", "corpus": {"name": corpus, "digest": "some digest"}, "peer": "omikuji"}
    line |= {"system": "omikuji, 3 Parabel trees", "seconds": {"train": 29.5, "features": 0.5}, "peak_mb": 400.0}
    line |= {"settings": {"trees": 3}, "status": "done"}
    append_line(bench.results.path(corpus), line | {"scores": {"P@1": 41.0, "P@5": 21.0}})
    old = {"corpus": {"name": corpus, "digest": "another digest"}, "scores": {"P@1": 99.0}}
    append_line(bench.results.path(corpus), line | {"id": "o", "system": "of an older corpus"} | old)
    append_line(bench.results.path(corpus), line | {"id": "q", "system": "broken", "status": "failed", "error": "no"})


def test_every_recipe_has_a_row() -> None:
    shown = {choice.recipe for need in NEEDS for choice in need.choices}
    assert shown == set(longtail.recipes.recipes) - {"ensemble"}  # which is what its members are; `auto` makes one
    for need in NEEDS:
        for choice in need.choices:
            assert set(choice.corpora) <= set(CORPORA)
            for arm in choice.arms:
                arm.system.made()


def test_the_table_shows_what_is_recorded_and_names_what_is_not(bench: Bench) -> None:
    commands = unrecorded(bench, folder="HERE")
    assert "longtail bench debian-related --data HERE --threads 1 --recipe popular --seeds 0" in commands
    add(bench, trial_of("xr-linear"), 30.0, 4.25)
    add(bench, trial_of("parabel"), 40.0, 600.0)
    add_peer(bench)
    table = regions.choose_lines(bench)
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in table}
    assert cells["`xr-linear`"][:3] == ["30.0 / 30.0", "30.0 / 30.0", "4.2 s, 1.5 GB"]
    assert cells["`parabel`"][:3] == ["40.0 / **40.0**", "**40.0** / **40.0**", "10 min, 1.5 GB"]
    assert cells["omikuji, 3 Parabel trees"][:3] == ["**41.0** / 21.0", "– / –", "30 s, 400 MB"]
    assert "`bonsai`" not in cells  # without figures, no row
    assert not {"broken", "of an older corpus"} & set(cells)
    left = unrecorded(bench, folder="HERE")
    assert set(commands) - set(left) == {
        f"longtail bench debian-related --data HERE --threads 1 --recipe {name} --seeds 0"
        for name in ("xr-linear", "parabel")
    }


def test_what_models_cost_in_use_is_shown_where_it_is_recorded(bench: Bench) -> None:
    assert use_rows(regions.choose_groups(bench), CORPORA)[1] == []
    add(bench, trial_of("xr-linear"), 30.0, 4.25, p50_us=214.0, model_mb=1500.0)
    add(bench, trial_of("parabel"), 40.0, 600.0)
    columns, rows = use_rows(regions.choose_groups(bench), CORPORA)
    assert columns[1:4] == ["debian-related: one text", "texts/s", "on disk"]
    assert [row[:4] for row in rows] == [["`xr-linear`", "0.21 ms", "20", "1.5 GB"]]
    assert any("4.2 s, 1.5 GB (0.21 ms)" in line for line in regions.choose_lines(bench))
    assert [instant(value) for value in (85, 99.6, 1234, 12345)] == ["85 µs", "0.1 ms", "1.2 ms", "12 ms"]


def test_an_arm_of_a_claim_stands_in_until_the_preset_is_recorded(bench: Bench) -> None:
    arm = next(c for need in NEEDS for c in need.choices if c.title == "unidec").arms[1].on("man-seealso")
    assert arm is not None and arm.system.given["dimension"] == 256
    add(bench, Trial.of("man-seealso", "some digest", arm.system, 0), 50.0)
    assert any("50.0" in line for line in regions.choose_lines(bench))
    assert not any("man-seealso" in line and "unidec" in line for line in unrecorded(bench))
    add(bench, trial_of("unidec", "man-seealso", "small"), 60.0)
    (line,) = [line for line in regions.choose_lines(bench) if "`unidec`" in line]
    assert "60.0" in line and "50.0" not in line


def test_the_picture_has_all_but_what_is_far_below(bench: Bench) -> None:
    for name, value, seconds in (("popular", 1.0, 0.1), ("xr-linear", 30.0, 4.0), ("dismec", 40.0, 900.0)):
        add(bench, trial_of(name), value, seconds)
    add_peer(bench)
    drawn = picture(quality_dots(bench))
    names = re.findall(r'class="name"[^>]*>([^<]+)<', drawn)
    assert set(names) == {"linear", "other project", "xr-linear", "dismec", "omikuji, 3 Parabel trees"}
    assert drawn == picture(quality_dots(bench))
    assert ">10 s<" in drawn and ">10 min<" in drawn
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
    one = Dot("alone", "linear", 1.0, 50.0)
    assert ">alone<" in chart([one], "P@1", "one dot")
    assert not quality_dots(Bench(Results("nowhere"), Corpora()))


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([90.3, 90.8, 91.1, 91.4, 91.8, 80.9], 5),
        ([21.7, 31.0, 33.0, 35.0, 38.0, 43.0], 6),
        ([0.8, 33.0, 43.0], 2),
        ([50.0], 1),
        ([50.0, 50.0, 50.0, 49.5], 4),
    ],
)
def test_what_is_far_below_the_others_is_not_drawn(values: list[float], drawn: int) -> None:
    assert sum(value >= least_shown(values) for value in values) == drawn
    assert max(values) >= least_shown(values)


@pytest.mark.parametrize("seed", range(3))
def test_names_in_a_crowd_cover_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dots = tuple((60 + 380 * float(x), 20 + 260 * float(y) ** 2) for x, y in rng.random((28, 2)))
    names = tuple(f"system {i} + self"[: int(rng.integers(4, 17))] for i in range(28))
    frame = Box(46, 4, WIDTH - 2, HEIGHT - 44)
    places = place_names(dots, names, frame)
    boxes = [place.box for place in places]
    for i, box in enumerate(boxes):
        assert box.right - box.left == pytest.approx(CHARACTER * len(names[i]))
        assert box.bottom - box.top == pytest.approx(LINE)
        assert (
            frame.left <= box.left and box.right <= frame.right and frame.top <= box.top and box.bottom <= frame.bottom
        )
        assert all(box.overlap(other) == 0 for other in boxes[i + 1 :])
        assert all(box.overlap(Box(x - DOT, y - DOT, x + DOT, y + DOT)) < 2 for x, y in dots)
    place_names.cache_clear()
    assert places == place_names(dots, names, frame)


def test_lines_through_boxes() -> None:
    box = Box(0, 0, 10, 10)
    assert crosses(((-5, 5), (15, 5)), box) and crosses(((5, 5), (20, 20)), box) and crosses(((-1, 4), (4, -1)), box)
    assert not crosses(((-5, 11), (15, 11)), box) and not crosses(((-5, 4), (4, -5)), box)
    assert not crosses(((11, -5), (11, 15)), box) and not crosses(((-9, 5), (-1, 5)), box)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "< 0.1 s"), (0.44, "0.4 s"), (10, "10 s"), (77, "77 s"), (60, "1 min"), (318, "5.3 min"), (7200, "2 h")],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_axis_that_does_not_begin_at_zero() -> None:
    assert ticks_between(90.3, 91.9) == [90, 90.5, 91, 91.5, 92]
    assert ticks_between(31, 31)[0] <= 31 <= ticks_between(31, 31)[-1]
    assert len(ticks_between(50, 50)) >= 2


# ---- marked tables


def test_marked_tables_are_replaced_and_the_rest_stays(bench: Bench, tmp_path: Path) -> None:
    add(bench, trial_of("xr-linear"), 30.0)
    begin = regions.BEGIN.format("what to choose")
    text = f"# Head\n\n{begin}\nold\n{regions.END}\n\ntail\n{begin}\n{regions.END}"
    place = tmp_path / "page.md"
    place.write_text(text)
    regions.rewrite(bench, [place])
    made = place.read_text()
    assert made.startswith(f"# Head\n\n{begin}\n\n| recipe |") and "old" not in made and "\n\ntail\n" in made
    assert made.count("`xr-linear`") == 2
    regions.rewrite(bench, [place])
    assert place.read_text() == made
    other = tmp_path / "other.md"
    for wrong, message in (("no marks", "no marked table"), (text.replace("what to", "whom to"), "no table 'whom to")):
        other.write_text(wrong)
        add(bench, trial_of("parabel"), 31.0)
        with pytest.raises(DataError, match=message):
            regions.rewrite(bench, [place, other])
        assert place.read_text() == made  # all or none


@pytest.mark.parametrize("name", MARKED)
def test_the_tables_in_the_repository_are_what_its_results_give(name: str) -> None:
    place = ROOT / name
    if not place.is_file() or not (ROOT / "bench" / "results").is_dir():
        pytest.skip("not a checkout")
    text = place.read_text()
    assert regions.rewritten(Bench(Results(ROOT / "bench" / "results"), Corpora()), text, name) == text, (
        f"stale: longtail reproduce --from-results --rewrite {name}"
    )


# ---- lines that no longer count


def test_lines_of_other_versions_are_dropped_and_the_others_stay_byte_for_byte(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    now, other, gone = (trial_of("xr-linear", C=value) for value in (1.0, 2.0, 3.0))
    path = bench.results.path("debian-related")
    for trial in (now, other):
        add(bench, trial, 30.0)
    old = [
        add(bench, gone, 1.0) | {"id": "an older id"},
        add(bench, gone, 1.0) | {"id": "an unknown setting", "settings": {"speed": 11}},
    ]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    rows = {"rows": {"P@1": [1.0, 2.0, 1.0, 0.5, 1.5]}}
    kept = [
        orjson.dumps({"kind": "comparison", "id": comparison_id([now], [other])} | runs([now.id], [other.id]) | rows),
        orjson.dumps({"kind": "intervals", "id": intervals_id([now]), "runs": [now.id]} | rows),
        orjson.dumps({"kind": "run", "id": "x", "recipe": "of-another-package", "settings": {}, "seed": 0} | corpus()),
        b'{ "kind": "note",   "by": "hand" }',
        b'{"kind": "run", "id": "cut o',
    ]
    dropped = [
        *map(orjson.dumps, old),
        orjson.dumps({"kind": "comparison", "id": "c"} | runs([now.id], ["an older id"]) | rows),
        orjson.dumps({"kind": "intervals", "id": "i", "runs": ["an unknown setting"]} | rows),
    ]
    good = path.read_bytes()
    mixed = [line for pair in zip(kept, [*dropped, b""], strict=True) for line in pair if line]
    path.write_bytes(good + b"\n".join(mixed))
    before = path.read_bytes()
    assert prune(path, dry_run=True) == len(dropped) and path.read_bytes() == before
    words = ["bench", "debian-related", "--prune", "--results", str(path.parent)]
    assert main([*words, "--dry-run"]) == 0 and path.read_bytes() == before
    assert main(words) == 0 and "4 lines dropped" in capsys.readouterr().out
    assert path.read_bytes() == good + b"\n".join(kept)
    assert bench.results.of("debian-related").done(now.id)
    assert main(words) == 0 and "0 lines dropped" in capsys.readouterr().out
    assert main([*words, "--recipe", "popular"]) == 2 and main(["bench", "nothing", *words[2:]]) == 2


def runs(a: list[str], b: list[str]) -> dict[str, Any]:
    return {"a": {"runs": a}, "b": {"runs": b}}


def corpus() -> dict[str, Any]:
    return {"corpus": {"name": "debian-related", "digest": "some digest"}, "status": "done"}
