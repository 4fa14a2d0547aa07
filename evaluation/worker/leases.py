"""Lease tokens. A token names machine, process and claim, so that processes of the same machine notice a dead holder
without waiting for the lease to expire."""

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
    """A token for a claim of this process; a random one where processes cannot be identified (not Linux)."""
    if not (mark := _host_mark()):
        return uuid.uuid4()
    return uuid.UUID(bytes=mark + os.getpid().to_bytes(_PID_BYTES, "big") + os.urandom(16 - _MARK_BYTES - _PID_BYTES))


def local_token_range() -> tuple[uuid.UUID, uuid.UUID] | None:
    """The lowest and highest token of processes on this machine, whose end is visible here; ``None`` where
    unsupported."""
    if not (mark := _host_mark()):
        return None
    free_bytes = 16 - _MARK_BYTES
    return uuid.UUID(bytes=mark + bytes(free_bytes)), uuid.UUID(bytes=mark + b"\xff" * free_bytes)


def is_dead(token: uuid.UUID) -> bool:
    """Whether the process of a token from :func:`local_token_range` has ended. A reused process id counts as alive; its
    leases expire with time."""
    pid = int.from_bytes(token.bytes[_MARK_BYTES : _MARK_BYTES + _PID_BYTES], "big")
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except ProcessLookupError:
        return True
    # The process belongs to another user.
    except OSError:
        return False


@cache
def _host_mark() -> bytes:
    """A hash of this boot of the machine and its process namespace (containers have their own); empty where
    unsupported."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        space = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return b""
    return sha256(f"{socket.gethostname()} {boot} {space}".encode()).digest()[:_MARK_BYTES]
