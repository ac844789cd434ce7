"""The folder format: saved arrays come back memory-mapped, and everything else is refused with a clear message."""

import errno
import json
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from longtail.core.errors import StoreError
from longtail.store import disk, lock, npy
from longtail.store.folder import open_folder, save_folder, size_of
from longtail.store.manifest import read_manifest

NAME, KIND = "thing.json", "longtail-thing"


def save(folder, arrays, **fields):
    save_folder(folder, NAME, KIND, fields, arrays, overwrite=True)


def read(folder, verify=True):
    return open_folder(folder, NAME, KIND, verify)


def arrays_of(seed):
    rng = np.random.default_rng(seed)
    return {"weights": rng.normal(size=(7, 5)).astype(np.float32), "tree.children": rng.integers(0, 9, 11)}


def same(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a)


def generations(folder):
    return sorted(path.name for path in Path(folder).glob("data-*"))


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "deep" / "er" / "thing"
    save(folder, arrays_of(1), colour="blue")
    return folder


def edit(folder, change):
    path = folder / NAME
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_round_trip_maps_the_arrays_read_only(saved):
    manifest, arrays = read(saved)
    assert same(arrays, arrays_of(1))
    assert manifest["colour"] == "blue" and manifest["version"] == 1 and manifest["format"] == KIND
    weights = arrays["weights"]
    assert isinstance(weights.base, np.memmap) and type(weights) is np.ndarray
    with pytest.raises(ValueError):
        weights[0, 0] = 1
    files = [path for path in saved.rglob("*") if path.suffix in (".npy", ".json")]
    assert size_of(saved, NAME, manifest) == sum(path.stat().st_size for path in files)


SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
DTYPES = st.sampled_from(["?", "<f2", "<f4", ">f8", "<i1", "<i8", ">u4", "<c8"])


@given(array=hnp.arrays(DTYPES, SHAPES), order=st.sampled_from("CFT"), chunk=st.integers(1, 40))
def test_any_array_is_written_as_numpy_reads_it(tmp_path_factory, array, order, chunk):
    if order == "F":
        array = np.asfortranarray(array)
    elif order == "T" and array.ndim:  # neither order: every other row and column
        array = array.repeat(2, 0)[::2].swapaxes(0, -1)
    path = tmp_path_factory.getbasetemp() / "any.npy"
    before, npy.CHUNK = npy.CHUNK, chunk
    try:
        expected = npy.entry("any", array)
        assert disk.write_file(path, npy.chunks(array)) == expected["sha256"]
    finally:
        npy.CHUNK = before
    np.testing.assert_array_equal(np.load(path), array)
    npy.check_sum(path, expected)
    found = npy.open_array(path, expected)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype and not found.flags.writeable


def test_empty_and_zero_dimensional_arrays(tmp_path):
    arrays = {"none": np.empty((0, 4), np.int32), "flat": np.empty((3, 0)), "one": np.array(3.5)}
    save(tmp_path / "f", arrays)
    assert same(read(tmp_path / "f")[1], arrays)
    save(tmp_path / "g", {})
    assert read(tmp_path / "g")[1] == {}


