"""Number of web server processes: the setting, or one per core up to a limit."""

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
def test_default_is_one_process_per_core_and_at_most_four(
    cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert web_processes(0) == expected
    assert web_processes(7) == 7


def test_server_command_has_the_number_of_workers() -> None:
    command = web_command("127.0.0.1", 8001, 3)
    assert command[command.index("--workers") + 1] == "3"
    assert command[-1] == "config.rsgi:application"


@pytest.mark.django_db
def test_serve_collects_static_files_unless_it_serves_them_from_their_folders(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_on_start(name: str, command: list[str]) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr("evaluation.management.commands.serve.Child", raise_on_start)
    settings.STATIC_ROOT, settings.WHITENOISE_USE_FINDERS = tmp_path / "static", True
    with pytest.raises(RuntimeError, match="web server"):
        call_command("serve", port=free_port())
    assert not settings.STATIC_ROOT.exists()
    settings.WHITENOISE_USE_FINDERS = False
    with pytest.raises(RuntimeError, match="web server"):
        call_command("serve", port=free_port())
    assert list(settings.STATIC_ROOT.glob("review*.css"))
    settings.STATIC_ROOT = tmp_path / "file"
    settings.STATIC_ROOT.write_text("")
    with pytest.raises(CommandError, match="Cannot collect static files in"):
        call_command("serve", port=free_port())


@pytest.mark.django_db
def test_worker_only_host_starts_no_web_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_on_supervise(children: list[str], *_: Any) -> Any:
        raise RuntimeError(", ".join(children))

    monkeypatch.setattr("evaluation.management.commands.serve.Supervisor", raise_on_supervise)
    monkeypatch.setattr("evaluation.management.commands.serve.Child", lambda name, command: name)
    monkeypatch.setattr("evaluation.management.commands.serve.Watchdog", lambda cluster: Mock())
    for parts, expected in (
        ({"no_web": True}, "cluster"),
        ({"no_worker": True}, "web server"),
        ({}, "web server, cluster"),
    ):
        settings.CONCORD_DISPATCHER = "django_q"
        with pytest.raises(RuntimeError, match=f"^{expected}$"):
            call_command("serve", port=free_port(), **parts)
    settings.CONCORD_DISPATCHER = "local"
    with pytest.raises(CommandError, match="No worker to start"):
        call_command("serve", no_web=True)


def test_port_in_use_is_reported() -> None:
    with socket.socket() as other_socket:
        other_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other_socket.bind(("127.0.0.1", 0))
        other_socket.listen()
        port = other_socket.getsockname()[1]
        assert is_port_in_use("127.0.0.1", port)
        with pytest.raises(CommandError, match=f"Port {port} is in use"):
            call_command("serve", port=port)
        with pytest.raises(CommandError, match=f"Port {port} is in use"):
            call_command("demo", serve=True, port=port)  # before it touches the database, which this test may not use
    assert not is_port_in_use("127.0.0.1", port)
