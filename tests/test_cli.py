"""The command line, end to end: what a user types and sees."""

import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from corpora import topic_corpus

import longtail
from longtail.cli.main import main
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset


def write_part(path: Path, data: Dataset, labels: longtail.Labels) -> None:
    lines = []
    for i, text in enumerate(data.texts):
        row = data.Y.indices[data.Y.indptr[i] : data.Y.indptr[i + 1]]
        lines.append(orjson.dumps({"text": text, "labels": [labels.keys[int(j)] for j in row]}))
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus()


@pytest.fixture(scope="module")
def data(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "topics"
    folder.mkdir()
    assert corpus.test is not None
    assert corpus.labels.texts is not None
    write_part(folder / "train.jsonl.gz", corpus.train, corpus.labels)
    write_part(folder / "test.jsonl.gz", corpus.test, corpus.labels)
    labels = zip(corpus.labels.keys, corpus.labels.texts, strict=True)
    (folder / "labels.jsonl").write_bytes(b"\n".join(orjson.dumps({"key": k, "text": t}) for k, t in labels))
    return folder


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    assert main(["train", str(data), "--out", str(folder), "--quiet"]) == 0
    return folder


def out_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_train_shows_scores_and_the_next_step(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "train", data, "--out", tmp_path / "m")
    assert "Validation: 120 points, held out of train" in out
    assert "P@k" in out
    assert "longtail predict" in out


def test_without_a_place_to_save_scores_are_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "train", data)
    assert "Validation: 120 points" in out
    assert "The model was not saved" in out