def test_files_are_what_numpy_and_sha256sum_say(saved):
    import hashlib

    manifest = json.loads((saved / NAME).read_text())
    for name, entry in manifest["arrays"].items():
        path = saved / manifest["generation"] / entry["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
        assert np.array_equal(np.load(path), arrays_of(1)[name])


def test_saving_again_replaces_and_leaves_one_generation(saved):
    first = generations(saved)
    save(saved, arrays_of(2), colour="red")
    assert same(read(saved)[1], arrays_of(2))
    assert len(generations(saved)) == 1 and generations(saved) != first
    assert sorted(p.name for p in saved.iterdir()) == [".lock", *generations(saved), NAME]


def test_equal_arrays_are_not_written_again(saved):
    path = saved / generations(saved)[0] / "weights.npy"
    before = path.stat()
    save(saved, arrays_of(1), colour="green")
    assert path.stat().st_ino == before.st_ino and path.stat().st_mtime_ns == before.st_mtime_ns
    assert read(saved)[0]["colour"] == "green"


def test_digest_depends_on_names_and_content(tmp_path):
    a = np.arange(4)
    for i, arrays in enumerate([{"a": a}, {"b": a}, {"a": a.astype(np.float64)}, {"a": a.reshape(2, 2)}]):
        save(tmp_path / str(i), arrays)
    assert len({name for i in range(4) for name in generations(tmp_path / str(i))}) == 4


def test_arrays_may_come_from_the_folder_they_overwrite(saved):
    _, arrays = read(saved)
    save(saved, {"weights": arrays["weights"], "more": arrays["tree.children"][::2]})
    assert same(read(saved)[1], {"weights": arrays_of(1)["weights"], "more": arrays_of(1)["tree.children"][::2]})
    assert np.array_equal(arrays["weights"], arrays_of(1)["weights"])  # the old map still works


def test_a_damaged_generation_is_not_written_into(saved):
    old = generations(saved)
    victim = saved / old[0] / "weights.npy"
    victim.write_bytes(victim.read_bytes()[:-4] + b"\0\0\0\1")
    save(saved, arrays_of(1))
    assert generations(saved) == [f"{old[0]}-2"] and same(read(saved)[1], arrays_of(1))
    victim = saved / generations(saved)[0] / "weights.npy"
    victim.unlink()
    save(saved, arrays_of(1))
    assert generations(saved) == old and same(read(saved)[1], arrays_of(1))


def test_a_leftover_of_the_same_name_is_removed_first(saved, tmp_path):
    leftover = tmp_path / "new" / generations(saved)[0]
    leftover.mkdir(parents=True)
    (leftover / "weights.npy").write_bytes(b"half")
    (leftover / "other.npy").write_bytes(b"")
    with pytest.raises(StoreError, match="save did not finish"):
        read(tmp_path / "new")
    save(tmp_path / "new", arrays_of(1))
    assert same(read(tmp_path / "new")[1], arrays_of(1))
    assert not (leftover / "other.npy").exists()


def test_other_files_beside_a_manifest_are_left_alone(saved):
    (saved / "README").write_text("mine")
    (saved / ".run").mkdir()
    save(saved, arrays_of(2))
    assert (saved / "README").read_text() == "mine" and (saved / ".run").is_dir()


def test_a_checkpoint_folder_alone_does_not_make_a_folder_foreign(tmp_path):
    (tmp_path / "m" / ".run").mkdir(parents=True)
    save(tmp_path / "m", arrays_of(1))
    assert same(read(tmp_path / "m")[1], arrays_of(1))


def test_a_linked_generation_is_unlinked_and_its_target_kept(saved, tmp_path):
    target = (saved / generations(saved)[0]).rename(tmp_path / "elsewhere")
    (saved / read_manifest(saved, NAME, KIND)["generation"]).symlink_to(target)
    assert same(read(saved)[1], arrays_of(1))
    save(saved, arrays_of(2))
    assert len(generations(saved)) == 1 and len(list(target.iterdir())) == 2


# -- refusals on saving


def test_refuses_foreign_folders_untouched(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match=r"holds other files .'thesis.txt'.* no thing.json; choose a new"):
        save(tmp_path, arrays_of(1))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(StoreError, match="is a file, not a folder"):
        save(tmp_path / "thesis.txt", arrays_of(1))


def test_refuses_to_write_over_another_kind_or_a_newer_version(saved):
    with pytest.raises(StoreError, match="is in format 'longtail-thing', but should be in format 'longtail-other'"):
        save_folder(saved, NAME, "longtail-other", {}, arrays_of(2), overwrite=True)
    edit(saved, lambda m: m.update(version=2, longtail="9.0"))
    with pytest.raises(StoreError, match=r"newer longtail .9\.0, format 2"):
        save(saved, arrays_of(2))
    (saved / NAME).write_text("shopping list")
    with pytest.raises(StoreError, match="is not JSON"):
        save(saved, arrays_of(2))
    assert len(generations(saved)) == 1


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\\b", ".hidden", "a..b", "a.", "ä", "a b", "x" * 300, "nul\0"])
def test_refuses_unsafe_array_names(tmp_path, name):
    with pytest.raises(StoreError, match="array names use letters"):
        save(tmp_path / "f", {name: np.arange(2)})
    assert not (tmp_path / "f").exists()


def test_refuses_names_that_some_disks_cannot_tell_apart(tmp_path):
    with pytest.raises(StoreError, match="differ by more than case; got 'W' and 'w'"):
        save(tmp_path / "f", {"W": np.arange(2), "w": np.arange(2)})


@pytest.mark.parametrize("array", [np.array(["a", None], object), np.zeros(2, "i4,f4"), np.array(["x"]), [1, 2]])
def test_refuses_what_only_pickle_could_hold(tmp_path, array):
    with pytest.raises(StoreError, match="'x' must be a numpy array of numbers"):
        save(tmp_path / "f", {"x": array})


def test_manifest_values_are_json(tmp_path):
    fields = {"n": np.int64(3), "p": Path("a/b"), "nan": float("nan"), "t": (1, np.float32(0.5)), "s": "\ud800é"}
    save(tmp_path / "f", {}, **fields)
    found = read(tmp_path / "f")[0]
    assert [found[k] for k in fields] == [3, str(Path("a/b")), None, [1, 0.5], "\\ud800é"]
    with pytest.raises(StoreError, match=r"only hold JSON values, but a\.b\[1\] is <object"):
        save(tmp_path / "g", {}, a={"b": [1, object()]})
    with pytest.raises(StoreError, match="already has a field 'version'"):
        save(tmp_path / "g", {}, version=3)
    assert not (tmp_path / "g").exists()


def test_an_array_that_changes_while_it_is_saved_is_noticed(tmp_path, monkeypatch):
    save(tmp_path / "f", arrays_of(1))
    arrays = arrays_of(2)

    def meddle(action, path):
        if action == "create" and path.name == "weights.npy":
            arrays["weights"][0, 0] += 1

    monkeypatch.setattr(disk, "hook", meddle)
    with pytest.raises(StoreError, match="'weights' was changed while"):
        save(tmp_path / "f", arrays)
    assert same(read(tmp_path / "f")[1], arrays_of(1)) and len(generations(tmp_path / "f")) == 1


# -- refusals on opening


def test_refuses_what_is_no_folder_of_ours(tmp_path):
    with pytest.raises(StoreError, match="nowhere: there is no such folder; give the folder of a saved longtail thing"):
        read(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"there is no thing in it .no thing\.json."):
        read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ('{"format": "longtail-thi', "is not JSON .*found b'"),
        ("[1, 2]", "is not a longtail folder, but should be in format 'longtail-thing'"),
        ('{"model_type": "bert"}', "is not a longtail folder"),
        ('{"format": "safetensors"}', "is in format 'safetensors'"),
        ('{"format": "longtail-thing"}', "has the version None"),
        ('{"format": "longtail-thing", "version": "x"}', "has the version 'x'"),
        ('{"format": "longtail-thing", "version": 2, "longtail": "7.1"}', "newer longtail .7.1.*pip install -U"),
        ('{"format": "longtail-thing", "version": 1}', "generation must be data-<digest>; found None"),
        (
            '{"format": "longtail-thing", "version": 1, "generation": "data-0123456789abcdef", "arrays": {}}',
            "does not say by longtail which version",
        ),
    ],
)
def test_refuses_damaged_or_foreign_manifests(saved, text, message):
    (saved / NAME).write_text(text)
    with pytest.raises(StoreError, match=message) as caught:
        read(saved)
    assert str(saved / NAME) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(generation="../../etc"), "generation must be"),
        (lambda m: m.update(generation="data-0123"), "generation must be"),
        (lambda m: m.update(generation="data-0123456789abcdef"), "weights.npy: is missing"),
        (lambda m: m.update(arrays=[]), "arrays must be an object"),
        (lambda m: m["arrays"]["weights"].pop("sha256"), "sha256 of array 'weights' is missing"),
        (lambda m: m["arrays"].update(weights=3), "file of array 'weights' is missing or has the wrong type"),
        (lambda m: m["arrays"]["weights"].update(file="../../secret.npy"), "must be a .npy file in data-"),
        (lambda m: m["arrays"]["weights"].update(file="/etc/passwd"), "must be a .npy file in data-"),
        (lambda m: m["arrays"]["weights"].update(file="model.pkl"), "must be a .npy file in data-"),
        (lambda m: m["arrays"]["weights"].update(shape=[5, 7]), r"holds <f4 \(7, 5\), but should hold <f4 \(5, 7\)"),
        (lambda m: m["arrays"]["weights"].update(dtype="<i4"), "but should hold <i4"),
        (lambda m: m["arrays"]["weights"].update(bytes=3), "but should have 3"),
        (lambda m: m["arrays"]["weights"].update(sha256="0" * 64), "should have 000000000000…"),
    ],
)
def test_refuses_manifests_that_do_not_fit_the_files(saved, change, message):
    edit(saved, change)
    with pytest.raises(StoreError, match=message):
        read(saved)


