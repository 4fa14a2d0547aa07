"""A system that is a program: run without a shell, for each question, with limits on time, memory and output.

Only programs that the operator has named can be run, with the arguments he wrote; a system's settings choose one by its
name. Values in the place of slots are single arguments, whatever they hold.
"""

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

from evaluation.connectors.mapping import ReplyMapping, searched
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    Settings,
    Surroundings,
    SystemCall,
    SystemClient,
    SystemReply,
    failed,
)
from evaluation.connectors.slots import SLOT, values
from evaluation.core.errors import Refused
from evaluation.network.outcomes import Outcome, excerpt, read_json, storable

OUTPUT = "output"
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
_ENDING_SECONDS = 5.0
_ERROR_BYTES = 4_000
_LONGEST_ARGUMENT = 100_000  # bytes; the kernel takes 128 KiB
# Limits are set by the process itself before it becomes the program, so that what it starts has them too.
_LAUNCH = (
    "import os, resource, sys; memory, size = map(int, sys.argv[1:3]);"
    "resource.setrlimit(resource.RLIMIT_AS, (memory, memory));"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size));"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
    "os.execvp(sys.argv[3], sys.argv[3:])"
)


class CommandSettings(Settings):
    """Which of the operator's programs is run, and how its JSON is read."""

    command: str = Field(min_length=1, max_length=100, description="Name of a program in CONCORD_SYSTEM_COMMANDS.")
    reply: ReplyMapping = Field(
        default_factory=lambda: ReplyMapping(contexts="sources", confidence="confidence", metadata="metadata"),
        description="Where the parts of the answer stand.",
    )
    most_bytes: int = Field(default=4_000_000, ge=1_000, le=64_000_000, description="Longest output that is read.")
    memory_megabytes: int = Field(default=2_000, ge=64, le=64_000, description="Address space of the program.")


class CommandSystem(SystemClient):
    """Runs a program for each question."""

    def __init__(self, settings: CommandSettings, around: Surroundings) -> None:
        if settings.command not in around.commands:
            raise Refused("command_not_allowed", command=settings.command)
        self._template: Sequence[str] = around.commands[settings.command]
        self._settings = settings
        self.deadline = settings.timeout_seconds
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environment = {**passed, **around.variables, "PYTHONIOENCODING": "utf-8"}

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """The arguments."""
        return {"arguments": self._arguments(call, "{output}")}

    async def ask(self, call: SystemCall) -> SystemReply:
        """Run the program, and read what it prints or writes."""
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            file = Path(folder) / "reply.json"
            status, out, error = await self._run(self._arguments(call, str(file)), folder)
            writes = any(f"{{{OUTPUT}}}" in part for part in self._template)
            if status == 0 and writes:
                out = _contents(file, self._settings.most_bytes)
        raw = excerpt(out)
        if status != 0:
            detail = f"status {status} {storable(error.decode('utf-8', 'replace')).strip()[-200:]}".strip()
            return failed(Outcome.SERVER_ERROR, "program_failed", detail, raw=raw)
        value = read_json(out)
        if value is None:
            return failed(Outcome.WRONG_CONTENT, detail="the program wrote no JSON", raw=raw)
        try:
            told = self._settings.reply.read(lambda expression: searched(expression, value), call)
        except AskFailed as refused:
            return failed(refused.outcome, refused.code, refused.detail, raw=raw)
        return SystemReply(Outcome.OK, told=told, raw=raw)

    def _arguments(self, call: SystemCall, output: str) -> list[str]:
        told = {name: _argument(value) for name, value in values(call).items()} | {OUTPUT: output}
        return [_filled(part, told) for part in self._template]

    async def _run(self, arguments: Sequence[str], folder: str) -> tuple[int, bytes, bytes]:
        """Status, output and the end of what was said on standard error. The program and all it started are killed
        where it takes too long or writes too much."""
        most = self._settings.most_bytes
        limits = [str(self._settings.memory_megabytes * 1_000_000), str(most + 1)]
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
            async with asyncio.TaskGroup() as both:
                out = both.create_task(_read(process.stdout, most))
                error = both.create_task(_tail(process.stderr))
            return await process.wait(), out.result(), error.result()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):  # something that left the program's group may hold its pipes
                await asyncio.wait_for(_ended(process), _ENDING_SECONDS)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """The end of a program that was killed. asyncio notices it only once both pipes were read to their ends, and stops
    reading what nobody takes."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(65_536):
            pass
    await process.wait()


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    found = bytearray()
    while stream is not None and (chunk := await stream.read(65_536)):
        found += chunk
        if len(found) > most:
            raise AskFailed("too_large", detail=f"more than {most} bytes", outcome=Outcome.TOO_LARGE)
    return bytes(found)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    found = b""
    while stream is not None and (chunk := await stream.read(65_536)):
        found = (found + chunk)[-_ERROR_BYTES:]
    return found


def _contents(file: Path, most: int) -> bytes:
    """What the program wrote; a link leads nowhere.

    :raises AskFailed: where there is no such file, or a larger one.
    """
    if file.is_symlink() or not file.is_file():
        raise AskFailed("wrong_content", detail="the program wrote no file")
    if file.stat().st_size > most:
        raise AskFailed("too_large", detail=f"more than {most} bytes", outcome=Outcome.TOO_LARGE)
    return file.read_bytes()


def _filled(part: str, told: Mapping[str, str]) -> str:
    return SLOT.sub(lambda match: told.get(match[1], match[0]), part)


def _argument(value: Any) -> str:
    """The value as an argument that no program takes for an option: one that begins with a dash gets a space before."""
    text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in value) if isinstance(value, list) else str(value)
    text = re.sub("[\0\ud800-\udfff]", "\ufffd", text)
    if len(text.encode()) > _LONGEST_ARGUMENT:
        raise AskFailed("bad_request", detail="the question is too long for an argument", outcome=Outcome.BAD_REQUEST)
    return f" {text}" if text.startswith("-") else text


COMMAND_LINE = Connector("command", CommandSettings, CommandSystem)