def test_a_killed_first_save_can_be_done_again(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed = run("train", data, "--out", tmp_path / "m", env={**os.environ, "LONGTAIL_STORE_KILL_AT": "12"})
    assert killed.returncode == -9
    assert any(path.name.startswith("data-") for path in (tmp_path / "m").iterdir())
    assert "Saved" in out_of(capsys, "train", data, "--out", tmp_path / "m")


def test_an_argument_that_is_no_unicode(model: Path) -> None:
    command = [sys.executable, "-m", "longtail", "predict", str(model).encode(), b"boat \xff wind", b"-k", b"1"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["labels"][0]["label"] == "sailing"


def test_train_never_opens_test(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    (other / "labels.jsonl").unlink()
    (other / "test.jsonl.gz").write_bytes(b'{"text": "boat", "labels": ["only in test"]}\n')
    out_of(capsys, "train", other, "--out", tmp_path / "m", "--quiet")
    assert "only in test" not in list(longtail.load(tmp_path / "m").labels.keys)
    (other / "test.jsonl.gz").write_bytes(b'{"broken')
    out_of(capsys, "train", other, "--out", tmp_path / "m2", "--quiet")
    assert "line 1" in error_of(capsys, 1, "evaluate", tmp_path / "m2", other)


def test_settings_reach_the_recipe(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_of(
        capsys,
        "train",
        data,
        "--recipe",
        "neighbours",
        "--set",
        "neighbours=7",
        "--set",
        "power=2",
        "--out",
        tmp_path / "m",
    )
    about = json.loads(out_of(capsys, "info", tmp_path / "m", "--json"))
    assert about["recipe"] == "neighbours"
    assert about["settings"]["neighbours"] == 7


def test_predict_arguments(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = out_of(capsys, "predict", model, "boat wind harbour", "pawn knight", "-k", 2).splitlines()
    records = [json.loads(line) for line in lines]
    assert [r["text"] for r in records] == ["boat wind harbour", "pawn knight"]
    assert [r["labels"][0]["label"] for r in records] == ["sailing", "chess"]
    assert all(len(r["labels"]) == 2 for r in records)
    assert set(records[0]["labels"][0]) == {"label", "text", "score"}


def test_texts_may_stand_before_or_after_options(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = out_of(capsys, "predict", model, "boat wind", "-k", 1, "pawn knight", "oven flour").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["boat wind", "pawn knight", "oven flour"]
    with pytest.raises(SystemExit) as stop:
        main(["predict", str(model), "text", "--no-such-option"])
    assert stop.value.code == 2
    with pytest.raises(SystemExit) as stop:
        main(["info", str(model), "superfluous"])
    assert stop.value.code == 2


def test_predict_files_and_stdin(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, lines = tmp_path / "a.txt", tmp_path / "b.jsonl.gz"
    plain.write_bytes("\ufeffboat wind\r\n\r\noven flour\r\n".encode())
    lines.write_bytes(gzip.compress(b'{"body": "guitar chord"}\n'))
    records = [json.loads(x) for x in out_of(capsys, "predict", model, plain, "-k", 1).splitlines()]
    assert [r["text"] for r in records] == ["boat wind", "", "oven flour"]
    records = [json.loads(x) for x in out_of(capsys, "predict", model, lines, "--text", "body").splitlines()]
    assert records[0]["labels"][0]["label"] == "music"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"soil seed\nboat tide\n")))
    records = [json.loads(x) for x in out_of(capsys, "predict", model, "-k", 1).splitlines()]
    assert [r["labels"][0]["label"] for r in records] == ["gardening", "sailing"]


def test_predict_tables_and_packed_input(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text('id,body\n1,"boat\nwind"\n2,"pawn, knight"\n')
    records = [
        json.loads(x) for x in out_of(capsys, "predict", model, tmp_path / "t.csv", "--text", "body").splitlines()
    ]
    assert [r["text"] for r in records] == ["boat\nwind", "pawn, knight"]
    error = error_of(capsys, 1, "predict", model, tmp_path / "t.csv", "--text", "bdy")
    assert "no column 'bdy'" in error
    packed = gzip.compress(b"soil seed\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert json.loads(out_of(capsys, "predict", model, "-k", 1))["labels"][0]["label"] == "gardening"
    assert main(["predict", str(model), "no-such-file.txt"]) == 0
    assert "there is no file no-such-file.txt" in capsys.readouterr().err


def test_two_trainings_into_one_new_folder_do_not_replace_each_other(data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "longtail", "train", str(data), "--out", str(tmp_path / "m"), "--quiet"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    codes = sorted(process.wait(timeout=120) for process in running)
    for process in running:
        assert process.stderr is not None
        process.stderr.close()
    assert codes == [0, 1]


def test_propensity_constants_are_those_of_the_corpus(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, other = tmp_path / "floor", tmp_path / "other"
    out_of(capsys, "train", data, "--recipe", "popular", "--out", model)
    before = json.loads(out_of(capsys, "evaluate", model, data, "--json"))
    shutil.copytree(data, other)
    (other / "corpus.json").write_text('{"propensity": {"A": 0.9, "B": 9}}')
    after = json.loads(out_of(capsys, "evaluate", model, other, "--json"))
    assert after["P@1"] == before["P@1"]
    assert after["PSP@3"] != before["PSP@3"]


@pytest.mark.parametrize("field", ["about", "labels", "recipe", "settings", "meta"])
def test_fields_of_the_wrong_type_in_a_manifest(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    shutil.copytree(model, tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "model.json").read_text())
    (tmp_path / "m" / "model.json").write_text(json.dumps(manifest | {field: [1]}))
    for command in (["info"], ["predict"]):
        assert "damaged" in error_of(capsys, 1, *command, tmp_path / "m", *(["x"] if command == ["predict"] else []))


def test_output_that_cannot_be_written(model: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "longtail", "recipes"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    ascii_only = run("predict", model, "boat", "--table", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ascii_only.returncode == 0, ascii_only.stderr


def test_predict_threshold_and_table(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(out_of(capsys, "predict", model, "boat wind harbour", "--threshold", 1e9))
    assert record["labels"] == []
    all_of_them = json.loads(out_of(capsys, "predict", model, "boat wind harbour", "-k", 6))["labels"]
    cut = all_of_them[1]["score"] - 1e-4
    kept = json.loads(out_of(capsys, "predict", model, "boat wind harbour", "-k", 6, "--threshold", cut))["labels"]
    assert kept == [label for label in all_of_them if label["score"] >= cut]
    assert "sailing" in out_of(capsys, "predict", model, "boat wind harbour", "--table")


def test_evaluate(model: Path, data: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    scores = json.loads(out_of(capsys, "evaluate", model, data, "--json"))
    assert scores["P@1"] > 90
    loaded = longtail.load(model)
    assert corpus.test is not None
    expected = longtail.evaluate(loaded.predict(corpus.test.x, 5), corpus.test.Y)
    assert {k: round(v, 4) for k, v in expected.scores.items()} == scores
    table = out_of(capsys, "evaluate", model, data, "--by-frequency")
    assert "PSP@k" in table
    assert "bin 5" in table
    assert "no training examples" in table


def test_evaluate_joins_by_key_and_reports_leftovers(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"text": "boat wind harbour", "labels": ["sailing", "unheard of"]}, {"text": "pawn", "labels": ["chess"]}]
    (tmp_path / "new.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert main(["evaluate", str(model), str(tmp_path / "new.jsonl"), "--json"]) == 0
    captured = capsys.readouterr()
    scores = json.loads(captured.out)
    assert scores["P@1"] == 100.0
    assert scores["R@5"] == 75.0  # one of two, and one of one
    assert "1 label(s) of the data are unknown to the model" in captured.err
    assert "4 label(s) of the model are not in the data" in captured.err


def test_compare(model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_of(capsys, "train", data, "--recipe", "popular", "--out", tmp_path / "floor", "--quiet")
    out = out_of(capsys, "compare", tmp_path / "floor", model, data, "--metrics", "P@1", "--resamples", 500)
    assert "B ahead" in out
    rows = json.loads(out_of(capsys, "compare", model, model, data, "--resamples", 100, "--json"))["rows"]
    assert {row["verdict"] for row in rows} == {"not separable"}
    assert all(row["difference"] == 0 for row in rows)


def test_inspect_and_page(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "inspect", data, "--html", tmp_path / "page.html")
    assert "240" in out
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    assert isinstance(json.loads(out_of(capsys, "inspect", data, "--json")), dict)


def test_info_and_recipes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "xr-linear" in out_of(capsys, "info", model)
    listed = json.loads(out_of(capsys, "recipes", "--json"))
    assert {"auto", "popular", "neighbours"} <= {row["name"] for row in listed}
    assert "query_terms" in out_of(capsys, "recipes", "neighbours")


@pytest.mark.parametrize("to", ["native", "jsonl", "repository"])
def test_convert_round_trip(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    out_of(capsys, "convert", data, tmp_path / "copy", "--to", to)
    assert longtail.read(tmp_path / "copy").digest == longtail.read(data).digest


def test_one_csv_file_is_a_corpus(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tags.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "tags"])
        for i, text in enumerate(corpus.train.texts):
            row = corpus.train.Y.indices[corpus.train.Y.indptr[i] : corpus.train.Y.indptr[i + 1]]
            writer.writerow([text, ";".join(corpus.labels.keys[int(j)] for j in row)])
    options = ["--text", "body", "--labels", "tags", "--label-sep", ";"]
    out = out_of(capsys, "train", path, *options, "--out", tmp_path / "m")
    assert "Validation: 120 points" in out
    record = json.loads(out_of(capsys, "predict", tmp_path / "m", "boat wind harbour", "-k", 1))
    assert record["labels"][0]["label"] == "sailing"
    assert main(["evaluate", str(tmp_path / "m"), str(path), *options, "--json"]) == 0
    assert "the model was trained on this data" in capsys.readouterr().err


def error_of(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert captured.out == ""
    return captured.err


def test_errors_help_and_have_exit_codes(data: Path, model: Path, tmp_path: Path, capsys: Any) -> None:
    assert "Bundled corpora are" in error_of(capsys, 1, "train", tmp_path / "nowhere", "--out", tmp_path / "m")
    assert "Did you mean 'neighbours'" in error_of(capsys, 2, "train", data, "--recipe", "neigbours", "--out", tmp_path)
    error = error_of(capsys, 2, "train", data, "--recipe", "neighbours", "--set", "powr=2", "--out", tmp_path / "m")
    assert "Did you mean 'power'" in error
    assert "must be above 0" in error_of(
        capsys, 2, "train", data, "--recipe", "neighbours", "--set", "power=0", "--out", tmp_path / "m"
    )
    assert "KEY=VALUE" in error_of(capsys, 2, "train", data, "--set", "power", "--out", tmp_path / "m")
    assert "--overwrite" in error_of(capsys, 1, "train", data, "--out", model)
    assert "it holds other files" in error_of(capsys, 1, "train", data, "--out", data)
    assert "no use for budget" in error_of(capsys, 1, "train", data, "--recipe", "popular", "--budget", "9m")
    assert "No such file" in error_of(capsys, 1, "inspect", data, "--html", tmp_path / "no" / "page.html", "--json")
    assert "nowhere" in error_of(capsys, 1, "info", tmp_path / "nowhere")
    assert "k must be" in error_of(capsys, 2, "predict", model, "text", "-k", 0)
    assert "threshold must be a number; got nan" in error_of(capsys, 2, "predict", model, "text", "--threshold", "nan")
    assert "seed must be" in error_of(capsys, 2, "train", data, "--seed", 10**30)
    assert "--recipe xr-linear" in error_of(capsys, 2, "train", data, "--set", "neighbours=5")
    (tmp_path / "file").write_text("x")
    assert "cannot be created" in error_of(capsys, 1, "train", data, "--out", tmp_path / "file" / "m")
    assert "has no dev part" in error_of(capsys, 2, "evaluate", model, data, "--part", "dev")
    assert "threads" in error_of(capsys, 2, "predict", model, "text", "--threads", 0)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "fine", "labels": ["a"]}\n{"text": "broken"\n')
    error = error_of(capsys, 1, "train", bad, "--out", tmp_path / "m")
    assert "bad.jsonl, line 2" in error
    assert not (tmp_path / "m").exists()
    with pytest.raises(longtail.LongtailError):
        main(["train", str(bad), "--out", str(tmp_path / "m"), "--debug"])


def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    from longtail.cli.main import COMMANDS

    for command in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert f"longtail {command}" in capsys.readouterr().out.split("examples:")[1]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "longtail", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_as_a_process(model: Path) -> None:
    done = run("predict", model, "-", input="boat wind\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["labels"][0]["label"] == "sailing"
    assert run("--version").stdout.startswith("longtail 0.")
    assert run("frobnicate").returncode == 2
    assert run().returncode == 2


def test_a_closed_pipe_is_no_error(model: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "longtail", "predict", str(model), "-"]
    texts = "boat wind harbour\n" * 20_000
    done = subprocess.run(command, input=texts, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(write)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_quiet_is_quiet(data: Path, tmp_path: Path) -> None:
    done = run("train", data, "--out", tmp_path / "m", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_seeds_and_threads_give_the_same_model(data: Path, tmp_path: Path) -> None:
    generations = set()
    for threads in (1, 2):
        assert run("train", data, "--out", tmp_path / str(threads), "--threads", threads).returncode == 0
        generations.add(json.loads((tmp_path / str(threads) / "model.json").read_text())["generation"])
    assert len(generations) == 1  # the name of a generation is the digest of all its arrays


def test_python_api(corpus: Corpus) -> None:
    texts = list(corpus.train.texts)
    rows = [corpus.train.Y.indices[a:b] for a, b in zip(corpus.train.Y.indptr, corpus.train.Y.indptr[1:], strict=False)]
    labels = [[corpus.labels.keys[int(j)] for j in row] for row in rows]
    model = longtail.fit(texts, labels)
    assert model.predict(["boat wind harbour"], k=1).keys() == [["sailing"]]
    assert np.isfinite(model.about["validation"]["scores"]["P@1"])
