"""Every change the store makes to the file system: small functions that all call one hook first.

The hook is for tests: they stop a save at a chosen change and check what it leaves behind. With
`LONGTAIL_STORE_KILL_AT=n` in the environment, the process kills itself just before the n-th change.
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from longtail.core.errors import StoreError

try:
    import fcntl as fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Hook = Callable[[str, Path], None]
NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # links are refused, pipes do not block


def kill_at(n: int) -> Hook:
    """Return a hook that kills the process, without any clean-up, at the n-th change (counting from 1)."""
    seen = 0

    def count(action: str, path: Path) -> None:
        nonlocal seen
        seen += 1
        if seen == n:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


_wanted = os.environ.get("LONGTAIL_STORE_KILL_AT")
hook: Hook | None = kill_at(int(_wanted)) if _wanted else None


def step(action: str, path: Path) -> None:
    """Called before each change; `action` is mkdir, create, write, fsync, replace, unlink or rmdir."""
    if hook is not None:
        hook(action, path)


@contextmanager
def explained(what: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` inside the block into a `StoreError` that says what failed and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            message = f"{path}: cannot {what}: the disk is full; free some space or choose another folder"
        elif error.errno == errno.ELOOP:
            message = f"{path}: cannot {what}: it is a symbolic link, which is not followed here; delete the link"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = f"{path}: cannot {what}: no permission; choose another folder, or change its permissions"
        else:
            message = f"{path}: cannot {what}: {error.strerror or error}"
        raise StoreError(message) from error


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; a pipe or a device, which might never answer, is an `OSError`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        wrong = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(wrong, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    return os.fdopen(handle, "rb")


def make_folder(path: Path) -> None:
    """Create one folder that does not exist yet; its parent is not synced to disk."""
    with explained("create this folder", path):
        step("mkdir", path)
        path.mkdir()


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents, and sync them to disk; an existing folder is left alone."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path:
            break
        path = path.parent
    for folder in reversed(missing):
        with explained("create this folder", folder):
            step("mkdir", folder)
            folder.mkdir(exist_ok=True)  # another process may have created it just now
        sync_folder(folder.parent)


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> str:
    """Write the chunks to a new file and sync it to disk; return the SHA-256 of the content.

    The name may already be taken by what a killed writer left: that is removed. A link, which may lead anywhere, is
    removed and never followed.
    """
    hasher = hashlib.sha256()
    with explained("write this file", path):
        if os.path.lexists(path):
            unlink(path)
        step("create", path)
        with path.open("xb", buffering=0) as file:
            for chunk in chunks:
                hasher.update(chunk)
                rest = memoryview(chunk)
                while rest:
                    step("write", path)
                    rest = rest[file.write(rest) :]
            step("fsync", path)
            _sync(file.fileno())
    return hasher.hexdigest()


@contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """A new file, open for writing in the block and synced to disk at its end. For content that is not in order."""
    with explained("write this file", path):
        step("create", path)
        file = path.open("wb")
    try:
        yield file
        with explained("write this file", path):
            file.flush()
            step("fsync", path)
            _sync(file.fileno())
    finally:
        with suppress(OSError):  # after a sync nothing is left to write; after a failure it was already explained
            file.close()


def append(path: Path, data: bytes) -> None:
    """Append to a file and sync it, in one write if the system allows it; a missing file is created."""
    with explained("append to this file", path):
        step("write", path)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            step("fsync", path)
            _sync(handle)
        finally:
            os.close(handle)


def replace(source: Path, target: Path) -> None:
    """Replace `target` by `source`; readers see the old file or the new one, never a mixture."""
    with explained("replace this file", target):
        step("replace", target)
        source.replace(target)


def write_atomically(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write the chunks to a file in one step for every reader; if that fails, what was there before stays.

    Made for single files such as pages and exports. The new name is not synced: a crash of the machine may bring the
    old file back, but never half of the new one.
    """
    with drafted(path) as draft:
        write_file(draft, chunks)


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, for a file that the block writes and syncs. At its end the file is renamed.

    If the block fails, the temporary file is deleted, and what was at `path` before stays.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        replace(draft, path)
    finally:
        unlink(draft)


def unlink(path: Path) -> None:
    """Delete a file; it is no error if the file is already gone."""
    with explained("delete this file", path):
        step("unlink", path)
        path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Delete a folder and its files. A folder inside it is never ours, so it is not deleted and raises an error."""
    if path.is_symlink():
        unlink(path)
        return
    with explained("delete this folder", path):
        for entry in sorted(path.iterdir()):
            unlink(entry)
        step("rmdir", path)
        path.rmdir()


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to disk; does nothing where that is impossible (Windows, some network disks)."""
    if fcntl is None:
        return
    with explained("sync this folder", path):
        step("fsync", path)
        handle = os.open(path, os.O_RDONLY)
        try:
            _sync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
                raise
        finally:
            os.close(handle)


def open_lock(path: Path) -> int:
    """Open a lock file, creating it if it does not exist; return its file descriptor.

    Writers put their name into it, so anything but a file of its own is refused: a link would let them overwrite what
    it leads to.
    """
    with explained("open this lock", path):
        step("create", path)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NOT_FOLLOWED, 0o666)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        raise StoreError(f"{path}: is not a lock file of its own, but a link or a device; delete it")
    return handle


def overwrite(handle: int, path: Path, text: bytes) -> None:
    """Replace the content of an open (lock) file."""
    with explained("write this file", path):
        step("write", path)
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)


def _sync(handle: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None and fcntl is not None:  # macOS: plain fsync leaves the data in the drive's own cache
        with suppress(OSError):
            fcntl.fcntl(handle, full)
            return
    os.fsync(handle)