def test_refuses_damaged_files(saved):
    path = saved / generations(saved)[0] / "weights.npy"
    good = path.read_bytes()
    for content, message in [
        (good[:-1], f"weights.npy: has {len(good) - 1:,} bytes, but should have {len(good):,}"),
        (b"", "has 0 bytes"),
        (b"\0" * len(good), "cannot be read as a numpy array"),
        (good.replace(b"(7, 5)", b"(7,50)"), "cannot be read as a numpy array"),
        (good[:-1] + bytes([good[-1] ^ 1]), "has the SHA-256"),
    ]:
        path.write_bytes(content)
        with pytest.raises(StoreError, match=re.escape(message)) as caught:
            read(saved)
        assert "restore it from a copy, or create it again" in str(caught.value)
    assert read(saved, verify=False)[1]["weights"].shape == (7, 5)  # one bit: found only by reading it all
    path.unlink()
    with pytest.raises(StoreError, match=r"weights\.npy: is missing"):
        read(saved, verify=False)


def test_never_unpickles(saved):
    path = saved / generations(saved)[0] / "weights.npy"
    np.save(path, np.array([print], object), allow_pickle=True)
    edit(saved, lambda m: m["arrays"]["weights"].update(bytes=path.stat().st_size, dtype="|O", shape=[1]))
    with pytest.raises(StoreError, match="cannot be read as a numpy array"):
        read(saved, verify=False)


