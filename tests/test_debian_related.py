"""The script that rebuilds the bundled corpus, on two small hand-written indexes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import itertools
import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import longtail.data
from longtail.core.errors import DataError, ParameterError

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from debian_packages import read_stanzas, version_key
from debian_related import build, is_test, main, write

FIXTURES = Path(__file__).parent / "fixtures" / "debian"
OLD, NEW = FIXTURES / "Packages-old", FIXTURES / "Packages-new"
BUNDLED = Path(longtail.data.__file__).parent / "bundled" / "debian-related"

EXPECTED = {
    "train.jsonl.gz": """\
{"text": "hammer: drives nails, and pulls them", "labels": [0, 1, 3, 4, 5, 6], "id": "hammer", "src": "tools"}
{"text": "timber: wood, cut", "labels": [6], "id": "timber", "src": "timber"}
{"text": "nail: keeps things \\u2013 \\u201ctogether\\u201d", "labels": [1], "id": "nail", "src": "nail"}
{"text": "vice: holds what the hammer hits", "labels": [2], "id": "vice", "src": "tools"}
""",
    "test.jsonl.gz": """\
{"text": "anvil: to hammer on", "labels": [2], "id": "anvil", "src": "anvil"}
{"text": "saw: cuts wood", "labels": [6], "id": "saw", "src": "saw"}
""",
    "labels.jsonl.gz": """\
{"id": 0, "key": "anvil", "text": "anvil: to hammer on"}
{"id": 1, "key": "glue", "text": "glue: holds  fast"}
{"id": 2, "key": "hammer", "text": "hammer: drives nails, and pulls them"}
{"id": 3, "key": "nail", "text": "nail: keeps things – “together”"}
{"id": 4, "key": "saw", "text": "saw: cuts wood"}
{"id": 5, "key": "timber", "text": "timber: wood, cut"}
{"id": 6, "key": "wood", "text": "wood: comes from trees"}
""",
    "filter_labels_train.txt.gz": "0 2\n1 5\n2 3\n",
    "filter_labels_test.txt.gz": "0 0\n1 4\n",
}


def unpacked(folder: Path) -> dict[str, str]:
    return {p.name: gzip.decompress(p.read_bytes()).decode() for p in folder.iterdir() if p.suffix == ".gz"}


@pytest.mark.parametrize("order", list(itertools.permutations([OLD, NEW])), ids=["old first", "new first"])
def test_expected_files(order: list[Path], tmp_path: Path) -> None:
    """libc6 is named by 5 of the 7 that name any, chisel by nobody and names only libc6, ghost has no description."""
    corpus = build(order, most_named=0.5)
    assert corpus.dropped == ["libc6"]
    write(corpus, tmp_path)
    assert unpacked(tmp_path) == EXPECTED
    about = json.loads((tmp_path / "corpus.json").read_text())
    assert about["name"] == "debian-related" and about["group"] == "src"


def test_share_is_of_packages_that_name_any() -> None:
    """wood is named by 3 of 7, hammer and glue by 2: kept at exactly their share, dropped just above it."""
    assert build([OLD, NEW], most_named=0.43).dropped == ["libc6"]
    assert build([OLD, NEW], most_named=0.42).dropped == ["libc6", "wood"]
    assert build([OLD, NEW], most_named=2 / 7).dropped == ["libc6", "wood"]


def test_same_bytes_every_time(tmp_path: Path) -> None:
    digests = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert main([str(OLD), str(NEW), "--out", str(folder), "--most-named", "0.5", "--quiet"]) == 0
        digests.append({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()})
        assert all(p.read_bytes()[4:8] == b"\0\0\0\0" for p in folder.glob("*.gz"))  # no time stamp
    assert digests[0] == digests[1] and len(digests[0]) == 6


def test_compressed_indexes_are_the_same(tmp_path: Path) -> None:
    plain = list(read_stanzas(OLD))
    assert [s.name for s in plain] == ["hammer", "nail", "wood", "timber", "libc6", "ghost", "saw", "anvil", "chisel"]
    for name, pack in {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}.items():
        # the name tells nothing: apt's own lists and mirrors call the same file differently
        path = tmp_path / f"Packages-{name}"
        path.write_bytes(pack(OLD.read_bytes()))
        assert list(read_stanzas(path)) == plain


@pytest.mark.skipif(shutil.which("lz4") is None, reason="needs the lz4 command")
def test_lz4_by_its_command(tmp_path: Path) -> None:
    packed = tmp_path / "Packages.lz4"
    subprocess.run(["lz4", "-q", str(OLD), str(packed)], check=True)
    assert list(read_stanzas(packed)) == list(read_stanzas(OLD))
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match="lz4 file is damaged"):
        list(read_stanzas(packed))


def test_lz4_without_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    packed = tmp_path / "Packages.lz4"
    packed.write_bytes(b"\x04\x22\x4d\x18rest")
    with pytest.raises(DataError, match=r"Packages\.lz4: .*no `lz4` command.*Install the package lz4"):
        list(read_stanzas(packed))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Package: a\nVersion: 1\n\nPackage: b\nno colon here\n", "line 5: neither `Field: value`"),
        (b"Package: a\nVersion: 1\n\n\nVersion: 2\nDepends: x\n", "line 5: the stanza that begins here has no Package"),
        (b"Package: a\nDescription: b\n", "line 1: the stanza that begins here has no Version; found 'a'"),
        (b"Package: a b\nVersion: 1\n", "line 1: not a package name; found 'a b'"),
        (b"\n continued\n", "line 2: a continuation line stands before any field"),
        (b"Package: a\nVersion: 1\nVersion: 2\n", "line 3: the field Version stands twice"),
        (b"Package: a\nVersion: 1\nDepends: b,\n c d\n", "line 3: not a relation to a package in Depends; found ' c"),
        (b"Package: a\nVersion: 1\nDescription: \xff\n", "line 3: invalid UTF-8"),
        (b"", "the file is empty"),
        (gzip.compress(OLD.read_bytes())[:-30], "cut short or damaged"),
        (lzma.compress(OLD.read_bytes())[:-30], "cut short or damaged"),
    ],
)
def test_malformed_index(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        list(read_stanzas(path))
    assert str(error.value).startswith(str(path)) and message in str(error.value)


def test_command_tells_errors_without_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path / "missing"), "--out", str(tmp_path / "out")])
    assert stop.value.code == 1
    assert "missing: the file cannot be read; found 'No such file or directory'" in capsys.readouterr().err
    with pytest.raises(SystemExit):  # 1 % of so few packages is less than one
        main([str(OLD), "--out", str(tmp_path / "out")])
    assert "no package is left for train" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_refuses_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    with pytest.raises(ParameterError, match="not an empty folder"):
        write(build([OLD, NEW], most_named=0.5), tmp_path)
    with pytest.raises(ParameterError, match="most_named must be above 0"):
        build([OLD], most_named=0)


def test_versions_sort_as_dpkg_sorts_them() -> None:
    rising = ["1.0~~", "1.0~rc1", "1.0", "1.0-0.1", "1.0-1", "1.0-1+b1", "1.0a", "1.0+x", "1.0.1", "1.2", "1.10", "2:0"]
    assert sorted(reversed(rising), key=version_key) == rising
    assert version_key("0:1.0") == version_key("1.0") and version_key("1.01") == version_key("1.1")


def test_bundled_corpus_follows_the_same_rules() -> None:
    """Its files match the figures in its README; split and filter pairs are the same as the script's."""
    files = unpacked(BUNDLED)
    labels = [json.loads(line) for line in files["labels.jsonl.gz"].splitlines()]
    keys = [label["key"] for label in labels]
    assert len(keys) == 63_557 and keys == sorted(set(keys)) and [x["id"] for x in labels] == list(range(len(labels)))
    index = {key: i for i, key in enumerate(keys)}
    used: set[int] = set()
    for part, size in (("train", 59_925), ("test", 15_305)):
        points = [json.loads(line) for line in files[f"{part}.jsonl.gz"].splitlines()]
        assert len(points) == size
        assert all(is_test(f"src:{p['src']}") == (part == "test") for p in points)
        own = [f"{row} {index[p['id']]}" for row, p in enumerate(points) if p["id"] in index]
        assert own == files[f"filter_labels_{part}.txt.gz"].splitlines()
        assert all(labels[index[p["id"]]]["text"] == p["text"] for p in points if p["id"] in index)
        used.update(*(p["labels"] for p in points))
    assert used == set(range(len(labels)))
