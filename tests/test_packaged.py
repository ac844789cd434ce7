"""Encoders that come in packages: what is listed, and one that comes in parts of a zip file."""

import json
import zipfile
from pathlib import Path

import pytest

from longtail.cli.main import main
from longtail.core.errors import DataError, MissingExtraError
from longtail.encoders import packaged
from longtail.encoders.packaged import MINILM, Packaged, folder_of
from longtail.encoders.source import encoder_files

NAME = "whole-encoder"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An encoder in two installed packages, each with a part of its zip file."""
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        for name in packaged.NEEDED:
            archive.writestr(f"{NAME}/{name}", f"---\nlicense: mit\n---\n{name}" if name == "README.md" else name)
        archive.writestr(f"{NAME}/../../escape.txt", "not wanted")
    data = whole.read_bytes()
    places = []
    for number, part in enumerate((data[:400], data[400:]), 1):
        site = tmp_path / "site"
        inner, info = site / f"part-{number}" / "input", site / f"part_{number}-1.2.dist-info"
        inner.mkdir(parents=True)
        info.mkdir()
        (inner / f"whole.zip.{number:03}").write_bytes(part)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: part-{number}\nVersion: 1.2\n")
        (info / "RECORD").write_text(f"part-{number}/input/whole.zip.{number:03},,\n")
        places.append(inner / f"whole.zip.{number:03}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(packaged.packaged, NAME, Packaged(("part-1", "part-2"), "parts", NAME, 1, 8, 1, "MIT"))
    return places


def test_parts_are_put_together_once(parts: list[Path], tmp_path: Path) -> None:
    files = encoder_files(NAME, "a test")
    assert files.folder == tmp_path / "cache" / "encoders" / f"{NAME}-1.2"
    assert sorted(path.name for path in files.folder.iterdir()) == sorted(packaged.NEEDED)
    assert (files.folder / "model.safetensors").read_text() == "model.safetensors"
    assert files.about == {"source": NAME, "version": "1.2", "card_licence": "mit"}
    assert [path.name for path in files.folder.parent.iterdir()] == [f"{NAME}-1.2"]  # nothing is left over
    parts[0].unlink()
    assert folder_of(NAME) == files.folder  # it is in the cache


def test_damaged_parts_are_refused_and_leave_nothing(parts: list[Path], tmp_path: Path) -> None:
    parts[1].write_bytes(b"not the second part")
    with pytest.raises(DataError, match=r"the packages of this encoder are damaged.*Install these packages again"):
        folder_of(NAME)
    assert not list((tmp_path / "cache" / "encoders").iterdir())


def test_a_package_that_does_not_list_its_files_is_refused(parts: list[Path]) -> None:
    (parts[0].parents[2] / "part_1-1.2.dist-info" / "RECORD").unlink()
    with pytest.raises(DataError, match="part-1: this package does not list its files"):
        folder_of(NAME)


def test_a_folder_of_that_name_comes_first(parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own" / NAME
    own.mkdir(parents=True)
    (own / "tokenizer.json").write_text("{}")
    monkeypatch.chdir(own.parent)
    assert encoder_files(NAME, "a test").folder.resolve() == own


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packaged.packaged, NAME, Packaged(("no-such-package",), "mpnet", "", 1, 8, 1, "MIT"))
    with pytest.raises(MissingExtraError, match=r"encoder whole-encoder needs.*longtail\[mpnet\]"):
        encoder_files(NAME, "a test")


def test_the_command(parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoders", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows[NAME]["installed"] == "1.2" and next(iter(rows)) == MINILM
    assert rows["all-mpnet-base-v2"]["layers"] == 12
    assert main(["encoders"]) == 0
    shown = capsys.readouterr().out
    assert MINILM in shown and "--set encoder=NAME" in shown