# -- writers and the disk


@pytest.mark.skipif(disk.fcntl is None, reason="no locks on this platform")
def test_a_second_writer_waits_and_then_says_who_is_in_its_way(saved, monkeypatch):
    monkeypatch.setattr(lock, "WAIT", 0.1)
    with (
        lock.locked(saved),
        pytest.raises(StoreError, match=f"process {os.getpid()} on .* is saving to this folder"),
    ):
        save(saved, arrays_of(2))
    assert same(read(saved)[1], arrays_of(1))
    monkeypatch.setattr(lock, "WAIT", 20)
    with lock.locked(saved):
        writer = threading.Thread(target=save, args=(saved, arrays_of(2)))
        writer.start()
        writer.join(0.1)
        assert writer.is_alive()
    writer.join()
    assert same(read(saved)[1], arrays_of(2))


def test_works_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "fcntl", None)
    save(tmp_path / "f", arrays_of(1))
    save(tmp_path / "f", arrays_of(2))
    assert same(read(tmp_path / "f")[1], arrays_of(2)) and len(generations(tmp_path / "f")) == 1


def test_goes_on_where_the_disk_has_no_locks(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(disk.fcntl, "flock", refuse)
    save(tmp_path / "f", arrays_of(1))
    assert same(read(tmp_path / "f")[1], arrays_of(1)) and "this disk does not support locks" in caplog.text


class FailAt:
    """A hook that fails the n-th change, and only that one, with an `OSError`."""

    def __init__(self, n, code):
        self.n, self.code, self.seen = n, code, 0

    def __call__(self, action, path):
        self.seen += 1
        if self.seen == self.n:
            raise OSError(self.code, os.strerror(self.code), str(path))


def test_a_full_disk_at_any_change_costs_nothing_but_the_save(tmp_path, monkeypatch):
    save(tmp_path / "start", arrays_of(1))
    outcomes = []
    for n in range(1, 200):
        folder = tmp_path / str(n)
        save(folder, arrays_of(1))
        fault = FailAt(n, errno.ENOSPC)
        monkeypatch.setattr(disk, "hook", fault)
        try:
            save(folder, arrays_of(2))
            outcomes.append("saved")
        except StoreError as error:
            assert "the disk is full; free some space" in str(error) and str(folder) in str(error)
            outcomes.append("refused")
        monkeypatch.setattr(disk, "hook", None)
        found = read(folder)[1]
        assert same(found, arrays_of(2)) or (outcomes[-1] == "refused" and same(found, arrays_of(1)))
        if outcomes[-1] == "refused":  # space is given back; the old stays while the new is not known to be durable
            assert len(generations(folder)) == (1 if same(found, arrays_of(1)) else 2)
        save(folder, arrays_of(3))
        assert same(read(folder)[1], arrays_of(3)) and len(generations(folder)) == 1
        if fault.seen < n:
            break
    assert outcomes.count("refused") > 10 and outcomes[-1] == "saved"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs permissions that bind")
def test_no_permission_is_said(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="no permission; choose another folder"):
            save(tmp_path / "f", arrays_of(1))
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.EACCES, "cannot write this file: no permission; choose another folder, or change its permissions"),
        (errno.EROFS, "no permission"),
        (errno.EIO, "cannot write this file: Input/output error"),
    ],
)
def test_errors_of_the_disk_are_explained(tmp_path, code, message):
    with pytest.raises(StoreError, match=message), disk.explained("write this file", tmp_path / "f"):
        raise OSError(code, os.strerror(code))


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious.txt"
    path.write_text("do not touch")
    return path


