"""Calls of own code in a child process, so that an error, a crash or an endless loop ends one result and nothing else.

The functions of a package are pure: the child keeps nothing between calls. A judge function is a generator, which the
child runs again with all replies so far."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from functools import cache
from multiprocessing.connection import Connection, Pipe
from threading import Lock
from typing import Any, Self

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import JudgeCase, Judging, ParsedReply
from evaluation.metric_packages import loading
from evaluation.metric_packages.results import decode_request, decode_result
from evaluation.network.outcomes import replace_unstorable

#: Limit of one call: a rule metric for one answer. With the time of a task and that of loading, it stays below the
#: limit at which the queue ends a worker.
CALL_SECONDS = 30.0
#: Limit of one step of a judge function, which only builds requests and reads replies while calls are in flight.
STEP_SECONDS = 10.0
LOAD_SECONDS = 30.0
#: After so many calls in a row that exceeded it, a metric or family is not called again by this process.
MAX_TIMEOUTS = 3
# In which the child ends itself after the limit; then it is killed.
_GRACE_SECONDS = 2.0
#: Reason codes of failed results.
TIMEOUT, DIED, NOT_LOADED = "metric_timeout", "metric_died", "metric_not_loaded"


class CallFailed(Exception):
    """A call without a result; ``reason`` is that of the failed results."""

    def __init__(self, code: str, detail: str) -> None:
        self.reason = replace_unstorable(f"{code}: {detail}")
        super().__init__(self.reason)


class PackageProcess:
    """Child process with the registered packages, started by the first call and again after it ended. One call at a
    time, of at most ``seconds``."""

    def __init__(self, seconds: float = CALL_SECONDS) -> None:
        self._seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._timeouts: Counter[str] = Counter()
        self._fault = ""
        self._lock = Lock()
        self.is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, also from another thread during a call, which then fails."""
        self.is_closed = True
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def compute(self, name: str, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
        """Compute a rule metric; a failed result with the reason if the code has no valid result."""
        try:
            return decode_result(self._call("rule", name, question, answer, settings)["result"])
        except CallFailed as failure:
            return Result.failed(failure.reason)

    def judge(self, family: str, case: JudgeCase) -> Judging:
        """Judge a case by the function of a family; all results fail with the reason if its code does."""
        replies: list[ParsedReply] = []
        try:
            while "request" in (step := self._call("judge", family, case, replies)):
                replies.append((yield decode_request(step["request"])))
        except CallFailed as failure:
            return {name: Result.failed(failure.reason) for name in case.metrics}
        return {name: decode_result(text) for name, text in step["results"].items()}

    def _call(self, kind: str, name: str, *arguments: object) -> dict[str, Any]:
        """Make one call.

        :raises CallFailed: if it has no result."""
        if self._timeouts[name] >= MAX_TIMEOUTS:
            raise CallFailed(TIMEOUT, f"{name}, {MAX_TIMEOUTS} × {self._seconds:g} s; not called again")
        with self._lock:
            if self._connection is None:
                self._load()
            content = self._exchange(name, self._seconds, (kind, name, self._seconds, *arguments))
        if "failure" in content:
            raise CallFailed(*content["failure"])
        return content

    def _load(self) -> None:
        """Start the child and wait until it has loaded the packages. They are not loaded again after a fault.

        :raises CallFailed: if they cannot be loaded."""
        if self._fault or self.is_closed:
            raise CallFailed(NOT_LOADED, self._fault)
        self._start()
        try:
            self._fault = self._exchange("the packages", LOAD_SECONDS).get("fault", "")
        except CallFailed as failure:
            self._fault = failure.reason
        if self._fault:
            self._end()
            raise CallFailed(NOT_LOADED, self._fault)

    def _exchange(self, name: str, seconds: float, call: tuple[object, ...] = ()) -> dict[str, Any]:
        """Send a call, if there is one, and receive the reply.

        :raises CallFailed: if the child exceeded the limit or ended. It is killed then."""
        deadline = time.monotonic() + seconds
        try:
            if self._connection is not None:
                if call:
                    self._connection.send(call)
                if self._connection.poll(seconds + _GRACE_SECONDS):
                    content: dict[str, Any] = json.loads(self._connection.recv_bytes())
                    self._timeouts[name] = 0
                    return content
        # The child ended, after the limit by itself.
        except (EOFError, OSError):
            pass
        exit_code = self._end()
        if time.monotonic() < deadline:
            raise CallFailed(DIED, f"{name}, exit code {exit_code}")
        self._timeouts[name] += 1
        raise CallFailed(TIMEOUT, f"{name}, {seconds:g} s")

    def _start(self) -> None:
        """Start the child with the module path of this process. Standard output belongs to commands, so the child
        writes to standard error."""
        self._connection, connection = Pipe()
        # A child that does not read must not hold a call that is larger than the socket's buffer.
        with socket.socket(fileno=os.dup(self._connection.fileno())) as parent_end:
            parent_end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", math.ceil(self._seconds), 0))
        sources = [[*astuple(package.source), package.stamp] for package in loading.PACKAGES]
        arguments = [str(connection.fileno()), str(LOAD_SECONDS), json.dumps(sources)]
        self._child = subprocess.Popen(  # noqa: S603 -- our own module
            [sys.executable, "-P", "-m", __package__, *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            pass_fds=[connection.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,
        )
        connection.close()

    def _end(self) -> int | None:
        """Kill the child; its exit code."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._child is None:
            return None
        try:
            self._child.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            self._child.kill()
        return self._child.wait()


@cache
def _shared_process(pid: int) -> PackageProcess:
    return PackageProcess(STEP_SECONDS)


def judge_isolated(family: str) -> Callable[[JudgeCase], Judging]:
    """Judge function that calls that of a family in the child process of this one."""

    def judge(case: JudgeCase) -> Judging:
        return (yield from _shared_process(os.getpid()).judge(family, case))

    return judge
