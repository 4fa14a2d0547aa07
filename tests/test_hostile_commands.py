"""Commands answer hostile arguments, files and environments with a sentence. Commands and options are discovered."""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from itertools import chain
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandParser
from django.db import DatabaseError, OperationalError, ProgrammingError, connection, connections, transaction

from evaluation.management.command_line import run_command
from tests.examples import first_fast
from tests.factories import make_queue, make_scored_run
from tests.faults.test_unwritable import MORTAL

ROOT = Path(__file__).resolve().parents[1]
OWN_APPS = {"contrib", "evaluation", "review"}
#: They are quick, and take a number, an amount and a file.
FAST_COMMANDS = ["resume_run", "restore"]
COMMANDS = [
    *FAST_COMMANDS,
    *sorted({name for name, app in get_commands().items() if app.partition(".")[0] in OWN_APPS} - set(FAST_COMMANDS)),
]
#: Options without which a command does not end.
ENDING = {"work": ["--once"]}
VALUES = (
    *("", " ", "nan", "inf", "-inf", "-1", "0", "1.5", "1e400", "1e-400", "1_0", "0x10", "٣"),
    *("2147483648", "9223372036854775808", "9" * 30, "None", "true", "2026-13-45T99:99", "0001-01-01T00:00"),
    *("'; DROP TABLE x; --", "%s%(x)s{0}", "[", "@", "x@-1", f"x@{'9' * 30}", "*", "a=b=c", "../../x", "--", "-x"),
    *("\n\r\t", "\u202e", "\udcff", "😀" * 300, "a" * 70_000),
    *("/", ".", "missing/folder/x.json", "/proc/self/mem", f"{'x' * 300}.json"),
)
FILES = {
    "empty.json": b"",
    "binary.csv": bytes(range(256)) * 40,
    "half.xlsx": b"PK\x03\x04 no archive",
    "deep.json": b"[" * 100_000,
    "deep.yaml": b"[" * 5_000,
    "aliases.yaml": b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
    "latin.csv": "question,answer\nWo?,Grün".encode("latin-1"),
    "wide.csv": "질문,답변\n".encode("utf-16"),
    "surrogate.jsonl": b'{"question": "\\ud800", "answer": NaN}\n',
}


