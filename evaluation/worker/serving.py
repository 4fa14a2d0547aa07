"""Supervisor of ``serve``: starts the web server (several processes, because Python uses one core each) and the worker
cluster, restarts what ends, and stops both at the end.

django-q2 can wedge for good if a worker is killed while idle, and then ignores SIGTERM; only a watchdog outside of the
cluster helps. Each child leads its own session, so that its whole group can be killed, and dies with the parent where
the system supports it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from evaluation.core.errors import DomainError

log = logging.getLogger("concord.serve")
# Time for a worker to finish what it began; the rest is repeated later.
PATIENCE_SECONDS = 2.0
# Includes the patience.
GRACE_SECONDS = 8.0
# A process that lived this long did not fail at its start.
MIN_UPTIME_SECONDS = 5.0
# Maximum pause before a restart.
LONGEST_PAUSE_SECONDS = 8.0
# After this many quick exits in a row the supervisor gives up.
MAX_QUICK_EXITS = 10
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Ask Linux to send SIGTERM to the child when its parent dies, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A process group started from one command. ``quick_exits`` counts consecutive exits soon after a start;
    ``restart_at`` is the time of the next start, ``None`` while it runs. ``hopeless`` is true if it keeps exiting by
    itself; a process killed from outside (out of memory) is restarted without limit."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)
        self.quick_exits = 0
        self.hopeless = False
        self.start()

    def start(self) -> None:
        self.restart_at: float | None = None
        self._started_at = time.monotonic()
        self._child_pids: set[str] = set()
        self.process = subprocess.Popen(self.command, start_new_session=True, preexec_fn=_die_with_parent)  # noqa: S603 -- our own commands

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def request_stop(self) -> None:
        """Ask the group to end, without waiting. Uses SIGINT, which django-q's processes leave to their leader; SIGTERM
        kills its sentinel, and the leader then waits for ever."""
        self._signal(signal.SIGINT)

    def wait_for_end(self, patience: float = PATIENCE_SECONDS, grace: float = GRACE_SECONDS) -> None:
        """Wait for a group that was asked to stop: SIGTERM after the patience, SIGKILL after the grace."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGTERM)
        try:
            self.process.wait(grace - patience)
        except subprocess.TimeoutExpired:
            log.warning("%s does not stop, killing it", self.name)
        # Members may outlive their leader: a killed cluster leaves workers that continue.
        self._signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.request_stop()
        self.wait_for_end()
        self.start()

    def handle_exit(self) -> str:
        """Kill the rest of the group after its leader ended, and schedule a restart: at once, then after 1, 2, 4, ...
        seconds while it keeps exiting soon. How it ended, in words."""
        self._signal(signal.SIGKILL)
        now = time.monotonic()
        self.quick_exits = self.quick_exits + 1 if now - self._started_at < MIN_UPTIME_SECONDS else 0
        self.hopeless = self.quick_exits > MAX_QUICK_EXITS and self.process.returncode >= 0
        pause = min(2.0 ** (self.quick_exits - 2), LONGEST_PAUSE_SECONDS) if self.quick_exits > 1 else 0.0
        self.restart_at = now + pause
        log.error("%s ended with code %s, starting it again in %g s", self.name, self.process.returncode, pause)
        return f"ended with code {self.process.returncode}"

    def count_lost_children(self) -> int:
        """The number of the leader's child processes that ended since the last call; it restarts them itself. Linux
        only."""
        pid = self.process.pid
        try:
            child_pids = set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            return 0
        ended_pids, self._child_pids = self._child_pids - child_pids, child_pids
        return len(ended_pids)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class Supervisor:
    """Keeps children running until a signal. ``on_restart`` receives the name and the reason of each restart;
    ``on_interval`` is called every ``interval`` seconds."""

    def __init__(
        self,
        children: Sequence[Child],
        on_restart: Callable[[str, str], None],
        on_interval: Callable[[], None],
        interval: float,
    ) -> None:
        self.children = children
        self.on_restart = on_restart
        self.on_interval = on_interval
        self.interval = interval
        self._stopping = False

    def run(self) -> int:
        """Run until a signal; exit code 0 after SIGINT or SIGTERM, 1 if a child kept exiting soon after its start."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        due = time.monotonic() + self.interval
        hopeless: Child | None = None
        while not self._stopping and hopeless is None:
            for child in self.children:
                self._supervise(child)
            hopeless = next((child for child in self.children if child.hopeless), None)
            if time.monotonic() >= due:
                self.on_interval()
                due = time.monotonic() + self.interval
            time.sleep(0.2)
        if hopeless:
            log.error("%s ended %s times in a row soon after its start; giving up", hopeless.name, hopeless.quick_exits)
        for child in self.children:
            child.request_stop()
        for child in self.children:
            child.wait_for_end()
        return 1 if hopeless else 0

    def _supervise(self, child: Child) -> None:
        if child.alive:
            for _ in range(child.count_lost_children()):
                log.error("a process of the %s ended and is being replaced", child.name)
                self.on_restart(child.name, "one of its processes ended")
            return
        exit_reason = child.handle_exit() if child.restart_at is None else ""
        if child.restart_at is not None and time.monotonic() >= child.restart_at:
            child.start()
        if exit_reason:
            self.on_restart(child.name, exit_reason)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True


# Per process: one waits for the database or the network while the other works.
THREADS = 2
# Less than the supervisor's grace.
KILL_SECONDS = 5
# The default maximum, because each process takes up to 200 MB.
MAX_WEB_PROCESSES = 4


def web_processes(setting: int) -> int:
    """The number of web processes: ``CONCORD_WEB_PROCESSES``, or else one per available core, at most four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, setting or min(cores, MAX_WEB_PROCESSES))


