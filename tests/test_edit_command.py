"""Editing labels from files and from the command line: `longtail labels`."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from corpora import NEW_KEYS, NEW_TEXTS, group, grouped_corpus, spare

import longtail
from longtail.cli.main import main
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.data.parse.label_edits import read_keys, read_names, read_new_labels
from longtail.linear.model import LinearModel

# -- files


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ('{"key": "a", "text": "b"}\nnonsense', 2, "not valid JSON"),
        ('{"key": "a"}', 1, "a label must have a key and a text"),
        ('\n\n{"text": "b"}', 3, "a label must have a key and a text"),
        ('{"key": 3, "text": "b"}', 1, "a label must have a key and a text"),
        ('{"key": "", "text": "b"}', 1, "must not be empty"),
        ('{"key": "a", "text": "b"}\n{"key": "a", "text": "c"}', 2, "already on line 1"),
        ('{"key": "a", "text": "b"}\n{"key": "old", "text": "c"}', 2, "already exists"),
        ('{"key": "gone", "text": "b"}', 1, "was removed"),
    ],
)
def test_bad_lines_of_new_labels(lines: str, line: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text(lines)
    known = Labels.of(["old", "gone"], ["a", "b"]).remove(["gone"])
    with pytest.raises(DataError, match=message) as caught:
        read_new_labels(path, known)
    assert caught.value.line == line and caught.value.where == path
    path.write_text("\n")
    with pytest.raises(DataError, match="empty"):
        read_new_labels(path, known)


def test_files_of_keys_and_names(tmp_path: Path) -> None:
    known, path = Labels.of(["a b", "c", "ä"]), tmp_path / "file"
    path.write_text("a b\r\n\nä\n", encoding="utf-8")
    assert read_keys(path, known) == ["a b", "ä"]
    path.write_text('{"key": "c"}\n')
    assert read_keys(path, known) == ["c"]
    path.write_text("a b\tx y\nc\tä\nä\tc\n", encoding="utf-8")
    assert read_names(path, known) == {"a b": "x y", "c": "ä", "ä": "c"}
    path.write_text('{"old": "c", "new": "d"}\n')
    assert read_names(path, known) == {"c": "d"}
    for text, line, message in (
        ("c\td\nc\te", 2, "already on line 1"),
        ("c\td\nz\te", 2, "no label with this key"),
        ("c d", 1, "OLD<tab>NEW"),
        ('{"old": "c"}', 1, "'old' and 'new'"),
        ("", None, "lists no labels"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            read_names(path, known)
        assert caught.value.line == line


# -- the command line


@pytest.fixture(scope="module")
def plain() -> LinearModel:
    return cast(LinearModel, longtail.recipe("xr-linear", leaf_size=5, branching=2).fit(grouped_corpus()))


@pytest.fixture
def saved(plain: LinearModel, tmp_path: Path) -> Path:
    plain.save(tmp_path / "model")
    return tmp_path / "model"


def test_the_command_end_to_end(
    saved: Path, plain: LinearModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.jsonl"
    pairs = zip(NEW_KEYS, NEW_TEXTS, strict=True)
    new.write_text("".join(json.dumps({"key": k, "text": t}) + "\n" for k, t in pairs))
    assert main(["labels", "add", str(saved), str(new), "--out", str(tmp_path / "other")]) == 0
    assert len(longtail.load(saved).labels) == 40
    assert main(["labels", "add", str(saved), str(new)]) == 0
    assert "8 label(s) added; 48 can be suggested" in capsys.readouterr().err
    for folder in (saved, tmp_path / "other"):
        assert longtail.load(folder).predict(NEW_TEXTS, 1).keys() == [[key] for key in NEW_KEYS]
    assert main(["labels", "add", str(saved), "--key", "one", "--text", f"{group(1)} {spare(20)}"]) == 0
    assert main(["labels", "remove", str(saved), "new0", "label1"]) == 0
    assert main(["labels", "remove", str(saved), "new0"]) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert main(["labels", "rename", str(saved), "new1", "newer"]) == 0
    capsys.readouterr()
    assert main(["labels", "list", str(saved), "--removed"]) == 0
    assert capsys.readouterr().out == f"label1\t{plain.labels.texts[1]}\nnew0\t{NEW_TEXTS[0]}\n"  # type: ignore[index]
    assert main(["labels", "list", str(saved), "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(listed) == 49
    assert listed[41] == {"key": "newer", "text": NEW_TEXTS[1], "examples": 0, "removed": False}
    assert main(["info", str(saved)]) == 0
    assert "9 added, 2 removed, 1 renamed" in capsys.readouterr().out
    assert main(["labels", "restore", str(saved), "new0", "label1"]) == 0
    model = longtail.load(saved)
    assert model.labels.removed is None
    assert model.predict([NEW_TEXTS[1]], 1).keys() == [["newer"]]
    keys = tmp_path / "keys.txt"
    keys.write_text("new2\nnew3\n")
    assert main(["labels", "remove", str(saved), "--from", str(keys), "--quiet"]) == 0
    assert longtail.load(saved).about["edited"] == {"added": 9, "removed": 2, "renamed": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["add", "MODEL"], 2, "give either a file of labels"),
        (["add", "MODEL", "no-such-file"], 1, "cannot be opened"),
        (["add", "MODEL", "--key", "x"], 2, "--text"),
        (["add", "MODEL", "--key", "label3", "--text", "x"], 2, "'label3' already exists"),
        (["remove", "MODEL"], 2, "remove needs either the keys"),
        (["remove", "MODEL", "label3x"], 2, "Did you mean 'label3'"),
        (["rename", "MODEL", "label3"], 2, "OLD and NEW"),
        (["rename", "MODEL", "label3", "label4"], 2, "already exists"),
        (["rename", "MODEL", "label3", "x", "--overwrite"], 2, "--overwrite needs --out"),
        (["remove", "MODEL", "label3", "--out", "MODEL"], 1, "already contains a model; use --overwrite"),
        (["list", "no-such-model"], 1, "no-such-model"),
    ],
)
def test_wrong_use_changes_nothing(
    saved: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (saved / "model.json").read_bytes()
    assert main(["labels", *(str(saved) if word == "MODEL" else word for word in arguments)]) == code
    assert message in capsys.readouterr().err
    assert (saved / "model.json").read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_in_the_middle_it_leaves_the_old_model_or_the_new(saved: Path, tmp_path: Path) -> None:
    command = ["labels", "add", "MODEL", "--key", "one", "--text", NEW_TEXTS[1], "--quiet", "--threads", "1"]
    seen = set()
    for at in (1, 40, 100, 103, 110, 10_000):
        folder = tmp_path / f"at{at}"
        shutil.copytree(saved, folder)
        words = [str(folder) if word == "MODEL" else word for word in command]
        environment = {**os.environ, "LONGTAIL_STORE_KILL_AT": str(at)}
        code = subprocess.run([sys.executable, "-m", "longtail", *words], env=environment).returncode
        assert code in (0, -signal.SIGKILL)
        model = longtail.load(folder)
        state = len(model.labels), code == 0
        if len(model.labels) == 41:
            assert model.predict([NEW_TEXTS[1]], 1).keys() == [["one"]]
        else:
            assert len(model.labels) == 40
        seen.add(state)
    assert {(40, False), (41, True)} <= seen


def test_of_edits_at_once_none_is_lost_in_silence(saved: Path) -> None:
    command = [sys.executable, "-m", "longtail", "labels", "remove", "--quiet", str(saved)]
    edits = [subprocess.Popen([*command, f"label{i}"], stderr=subprocess.PIPE) for i in range(5)]
    said = [edit.communicate(timeout=120)[1].decode() for edit in edits]
    made = [i for i, edit in enumerate(edits) if edit.returncode == 0]
    assert made
    assert all("another process has saved it" in said[i] for i in set(range(5)) - set(made))
    removed = longtail.load(saved).labels.removed
    assert removed is not None and removed.nonzero()[0].tolist() == made


def test_an_edit_between_load_and_save_is_not_lost(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = LinearModel.edit_labels

    def slow(self: LinearModel, labels: Labels) -> LinearModel:
        edited = edit(self, labels)
        monkeypatch.setattr(LinearModel, "edit_labels", edit)
        assert main(["labels", "remove", str(saved), "label1", "--quiet"]) == 0  # somebody else
        return edited

    monkeypatch.setattr(LinearModel, "edit_labels", slow)
    assert main(["labels", "remove", str(saved), "label2"]) == 1
    assert "another process has saved it" in capsys.readouterr().err
    assert longtail.load(saved).labels.removed.nonzero()[0].tolist() == [1]  # type: ignore[union-attr]