def subcommands(
    parser: argparse.ArgumentParser, line: list[str]
) -> Iterator[tuple[argparse.ArgumentParser, list[str]]]:
    """The parser of a command, or those of its subcommands, with the words that lead to it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                yield from subcommands(subparser, [*line, name])
            return
    yield parser, line


def usual_lines(name: str, run: int) -> Iterator[tuple[list[str], list[argparse.Action], dict[str, list[str]]]]:
    """For each form of a command: its beginning, its arguments, and the words of those that it needs."""
    parser = CommandParser(prog=name)
    load_command_class(get_commands()[name], name).add_arguments(parser)
    for subparser, line in subcommands(parser, [name, *ENDING.get(name, [])]):
        actions = [action for action in subparser._actions if action.dest != "help"]
        needed = [action for action in actions if action.required or not action.option_strings]
        yield line, actions, {action.dest: written(action, sample_value(action, run)) for action in needed}


def hostile_lines(name: str, run: int) -> Iterator[list[str]]:
    """For each argument of a command, a line with each hostile value of it."""
    for line, actions, needed in usual_lines(name, run):
        for action in actions:
            if action.nargs != 0:
                for value in (*VALUES, *FILES, "archive.zip", "folder", "device"):
                    yield [*line, *chain(*(needed | {action.dest: written(action, value)}).values())]


def written(action: argparse.Action, value: str) -> list[str]:
    """The words of an argument. An option stands in one word, so that its value may begin with a dash."""
    return [f"{action.option_strings[-1]}={value}"] if action.option_strings else [value]


def sample_value(action: argparse.Action, run: int) -> str:
    if action.choices:
        return str(next(iter(action.choices)))
    return str(run) if action.type is int else "sample.jsonl" if action.type is Path else "sample"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with hostile files, deep enough for paths that lead out of it."""
    folder = tmp_path / "outer" / "inner"
    (folder / "folder").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "sample.jsonl").write_text('{"id": "q1", "question": "Why?", "answer": "So."}\n')
    # A command that replaces what it should write to takes the place of this link alone.
    (folder / "device").symlink_to("/dev/null")
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("manifest.json", "[]")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the test's connection, have ``serve`` end at once, and ``backup`` find a full disk, because SQLite copies no
    database in memory within a transaction."""
    monkeypatch.setattr(connections, "close_all", lambda: None)
    monkeypatch.setattr("evaluation.worker.serving.Child.start", lambda child: None)
    monkeypatch.setattr("evaluation.worker.serving.Supervisor.run", lambda supervisor: 0)
    monkeypatch.setattr("evaluation.worker.backups._copy_sqlite", raise_disk_full)


def raise_disk_full(_: Path) -> None:
    raise sqlite3.OperationalError("database or disk is full")


@pytest.fixture
def problem_of(
    folder: Path,
    no_processes: None,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., str]:
    """Run a command line, take back what it wrote, and return the traceback that a person would see; else nothing."""

    def run_line(line: list[str], failure: DatabaseError | None = None) -> str:
        def fail(*_: object) -> None:
            raise failure or AssertionError

        problem = ""
        caplog.clear()
        monkeypatch.setattr(sys, "argv", ["manage.py", *line])
        with transaction.atomic():
            try:
                with connection.execute_wrapper(fail) if failure else nullcontext():
                    run_command()
            except SystemExit:
                pass
            except Exception as error:  # noqa: BLE001 -- any of them would be a traceback
                problem = repr(error)
            transaction.set_rollback(True)
        output = "".join(capsys.readouterr())
        if "Traceback" in output + caplog.text:
            problem = output[-300:] + caplog.text[-300:]
        return problem and f"{' '.join(repr(word[:60]) for word in line)}: {problem}"

    return run_line


@pytest.mark.django_db
@pytest.mark.parametrize("name", first_fast(COMMANDS, len(FAST_COMMANDS)))
def test_hostile_arguments_end_with_a_sentence(name: str, problem_of: Callable[..., str]) -> None:
    make_queue(run := make_scored_run())
    lines = hostile_lines(name, run.pk)
    problems = [problem for line in lines if (problem := problem_of(line))]
    assert not problems, "\n".join(problems)


@pytest.mark.django_db
@pytest.mark.parametrize("name", first_fast(COMMANDS, len(FAST_COMMANDS)))
def test_database_errors_end_with_a_sentence(name: str, problem_of: Callable[..., str]) -> None:
    errors = (OperationalError("attempt to write a readonly database"), ProgrammingError("no such column"))
    make_queue(run := make_scored_run())
    lines = [[*line, *chain(*needed.values())] for line, _, needed in usual_lines(name, run.pk)]
    problems = [problem for line in lines for error in errors if (problem := problem_of(line, error))]
    assert not problems, "\n".join(problems)


EVALUATE = ("evaluate", "--questions", "x", "--system", "y", "--no-judge")
POSTGRES_AWAY = "postgres://nobody@127.0.0.1:9/nothing"
#: Variables and a command; names in braces are folders and files of the test.
ENVIRONMENTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no signing key": ({"DEBUG": "0", "SECRET_KEY": ""}, EVALUATE),
    "unknown time zone": ({"TIME_ZONE": "Nowhere"}, EVALUATE),
    "unknown settings module": ({"DJANGO_SETTINGS_MODULE": "nowhere.settings"}, EVALUATE),
    "database is a folder": ({"DATABASE_URL": "sqlite:///{folder}"}, EVALUATE),
    "database is missing": ({"DATABASE_URL": "sqlite:///{folder}/missing.sqlite3"}, EVALUATE),
    "database is a text": ({"DATABASE_URL": "sqlite:///{folder}/sample.jsonl"}, EVALUATE),
    "database is empty": ({"DATABASE_URL": "sqlite:///{folder}/empty.json"}, EVALUATE),
    "database of another program": ({"DATABASE_URL": "sqlite:///{folder}/other.sqlite3"}, EVALUATE),
    "database in a folder that cannot be made": ({"DATABASE_URL": "sqlite:////proc/x/y.sqlite3"}, EVALUATE),
    "database of no scheme": ({"DATABASE_URL": "nonsense"}, EVALUATE),
    "database with a port of letters": ({"DATABASE_URL": "postgres://a@b:port/c"}, EVALUATE),
    "database away": ({"DATABASE_URL": POSTGRES_AWAY}, EVALUATE),
    "database away, other command": ({"DATABASE_URL": POSTGRES_AWAY}, ("createsuperuser", "--noinput")),
    "database away, backup": ({"DATABASE_URL": POSTGRES_AWAY}, ("backup", "{folder}/x.backup")),
    "database away, serve": ({"DATABASE_URL": POSTGRES_AWAY}, ("serve", "--no-web")),
    "state in a file": ({"CONCORD_VAR": "{folder}/sample.jsonl", "DATABASE_URL": ""}, EVALUATE),
    "state in a folder that cannot be made": ({"CONCORD_VAR": "/proc/x", "DATABASE_URL": ""}, EVALUATE),
    "boolean that is none": ({"DEBUG": "perhaps"}, EVALUATE),
    "number that is none": ({"CONCORD_WORKERS": "many"}, EVALUATE),
    "negative number": ({"CONCORD_CALL_SECONDS": "-1"}, EVALUATE),
    "huge number": ({"CONCORD_REPLY_RETENTION_DAYS": "9" * 12}, ("purge",)),
    "port beyond all ports": ({"PORT": "99999"}, ("serve", "--no-worker")),
    "programs that are no JSON": ({"CONCORD_SYSTEM_COMMANDS": "rag ask"}, EVALUATE),
    "programs that are a list": ({"CONCORD_SYSTEM_COMMANDS": "[1]"}, EVALUATE),
    "program with an open quote": ({"CONCORD_SYSTEM_COMMANDS": '{"a": "b \'"}'}, EVALUATE),
    "proxies that are no addresses": ({"CONCORD_TRUSTED_PROXIES": "10.0.0.0/99"}, EVALUATE),
    "mail server that is none": ({"EMAIL_URL": "pigeon://x"}, EVALUATE),
    "mail server that is away": ({"EMAIL_URL": "smtp://127.0.0.1:9"}, ("remind_reviewers",)),
    "site address that is none": ({"CONCORD_SITE_URL": "concord"}, EVALUATE),
    "dispatcher that is none": ({"CONCORD_DISPATCHER": "pigeon"}, ("serve", "--no-web")),
    "origins that are none": ({"CONCORD_JUDGE_ORIGINS": "x y,http://"}, EVALUATE),
    "prices that are missing": ({"CONCORD_PRICES": "{folder}/missing.yaml"}, EVALUATE),
    "prices in a folder": ({"CONCORD_PRICES": "{folder}"}, EVALUATE),
    "prices that are binary": ({"CONCORD_PRICES": "{folder}/binary.csv"}, EVALUATE),
    "prices of another form": ({"CONCORD_PRICES": "{folder}/deep.yaml"}, EVALUATE),
    "second factor that is none": ({"CONCORD_SECOND_FACTOR": "always"}, EVALUATE),
    "identity provider without client": ({"CONCORD_OIDC_ISSUER": "https://id.example"}, EVALUATE),
    "setting that is unknown": ({"CONCORD_TYPO": "1"}, EVALUATE),
    "temporary folder that is missing": ({"TMPDIR": "{folder}/missing"}, ("backup", "{folder}/x.backup")),
    "backup into a folder that is missing": ({}, ("backup", "{folder}/missing/x.backup")),
    "name of the host that is too long": ({"CONCORD_HOST": "x" * 70_000}, ("healthcheck",)),
    "output in ASCII": ({"PYTHONIOENCODING": "ascii", "LANGUAGE_CODE": "ko"}, ("healthcheck",)),
    "output in another language": ({"LANGUAGE_CODE": "tlh"}, ("healthcheck",)),
    "command that is none": ({}, ("evalaute",)),
}
FAST_ENVIRONMENTS = 3
#: No mail is due; Python finds another temporary folder.
HARMLESS = {"mail server that is away", "temporary folder that is missing"}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of a migrated SQLite database."""
    folder = tmp_path_factory.mktemp("migrated")
    completed = run(folder, "migrate", "--verbosity", "0", DATABASE_URL=f"sqlite:///{folder}/site.sqlite3")
    assert completed.returncode == 0, completed.stderr
    return folder / "site.sqlite3"


