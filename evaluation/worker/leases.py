"""Lease tokens. A token names machine, process and claim, so that processes of the same machine notice a dead holder
without waiting for the lease to expire."""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from hashlib import sha256
from pathlib import Path

_HASH_BYTES = 8
_PID_BYTES = 4


def new_token() -> uuid.UUID:
    """A token for a claim of this process; a random one where processes cannot be identified (not Linux)."""
    if not (host_hash := _host_hash()):
        return uuid.uuid4()
    return uuid.UUID(
        bytes=host_hash + os.getpid().to_bytes(_PID_BYTES, "big") + os.urandom(16 - _HASH_BYTES - _PID_BYTES)
    )


def local_token_range() -> tuple[uuid.UUID, uuid.UUID] | None:
    """Return the lowest and highest token of the processes that :func:`is_dead` can check: those of this machine and
    process namespace. ``None`` where unsupported."""
    if not (host_hash := _host_hash()):
        return None
    free_bytes = 16 - _HASH_BYTES
    return uuid.UUID(bytes=host_hash + bytes(free_bytes)), uuid.UUID(bytes=host_hash + b"\xff" * free_bytes)


def is_dead(token: uuid.UUID) -> bool:
    """Return whether the process of a token from :func:`local_token_range` has ended. A reused process id counts as
    alive; its leases expire with time."""
    pid = int.from_bytes(token.bytes[_HASH_BYTES : _HASH_BYTES + _PID_BYTES], "big")
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except ProcessLookupError:
        return True
    # The process belongs to another user.
    except OSError:
        return False


@cache
def _host_hash() -> bytes:
    """Return a hash of this boot of the machine and the process namespace (containers have their own); empty where
    unsupported."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        pid_namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return b""
    return sha256(f"{socket.gethostname()} {boot} {pid_namespace}".encode()).digest()[:_HASH_BYTES]
