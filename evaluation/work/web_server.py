"""How ``serve`` starts the web server: several processes, for Python works on one core at a time."""

from __future__ import annotations

import errno
import os
import socket
import sys

THREADS = 2  # of each process: one waits for the database or the network while the other works
PORT_TAKEN = "Port %s is in use. End what runs there, or name another one: PORT=8001."
KILL_SECONDS = 5  # below the supervisor's grace
MOST_PROCESSES = 4  # unless the setting names more: each takes up to 200 MB


def processes(setting: int) -> int:
    """How many: as ``CONCORD_WEB_PROCESSES`` says, else one for each core there is for us, and no more than four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, setting or min(cores, MOST_PROCESSES))


def port_taken(host: str, port: int) -> bool:
    """Whether somebody listens there already. The processes of our server share their port (``SO_REUSEPORT``), so the
    system would let a second server in and hand each request to either of them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended hold nothing
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def web_command(host: str, port: int, count: int, application: str = "config.wsgi:application") -> list[str]:
    """The command that serves a WSGI application by so many processes.

    A process that is still loading the application loses a signal (until then it has its parent's handler, which asks
    only the parent to stop), and the parent would wait for it without end: after ``KILL_SECONDS`` it kills it.
    """
    address = ["--interface", "wsgi", "--host", host, "--port", str(port)]
    size = ["--workers", str(count), "--blocking-threads", str(THREADS)]
    size += ["--workers-kill-timeout", str(KILL_SECONDS)]
    return [sys.executable, "-m", "granian", *address, *size, "--log-level", "warning", application]
