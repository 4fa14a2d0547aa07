"""Who holds a lease. Its token names machine, process and claim, so that whoever looks from the same machine sees at
once that the holder is gone, however it ended, and need not wait for the lease to lapse."""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from hashlib import sha256
from pathlib import Path

_MARK_BYTES = 8
_PID_BYTES = 4


def new_token() -> uuid.UUID:
    """A token for a claim of this process; where processes cannot be told apart (not Linux), one that names nobody."""
    if not (mark := _mark()):
        return uuid.uuid4()
    return uuid.UUID(bytes=mark + os.getpid().to_bytes(_PID_BYTES, "big") + os.urandom(16 - _MARK_BYTES - _PID_BYTES))


def tokens_from_here() -> tuple[uuid.UUID, uuid.UUID] | None:
    """The lowest and the highest token that a process can have whose end is seen from here."""
    if not (mark := _mark()):
        return None
    rest = 16 - _MARK_BYTES
    return uuid.UUID(bytes=mark + bytes(rest)), uuid.UUID(bytes=mark + b"\xff" * rest)


def is_gone(token: uuid.UUID) -> bool:
    """Whether the process that made a token, one :func:`tokens_from_here`, has ended. A number that another process
    has got meanwhile counts as alive; its leases lapse with time."""
    pid = int.from_bytes(token.bytes[_MARK_BYTES : _MARK_BYTES + _PID_BYTES], "big")
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's process
        return False


@cache
def _mark() -> bytes:
    """What stands for this start of this machine and the space in which it numbers processes (containers have their
    own); empty where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        space = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return b""
    return sha256(f"{socket.gethostname()} {boot} {space}".encode()).digest()[:_MARK_BYTES]
