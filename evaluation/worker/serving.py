"""What ``serve`` starts and keeps up: the web server, of several processes because Python works on one core at a time,
and the cluster. The parent starts both, starts again what ends, ends a wedged cluster, and at the end both.

django-q2 can wedge for good when a worker is killed while idle, and then does not even end on SIGTERM; a watchdog
outside the cluster is the only cure. Each child leads a session of its own, so that its whole group can be killed,
and dies with the parent where the system supports it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

log = logging.getLogger("concord.serve")
PATIENCE_SECONDS = 2.0  # in which a worker may finish what it has begun; what it has not is done again later
GRACE_SECONDS = 8.0  # with the patience
SOUND_SECONDS = 5.0  # what lived so long did not fail at its start
LONGEST_PAUSE_SECONDS = 8.0  # before something is started again
MOST_ENDS = 10  # in a row soon after the start; then whoever started the supervisor has to see to it
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Ask Linux to send SIGTERM to the child when its parent dies, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A process group started from one command. ``quick_ends`` counts those in a row that came soon after a start;
    ``back_at`` is when it is started again, none while it is not waiting for that. ``hopeless`` is what keeps ending by
    itself; what others kill (the system short of memory) is started again without end."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)
        self.quick_ends = 0
        self.hopeless = False
        self.start()

    def start(self) -> None:
        """Start the command."""
        self.back_at: float | None = None
        self._started_at = time.monotonic()
        self._below: set[str] = set()
        self.process = subprocess.Popen(self.command, start_new_session=True, preexec_fn=_die_with_parent)  # noqa: S603 -- our own commands

    @property
    def alive(self) -> bool:
        """Whether the leader of the group runs."""
        return self.process.poll() is None

    def ask(self) -> None:
        """Ask the group to end, without waiting for it. By SIGINT, which django-q's processes leave to their leader:
        SIGTERM kills its sentinel while that waits for the leader's word, and the leader then waits for ever."""
        self._signal(signal.SIGINT)

    def end(self, patience: float = PATIENCE_SECONDS, grace: float = GRACE_SECONDS) -> None:
        """Wait for a group that was asked: SIGTERM after the patience, SIGKILL to what is left after the grace."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGTERM)
        try:
            self.process.wait(grace - patience)
        except subprocess.TimeoutExpired:
            log.warning("%s does not end, killing it", self.name)
        # Members may outlive their leader: a killed cluster leaves workers that go on executing.
        self._signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """End the group and start the command anew."""
        self.ask()
        self.end()
        self.start()

    def bury(self) -> str:
        """After the leader's end: end what is left of the group, which must not go on working, and say when to start
        again: at once, then after 1, 2, 4, ... seconds while it keeps ending soon. How it ended."""
        self._signal(signal.SIGKILL)
        now = time.monotonic()
        self.quick_ends = self.quick_ends + 1 if now - self._started_at < SOUND_SECONDS else 0
        self.hopeless = self.quick_ends > MOST_ENDS and self.process.returncode >= 0
        pause = min(2.0 ** (self.quick_ends - 2), LONGEST_PAUSE_SECONDS) if self.quick_ends > 1 else 0.0
        self.back_at = now + pause
        log.error("%s ended with code %s, starting it again in %g s", self.name, self.process.returncode, pause)
        return f"ended with code {self.process.returncode}"

    def lost(self) -> int:
        """How many processes that the leader had started have ended since the last look; it starts them again by
        itself. Known on Linux only."""
        pid = self.process.pid
        try:
            below = set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            return 0
        gone, self._below = self._below - below, below
        return len(gone)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class Supervisor:
    """Keeps children up until a signal. ``told`` hears of each that was started again, by name and with how it had
    ended; ``watch`` is called every ``interval`` seconds."""

    def __init__(
        self, children: Sequence[Child], told: Callable[[str, str], None], watch: Callable[[], None], interval: float
    ) -> None:
        self.children = children
        self.told = told
        self.watch = watch
        self.interval = interval
        self._stopping = False

    def run(self) -> int:
        """Exit code: 0 after SIGINT or SIGTERM, 1 when a child kept ending soon after its start."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        due = time.monotonic() + self.interval
        hopeless: Child | None = None
        while not self._stopping and hopeless is None:
            for child in self.children:
                self._see_to(child)
            hopeless = next((child for child in self.children if child.hopeless), None)
            if time.monotonic() >= due:
                self.watch()
                due = time.monotonic() + self.interval
            time.sleep(0.2)
        if hopeless:
            log.error("%s ended %s times in a row soon after its start; giving up", hopeless.name, hopeless.quick_ends)
        for child in self.children:
            child.ask()
        for child in self.children:
            child.end()
        return 1 if hopeless else 0

    def _see_to(self, child: Child) -> None:
        if child.alive:
            for _ in range(child.lost()):
                log.error("a process of the %s ended, it starts another one", child.name)
                self.told(child.name, "one of its processes ended")
            return
        ended = child.bury() if child.back_at is None else ""
        if child.back_at is not None and time.monotonic() >= child.back_at:
            child.start()
        if ended:
            self.told(child.name, ended)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True


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


def web_command(host: str, port: int, count: int, application: str = "config.rsgi:application") -> list[str]:
    """The command that serves an application by so many processes.

    A process that is still loading the application loses a signal (until then it has its parent's handler, which asks
    only the parent to stop), and the parent would wait for it without end: after ``KILL_SECONDS`` it kills it.
    """
    address = ["--interface", "rsgi", "--host", host, "--port", str(port)]
    size = ["--workers", str(count), "--workers-kill-timeout", str(KILL_SECONDS), "--respawn-failed-workers"]
    return [sys.executable, "-m", "granian", *address, *size, "--log-level", "warning", application]