def run(
    folder: Path, *arguments: str, prefix: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """``manage.py`` in an environment of its own, with the settings that a site has by default."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [*prefix, sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={
            **inherited,
            "CONCORD_VAR": str(folder),
            "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("name", first_fast(ENVIRONMENTS, FAST_ENVIRONMENTS))
@pytest.mark.slow
def test_hostile_environments_end_with_a_sentence(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    environment, arguments = ENVIRONMENTS[name]
    if "DATABASE_URL" not in environment and name not in list(ENVIRONMENTS)[:FAST_ENVIRONMENTS]:
        (folder / "site.sqlite3").write_bytes(request.getfixturevalue("migrated").read_bytes())
    with closing(sqlite3.connect(folder / "other.sqlite3")) as database:
        database.execute("CREATE TABLE recipes (name text)")
    completed = run(
        folder,
        *(argument.format(folder=folder) for argument in arguments),
        **{key: value.replace("{folder}", str(folder)) for key, value in environment.items()},
    )
    assert completed.returncode != 0 or name in HARMLESS, completed.stdout
    assert "Traceback" not in completed.stdout + completed.stderr
    assert (completed.stdout + completed.stderr).strip() or completed.returncode == 0


@pytest.fixture
def evaluated(folder: Path, migrated: Path) -> Path:
    """A site with a question set and answers to it."""
    (folder / "site.sqlite3").write_bytes(migrated.read_bytes())
    for arguments in (
        ("import_questions", f"{folder}/sample.jsonl", "--name", "q"),
        ("import_answers", f"{folder}/sample.jsonl", "--questions", "q", "--system", "s"),
    ):
        completed = run(folder, *arguments)
        assert completed.returncode == 0, completed.stderr
    return folder


@pytest.mark.slow
def test_read_only_folder_is_named(evaluated: Path) -> None:
    for path in (*evaluated.glob("site.sqlite3*"), evaluated):
        path.chmod(0o555)
    completed = run(evaluated, "evaluate", "--questions", "q", "--system", "s", "--no-judge", prefix=(*MORTAL,))
    evaluated.chmod(0o755)
    assert completed.returncode == 1
    assert "The database is read-only at the moment" in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 200], ids=["no room", "room for a part"])
def test_backup_on_a_full_disk_leaves_nothing(folder: Path, migrated: Path, room: int) -> None:
    (disk := folder / "disk").mkdir()
    mount = f"mount -t tmpfs -o size={room or 4}k tmpfs {disk}"
    on_small_disk = (
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'{mount} || exit 99; "$0" "$@"; code=$?; ls -A {disk}; exit $code',
    )
    completed = run(migrated.parent, "backup", str(disk / "x.backup"), prefix=on_small_disk)
    if completed.returncode == 99 or "unshare" in completed.stderr:
        pytest.skip(f"no disk can be mounted here: {completed.stderr}")
    assert completed.returncode == 1
    assert completed.stderr.startswith("backup: ")
    assert "full" in completed.stderr or "No space left" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert completed.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["> /dev/full", "| head -c 1"])
def test_output_that_cannot_be_written_ends_without_a_traceback(redirection: str, migrated: Path) -> None:
    shell = ("sh", "-c", f'"$0" "$@" {redirection}')
    completed = run(migrated.parent, "provision", "--help", prefix=shell)
    assert "Traceback" not in completed.stderr
    assert "Exception ignored" not in completed.stderr


@pytest.mark.slow
def test_interrupted_command_ends_without_a_traceback(folder: Path, migrated: Path) -> None:
    (folder / "site.sqlite3").write_bytes(migrated.read_bytes())
    environment = os.environ | {"CONCORD_VAR": str(folder), "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3"}
    command = [sys.executable, "manage.py", "work"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        time.sleep(5)
        worker.send_signal(signal.SIGINT)
        _, errors = worker.communicate(timeout=60)
    assert worker.returncode == 130
    assert "Traceback" not in errors
