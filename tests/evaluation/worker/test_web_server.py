"""How many processes the web server has: as the setting says, else one a core, within reason."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluation.worker.serving import MAX_WEB_PROCESSES, is_port_in_use, web_command, web_processes
from tests.faults.site import free_port


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 2), (4, 4), (64, MAX_WEB_PROCESSES)])
def test_without_a_setting_there_is_one_process_a_core_and_at_most_four(
    cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert web_processes(0) == expected
    assert web_processes(7) == 7


def test_the_server_is_started_with_so_many() -> None:
    command = web_command("127.0.0.1", 8001, 3)
    assert command[command.index("--workers") + 1] == "3"
    assert command[-1] == "config.rsgi:application"


def test_without_debug_the_files_of_the_pages_are_collected_first_or_it_is_said_why_not(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(name: str, command: list[str]) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr("evaluation.management.commands.serve.Child", started)
    settings.STATIC_ROOT, settings.DEBUG = tmp_path / "static", True
    with pytest.raises(RuntimeError, match="web server"):
        call_command("serve", port=free_port())
    assert not settings.STATIC_ROOT.exists()
    settings.DEBUG = False
    with pytest.raises(RuntimeError, match="web server"):
        call_command("serve", port=free_port())
    assert list(settings.STATIC_ROOT.glob("review*.css"))
    settings.STATIC_ROOT = tmp_path / "file"
    settings.STATIC_ROOT.write_text("")
    with pytest.raises(CommandError, match="cannot be collected in"):
        call_command("serve", port=free_port())


@pytest.mark.django_db
def test_a_host_for_workers_alone_serves_no_pages(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def supervised(children: list[str], *_: Any) -> Any:
        raise RuntimeError(", ".join(children))

    monkeypatch.setattr("evaluation.management.commands.serve.Supervisor", supervised)
    monkeypatch.setattr("evaluation.management.commands.serve.Child", lambda name, command: name)
    monkeypatch.setattr("evaluation.management.commands.serve.Watchdog", lambda cluster: Mock())
    for parts, named in (
        ({"no_web": True}, "cluster"),
        ({"no_worker": True}, "web server"),
        ({}, "web server, cluster"),
    ):
        settings.CONCORD_DISPATCHER = "django_q"
        with pytest.raises(RuntimeError, match=f"^{named}$"):
            call_command("serve", port=free_port(), **parts)
    settings.CONCORD_DISPATCHER = "local"
    with pytest.raises(CommandError, match="No worker to start"):
        call_command("serve", no_web=True)


def test_a_port_that_another_server_shares_among_its_processes_is_taken_and_a_second_server_says_so() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert is_port_in_use("127.0.0.1", port)
        with pytest.raises(CommandError, match=f"Port {port} is in use"):
            call_command("serve", port=port)
        with pytest.raises(CommandError, match=f"Port {port} is in use"):
            call_command("demo", serve=True, port=port)  # before it touches the database, which this test may not use
    assert not is_port_in_use("127.0.0.1", port)