@pytest.mark.skipif(disk.fcntl is None, reason="links need rights on Windows")
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_save_does_not_write_through_a_link(saved, precious, link):
    """What a stranger's folder has in place of our own files may lead anywhere."""
    link(precious, saved / f".{NAME}.tmp")
    save(saved, arrays_of(2))
    assert same(read(saved)[1], arrays_of(2))
    (saved / lock.LOCK).unlink()
    link(precious, saved / lock.LOCK)
    with pytest.raises(StoreError, match=re.escape(str(saved / lock.LOCK)) + r".*(delete it|delete the link)"):
        save(saved, arrays_of(3))
    assert same(read(saved)[1], arrays_of(2))
    assert precious.read_text() == "do not touch"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_at_once(saved, tmp_path):
    manifest = read_manifest(saved, NAME, KIND)
    array = saved / manifest["generation"] / manifest["arrays"]["weights"]["file"]
    array.unlink()
    os.mkfifo(array)
    with pytest.raises(StoreError, match="not a regular file"):
        read(saved)
    for name in (NAME, lock.LOCK):
        (saved / name).unlink()
        os.mkfifo(saved / name)
    with pytest.raises(StoreError, match="not a regular file"):
        read(saved)
    with pytest.raises(StoreError, match="not a regular file"):
        save(saved, arrays_of(2))
    empty = tmp_path / "empty"
    empty.mkdir()
    os.mkfifo(empty / "other.json")
    with pytest.raises(StoreError, match=f"no {NAME}"):
        read(empty)


@pytest.mark.parametrize(("number", "said"), [(errno.ENOMEM, "not enough memory"), (errno.EACCES, "permissions")])
def test_what_the_system_denies_is_not_called_damage(saved, monkeypatch, number, said):
    def denied(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(npy.np, "load", denied)
    with pytest.raises(StoreError, match=said) as caught:
        read(saved)
    assert "damaged" not in str(caught.value)
