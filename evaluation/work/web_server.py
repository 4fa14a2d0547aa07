"""How ``serve`` starts the web server: several processes, for Python works on one core at a time."""

from __future__ import annotations

import os
import sys

THREADS = 4  # of each process: some wait for the database while one works
MOST_PROCESSES = 4  # unless the setting names more: each takes up to 200 MB


def processes(setting: int) -> int:
    """How many: as ``CONCORD_WEB_PROCESSES`` says, else one for each core there is for us, and no more than four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, setting or min(cores, MOST_PROCESSES))


def web_command(host: str, port: int, count: int, application: str = "config.wsgi:application") -> list[str]:
    """The command that serves a WSGI application by so many processes."""
    address = ["--interface", "wsgi", "--host", host, "--port", str(port)]
    size = ["--workers", str(count), "--blocking-threads", str(THREADS)]
    return [sys.executable, "-m", "granian", *address, *size, "--log-level", "warning", application]