@contextlib.contextmanager
def reserved_port(host: str, port: int) -> Iterator[None]:
    """Reserve a port for one ``serve``.

    The web server's processes share the TCP port (``SO_REUSEPORT``), so that the system accepts another server of the
    same user, and two that start together both find the port free. Only one can bind the UDP port of that number.

    :raises DomainError: ``port_in_use`` if it is reserved or another server listens on it."""
    with socket.socket(_family(host), socket.SOCK_DGRAM) as reservation:
        try:
            reservation.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise DomainError("port_in_use", port=port) from error
        if is_port_in_use(host, port):
            raise DomainError("port_in_use", port=port)
        yield


def is_port_in_use(host: str, port: int) -> bool:
    """Return whether another server listens on the port."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        # Connections that just ended do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


# Deadline of the first byte and of the headers of a request; ends an idle connection as well.
HEADER_SECONDS = 15
# Open connections of one process. Each takes a file and a few kilobytes of memory.
MAX_CONNECTIONS = 8192
# Connections that wait to be accepted; the system may lower it.
BACKLOG = 4096
# Open files of a process that are not connections.
RESERVED_FILES = 512


def connections_per_process() -> int:
    """Raise the limit of open files, which children inherit, and return how many connections it leaves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MAX_CONNECTIONS + RESERVED_FILES
    files = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - RESERVED_FILES, files // 2)


def web_command(host: str, port: int, count: int, application: str = "config.rsgi:application") -> list[str]:
    """The command that serves an application with ``count`` processes.

    A process that is still loading ignores the stop signal. The parent kills it after ``KILL_SECONDS``. The deadline of
    headers begins with the connection only if HTTP/2 is off; granian first waits for the bytes that tell which one it
    is, without a deadline."""
    address = ["--interface", "rsgi", "--host", host, "--port", str(port)]
    size = ["--workers", str(count), "--workers-kill-timeout", str(KILL_SECONDS), "--respawn-failed-workers"]
    protocol = ["--http", "1", "--no-ws", "--http1-header-read-timeout", str(HEADER_SECONDS * 1000)]
    connections = ["--backlog", str(BACKLOG), "--backpressure", str(connections_per_process())]
    options = [*address, *size, *protocol, *connections, "--log-level", "warning"]
    return [sys.executable, "-m", "granian", *options, application]
