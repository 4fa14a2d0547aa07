"""Containerfile and compose.yaml: steps, versions and commands agree with each other and with the product.

No container engine is needed. ``tests/test_wheel.py`` builds, installs and serves the wheel as the image does."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from config.environment import KNOWN

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
_CONTAINERFILE = re.sub(r"\\\n", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
#: Name and arguments of each step.
STEPS: list[tuple[str, str]] = re.findall(r"^([A-Z]+) +(.*)$", _CONTAINERFILE, re.MULTILINE)
VAR_DIRECTORY = "/var/lib/concord"
#: Of Python and the shell, not of Concord.
FOREIGN_VARIABLES = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def steps(name: str) -> list[str]:
    return [arguments for step, arguments in STEPS if step == name]


def client_package() -> str:
    (package,) = re.findall(r"postgresql-client-\d+", " ".join(steps("RUN")))
    return str(package)


def debian_release() -> str:
    """The release of Debian that all stages are based on."""
    (release,) = {image.split()[0].rpartition("-")[2] for image in steps("FROM")}
    return release


def test_client_programs_have_the_major_version_of_the_server() -> None:
    server_version = COMPOSE["services"]["database"]["image"].removeprefix("postgres:")
    assert client_package() == f"postgresql-client-{server_version}"


@pytest.mark.slow
def test_debian_release_of_the_image_has_the_client_package(tmp_path: Path) -> None:
    if not shutil.which("apt-get"):
        pytest.skip("apt-get is not installed")
    for folder in ("lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "status").touch()
    sources = tmp_path / "sources.list"
    sources.write_text(f"deb [trusted=yes] http://deb.debian.org/debian {debian_release()} main\n")
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": tmp_path / "lists",
        "Dir::State::Status": tmp_path / "status",
        "Dir::Cache": tmp_path / "cache",
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    updated = subprocess.run([*apt, "update"], capture_output=True, text=True, check=False)
    if updated.returncode:
        pytest.skip(f"the package lists cannot be read here: {updated.stderr.strip()[-300:]}")
    simulated = subprocess.run(
        [*apt, "--simulate", "--no-install-recommends", "install", client_package()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"Inst {client_package()} " in simulated.stdout, simulated.stderr


def test_every_shell_step_is_valid() -> None:
    for command in steps("RUN"):
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_image_installs_the_locked_packages_and_the_wheel() -> None:
    commands = [part.strip() for command in steps("RUN") for part in command.split("&&")]
    pip_options = [set(shlex.split(command)) for command in commands if "/pip install" in command]
    assert {"--require-hashes", "-r", "requirements.lock"} <= pip_options[0]
    assert {"--no-deps", "."} <= pip_options[1]
    assert (ROOT / "requirements.lock").is_file()
    # A virtual environment works only at the path it was made for.
    assert "COPY --from=built /concord /concord" in _CONTAINERFILE
    assert "python -m venv /concord" in commands
    ignored = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    assert {".env", ".git", ".venv", "var"} <= ignored


def test_state_is_in_one_volume_and_the_user_is_not_root() -> None:
    environment = dict(word.split("=", 1) for line in steps("ENV") for word in shlex.split(line))
    assert set(environment) - FOREIGN_VARIABLES <= set(KNOWN)
    assert environment["PATH"].startswith("/concord/bin:")
    assert {environment["CONCORD_VAR"], *steps("VOLUME"), steps("WORKDIR")[-1]} == {VAR_DIRECTORY}
    assert COMPOSE["x-concord"]["volumes"] == [f"state:{VAR_DIRECTORY}"]
    assert steps("USER") == ["concord"]
    (user,) = [command for command in steps("RUN") if command.startswith("useradd")]
    assert f"--home-dir {VAR_DIRECTORY} --create-home concord " in user


def test_started_commands_exist_and_accept_their_options() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert json.loads(steps("ENTRYPOINT")[0])[0] in scripts
    services = [service for service in COMPOSE["services"].values() if "image" in service and "command" in service]
    health_checks = [service.get("healthcheck", {}).get("test", []) for service in services]
    lines = [
        json.loads(steps("CMD")[0]),
        *(service["command"] for service in services),
        *(test[2:] for test in health_checks if test[:2] == ["CMD", "concord"]),
    ]
    assert {"serve", "migrate", "healthcheck"} == {name for name, *_ in lines}
    for name, *arguments in lines:
        command = load_command_class(get_commands()[name], name)
        command.create_parser("concord", name).parse_args(arguments)


def test_image_asks_readyz_as_the_page_says() -> None:
    program, option, code = json.loads(re.findall(r"CMD (\[.*)", steps("HEALTHCHECK")[0])[0])
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f'{program} {option} "{code}"' in page
    (port,) = steps("EXPOSE")
    assert f":{port}/readyz" in code
    assert int(port) == KNOWN["PORT"][1]
