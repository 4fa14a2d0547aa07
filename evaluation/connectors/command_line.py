"""System that is a program: run per question, without a shell, with limits on time, memory and output.

Settings select a program by name; the operator defines the programs and their arguments. Slot values are always single
arguments."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from evaluation.connectors.mapping import ReplyMapping, search_path
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    OperatorPolicy,
    Settings,
    SystemCall,
    SystemClient,
    SystemReply,
    failed_reply,
)
from evaluation.connectors.slots import SLOT, slot_values
from evaluation.core.errors import DomainError
from evaluation.network.outcomes import Outcome, excerpt, read_json, replace_unstorable

OUTPUT = "output"
_INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
_EXIT_SECONDS = 5.0
_ERROR_BYTES = 4_000
# Bytes; the kernel limit is 128 KiB.
_MAX_ARGUMENT_BYTES = 100_000
# The process sets its limits before it becomes the program, so that child processes inherit them.
_LAUNCH = (
    "import os, resource, sys; memory, size = map(int, sys.argv[1:3]);"
    "resource.setrlimit(resource.RLIMIT_AS, (memory, memory));"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size));"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
    "os.execvp(sys.argv[3], sys.argv[3:])"
)


class CommandSettings(Settings):
    """Program of the operator, and the mapping of its JSON output."""

    command: str = Field(min_length=1, max_length=100, description="Name of a program in CONCORD_SYSTEM_COMMANDS.")
    reply: ReplyMapping = Field(
        default_factory=lambda: ReplyMapping(contexts="sources", confidence="confidence", metadata="metadata"),
        description="JMESPath of each part of the answer.",
    )
    most_bytes: int = Field(default=4_000_000, ge=1_000, le=64_000_000, description="Maximum output size in bytes.")
    memory_megabytes: int = Field(default=2_000, ge=64, le=64_000, description="Memory limit of the program in MB.")


class CommandSystem(SystemClient):
    """Client that runs a program for each question."""

    def __init__(self, settings: CommandSettings, policy: OperatorPolicy) -> None:
        if settings.command not in policy.commands:
            raise DomainError("command_not_allowed", command=settings.command)
        self._template: Sequence[str] = policy.commands[settings.command]
        self._settings = settings
        self.deadline = settings.timeout_seconds
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        self._environment = {**inherited, **policy.variables, "PYTHONIOENCODING": "utf-8"}

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        return {"arguments": self._arguments(call, "{output}")}

    async def ask(self, call: SystemCall) -> SystemReply:
        """Run the program and read its output or the file that it writes."""
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            file = Path(folder) / "reply.json"
            status, out, error = await self._run(self._arguments(call, str(file)), folder)
            writes_file = any(f"{{{OUTPUT}}}" in part for part in self._template)
            if status == 0 and writes_file:
                out = _read_output_file(file, self._settings.most_bytes)
        raw = excerpt(out)
        if status != 0:
            detail = f"status {status} {replace_unstorable(error.decode('utf-8', 'replace')).strip()[-200:]}".strip()
            return failed_reply(Outcome.SERVER_ERROR, "program_failed", detail, raw=raw)
        value = read_json(out)
        if value is None:
            return failed_reply(Outcome.WRONG_CONTENT, detail="the output of the program is not valid JSON", raw=raw)
        try:
            content = self._settings.reply.read(lambda expression: search_path(expression, value), call)
        except AskFailed as failure:
            return failed_reply(failure.outcome, failure.code, failure.detail, raw=raw)
        return SystemReply(Outcome.OK, content=content, raw=raw)

    def _arguments(self, call: SystemCall, output: str) -> list[str]:
        arguments = {name: _as_argument(value) for name, value in slot_values(call).items()} | {OUTPUT: output}
        return [_fill_slots(part, arguments) for part in self._template]

    async def _run(self, arguments: Sequence[str], folder: str) -> tuple[int, bytes, bytes]:
        """Exit status, output and the end of standard error. The process group is killed on time-out or too much
        output."""
        max_bytes = self._settings.most_bytes
        limits = [str(self._settings.memory_megabytes * 1_000_000), str(max_bytes + 1)]
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-I", "-S", "-c", _LAUNCH, *limits, *arguments],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=self._environment,
            start_new_session=True,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                out = tasks.create_task(_read_limited(process.stdout, max_bytes))
                error = tasks.create_task(_tail(process.stderr))
            return await process.wait(), out.result(), error.result()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # A process that left the program's group may hold its pipes.
            with suppress(TimeoutError):
                await asyncio.wait_for(_wait_for_exit(process), _EXIT_SECONDS)


async def _wait_for_exit(process: asyncio.subprocess.Process) -> None:
    """Wait for a killed program. asyncio reports the exit only after both pipes are drained."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(65_536):
            pass
    await process.wait()


async def _read_limited(stream: asyncio.StreamReader | None, max_bytes: int) -> bytes:
    buffer = bytearray()
    while stream is not None and (chunk := await stream.read(65_536)):
        buffer += chunk
        if len(buffer) > max_bytes:
            raise AskFailed("too_large", detail=f"more than {max_bytes} bytes", outcome=Outcome.TOO_LARGE)
    return bytes(buffer)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    tail = b""
    while stream is not None and (chunk := await stream.read(65_536)):
        tail = (tail + chunk)[-_ERROR_BYTES:]
    return tail


def _read_output_file(file: Path, max_bytes: int) -> bytes:
    """Content of the output file; links are refused.

    :raises AskFailed: if the file is missing or too large."""
    if file.is_symlink() or not file.is_file():
        raise AskFailed("wrong_content", detail="the program did not write its output file")
    if file.stat().st_size > max_bytes:
        raise AskFailed("too_large", detail=f"more than {max_bytes} bytes", outcome=Outcome.TOO_LARGE)
    return file.read_bytes()


def _fill_slots(part: str, arguments: Mapping[str, str]) -> str:
    return SLOT.sub(lambda match: arguments.get(match[1], match[0]), part)


def _as_argument(value: Any) -> str:
    """Value as an argument that no program reads as an option: a space precedes a leading dash."""
    text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in value) if isinstance(value, list) else str(value)
    text = re.sub("[\0\ud800-\udfff]", "\ufffd", text)
    if len(text.encode()) > _MAX_ARGUMENT_BYTES:
        raise AskFailed("bad_request", detail="the question is too long for an argument", outcome=Outcome.BAD_REQUEST)
    return f" {text}" if text.startswith("-") else text


COMMAND_LINE = Connector("command", CommandSettings, CommandSystem)
