"""The file of an SQLite database: which one this process opened, and which processes write to it.

SQLite keeps the newest changes in a log beside the file (``-wal``) and finds it by its name. If another file takes the
database's name, SQLite applies the old log to it. So a process opens one file only, and a log is opened only with the
file that it belongs to.

Lines of the lock file ``-turn`` name the file that the log belongs to, the next writer, and the present writer."""

import fcntl
import os
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

# Pause between two attempts to take the writers' lock.
POLL_SECONDS = 0.001
LINE_BYTES = 128
LOG_OWNER, NEXT_WRITER, WRITER = range(3)
# Bytes 68 to 71 of the file: SQLite's application id, a random number that `migrate` gives to each new database.
MARK_OFFSET, MARK_BYTES = 68, 4
# The bytes on which SQLite locks a file that it reads.
SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
# The parts of `serve`, each of which one process at a time may run on a database.
PARTS = ("web", "worker")


class DatabaseFile:
    """The file that this process opened first; a file that takes its place later is never opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.replaced = False
        try:
            # Never closed while it is used: closing any descriptor of the file drops every lock that SQLite holds on it
            # for this process, because POSIX locks belong to the process. Another process that closes its last
            # connection would then delete the log while this one still writes.
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise sqlite_error("SQLITE_CANTOPEN", f"the database cannot be opened: {error}") from error
        self._id = _file_id(os.fstat(self._file))
        self._mark = self._read_mark()
        try:
            self._turn: int | None = self._open_turn()
        except OSError:
            # In a read-only folder nobody is recorded, and writers compete for SQLite itself.
            self._turn = None
        try:
            self._require_own_log()
        except sqlite3.DatabaseError:
            # Nothing of this process has a lock on the file yet.
            os.close(self._file)
            raise

    def require_unchanged(self) -> None:
        """Check that the file is in its place and has its mark.

        :raises sqlite3.OperationalError: if it is missing, and for the rest of the process if another one was there."""
        try:
            in_place = _file_id(os.stat(self.path)) == self._id
        except OSError as error:
            raise sqlite_error("SQLITE_READONLY_DBMOVED", f"the file {self.path} was deleted or moved") from error
        if not in_place or self._read_mark() != self._mark:
            self.replaced = True
            self._keep_log()
        if self.replaced:
            message = f"the file {self.path} was replaced while it was in use; stop all processes that use it"
            raise sqlite_error("SQLITE_READONLY_DBMOVED", message)

    @contextmanager
    def writers_turn(self, timeout: float) -> Iterator[None]:
        """Hold the lock of the next writer; wait at most ``timeout`` seconds, because its holder may hang."""
        if self._turn is None:
            yield
            return
        lock = self._open_turn()
        try:
            self._wait_for(lock, timeout)
            self._write_line(NEXT_WRITER, process_record())
            yield
        finally:
            os.close(lock)

    def record_writer(self) -> None:
        """Record that this process writes, until :meth:`clear_writer`."""
        self._write_line(WRITER, process_record())

    def clear_writer(self) -> None:
        """Remove the record of this process as the writer, unless the next writer is recorded already."""
        if self._read_line(WRITER).startswith(f"{os.getpid()} "):
            self._write_line(WRITER, "")

    def writer(self) -> str:
        """The process that writes, in words; empty if none of ours does."""
        return describe_process(self._read_line(WRITER))

    def busy_error(self, timeout: float, holder: str) -> sqlite3.OperationalError:
        """Build the error of a writer who waited so long for the holder of a lock."""
        return sqlite_error("SQLITE_BUSY", f"database is locked for {timeout:g} s by {holder or 'another program'}")

    def _read_mark(self) -> bytes:
        # A new file is empty.
        return os.pread(self._file, MARK_BYTES, MARK_OFFSET) or bytes(MARK_BYTES)

    def _keep_log(self) -> None:
        """Keep SQLite from writing the log into a file that was overwritten in place, as closing the last connection
        would: for that it needs an exclusive lock."""
        if sys.platform == "linux":
            lock = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, SHARED_FIRST, SHARED_SIZE, 0)
            with suppress(OSError):
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, lock)

    def _require_own_log(self) -> None:
        """Check that the log belongs to the file, and record the file as the log's owner.

        :raises sqlite3.DatabaseError: if the log belongs to another file, or the file is damaged."""
        if self._turn is None or self._is_recorded():
            return
        with self.writers_turn(timeout=20):
            has_log = any(Path(f"{self.path}{suffix}").exists() for suffix in ("-wal", "-shm"))
            recorded = self._read_line(LOG_OWNER)
            if recorded and not self._is_recorded():
                if has_log:
                    message = (
                        f"{self.path}-wal belongs to an earlier database file. Stop all processes that use it. "
                        f"Then restore that file, or move {self.path}-wal and {self.path}-shm to another folder"
                    )
                    raise sqlite_error("SQLITE_READONLY_DBMOVED", message)
                if server := server_of(self.path):
                    message = f"the file {self.path} was replaced while {server} was using it; stop that process"
                    raise sqlite_error("SQLITE_READONLY_DBMOVED", message)
            if not self._is_recorded() and (recorded or has_log):
                _quick_check(self.path)
            self._write_line(LOG_OWNER, " ".join([self._mark.hex(), self._id, self._turn_id()]))

    def _is_recorded(self) -> bool:
        """Return whether the file owns the log: it is the recorded file, or was copied together with the record."""
        mark, _, ids = self._read_line(LOG_OWNER).partition(" ")
        file_id, _, turn_id = ids.partition(" ")
        return mark == self._mark.hex() and (file_id == self._id or turn_id != self._turn_id())

    def _open_turn(self) -> int:
        return os.open(f"{self.path}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _turn_id(self) -> str:
        return "" if self._turn is None else _file_id(os.fstat(self._turn))

    def _wait_for(self, lock: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
                    continue
            next_writer = self._read_line(NEXT_WRITER)
            if not self.writer() and not next_writer.startswith(f"{os.getpid()} "):
                raise self.busy_error(timeout, describe_process(next_writer))
            raise self.busy_error(timeout, self.writer())

    def _write_line(self, line: int, text: str) -> None:
        # On a full disk nobody is recorded.
        with suppress(OSError):
            if self._turn is not None:
                os.pwrite(self._turn, text.encode()[: LINE_BYTES - 1].ljust(LINE_BYTES - 1) + b"\n", line * LINE_BYTES)

    def _read_line(self, line: int) -> str:
        if self._turn is None:
            return ""
        return os.pread(self._turn, LINE_BYTES, line * LINE_BYTES).decode(errors="replace").strip("\0 \n")


_files: dict[str, DatabaseFile] = {}
_claims: set[tuple[str, str]] = set()
_opening = threading.Lock()


def database_file(path: str) -> DatabaseFile:
    """The file that this process opened at ``path``, which is opened now if none was.

    :raises sqlite3.DatabaseError: if there is none, or it must not be opened with its log."""
    with _opening:
        if path not in _files:
            _files[path] = DatabaseFile(path)
        return _files[path]


def claim(path: str, part: str) -> str:
    """Reserve a part of ``serve`` for this process until it ends; another process that runs it, in words."""
    if (path, part) in _claims:
        return ""
    lock = os.open(f"{path}-{part}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with closing(os.fdopen(lock)) as file:
            return describe_process(file.read()) or "another process"
    os.ftruncate(lock, 0)
    os.pwrite(lock, process_record().encode(), 0)
    _claims.add((path, part))
    return ""


def server_of(path: str) -> str:
    """Another process that runs a part of ``serve`` on the database, in words; empty if none does."""
    for part in PARTS:
        with suppress(OSError), Path(f"{path}-{part}").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                record = file.read()
                if not record.startswith(f"{os.getpid()} "):
                    return describe_process(record) or "another process"
    return ""


def process_record() -> str:
    """Identify this process: its id, the time, and its command."""
    return f"{os.getpid()} {time.time():.0f} {_command()}"


@cache
def _command() -> str:
    """The command without its arguments, which may be secret."""
    program = Path(sys.argv[0])
    words = [program.parent.name if program.name == "__main__.py" else program.name, *sys.argv[1:2]]
    return " ".join(word for word in words if not word.startswith("-")) or "python"


def describe_process(record: str) -> str:
    """Write a :func:`process_record` in words; empty if the process has ended."""
    pid, _, rest = record.partition(" ")
    since, _, command = rest.partition(" ")
    if not pid.isdigit() or not since.isdigit():
        return ""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return f"process {pid} ({command}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(int(since)))})"


def _quick_check(path: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        (result,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise sqlite_error("SQLITE_CORRUPT", f"the file {path} is damaged: {result}")


def _file_id(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def sqlite_error(name: str, text: str) -> sqlite3.OperationalError:
    """Build an error as SQLite reports it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error
