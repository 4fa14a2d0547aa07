"""Experiment files: what the command line can say a file can, the command line wins, and every run is such a file."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, CommandParser, call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import InvalidFile
from evaluation.core.roles import Role
from evaluation.models import Endpoint, Project, Run
from evaluation.runs.experiments import read_experiment
from review.management.commands.evaluate import Command
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_user, question_spec

pytestmark = pytest.mark.django_db


@pytest.fixture
def said() -> dict[str, Any]:
    """The least that a file has to say, over five questions with answers."""
    questions = make_question_set(make_project(), [question_spec(n) for n in range(5)])
    answers = make_answer_set(questions, texts=[f"Answer {n}" for n in range(5)])
    return {"questions": questions.name, "system": answers.system_version.system.name, "no_judge": True}


def file_of(folder: Path, said: Any, name: str = "experiment.yaml") -> str:
    path = folder / name
    path.write_text(said if isinstance(said, str) else yaml.safe_dump(said), encoding="utf-8")
    return str(path)


def evaluate(*words: str) -> Run:
    call_command("evaluate", *words, stdout=StringIO(), stderr=StringIO())
    return Run.objects.latest("pk")


def command() -> tuple[Command, CommandParser]:
    command = Command()
    return command, command.create_parser("manage.py", "evaluate")


def read(path: str) -> dict[str, Any]:
    return read_experiment(Path(path), command()[0].experiment)


def problems(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    with pytest.raises(InvalidFile) as refused:
        read(file_of(folder, text))
    return [(one.code, one.line, one.field) for one in refused.value.problems]


def test_its_fields_are_the_options_of_the_command() -> None:
    evaluate, parser = command()
    options = vars(parser.parse_args([]))
    of_django = {"settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks", "verbosity"}
    alone = {"config", "dry_run", "format", "skip_indexing"}  # of a call, not of an experiment
    assert set(evaluate.experiment.model_fields) == set(options) - of_django - alone - {"version"}


def test_a_file_is_run_and_the_command_line_wins(said: dict[str, Any], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    path = file_of(tmp_path, said | {"limit": 3, "repeat": 2, "name": "nightly", "output": str(report)})
    run = evaluate("--config", path)
    assert (run.name, run.config["repeat"], len(run.config["question_ids"])) == ("nightly", 2, 3)
    assert report.exists()
    run = evaluate("--config", path, "--limit", "2", "--repeat", "1", "--name", "by hand")
    assert (run.name, run.config["repeat"], len(run.config["question_ids"])) == ("by hand", 1, 2)


def test_a_judge_on_the_command_line_takes_the_place_of_no_judge_and_back(said: dict[str, Any], tmp_path: Path) -> None:
    path = file_of(tmp_path, said)
    assert evaluate("--config", path, "--judge", "baseline").judges.exists()
    path = file_of(tmp_path, said | {"no_judge": False, "judge": "baseline"})
    assert not evaluate("--config", path, "--no-judge").judges.exists()
    assert not evaluate("--config", path, "--no-llm-judge").judges.exists()


def test_what_is_wrong_is_named_with_line_and_field(tmp_path: Path) -> None:
    assert problems(tmp_path, "questions: a\nsystem: b\nk: 70\n") == [("experiment_invalid", 3, "k")]
    assert problems(tmp_path, "name: a\nrepeat: 51\n") == [("experiment_invalid", 2, "repeat")]
    assert problems(tmp_path, "max_concurrency: 0\n") == [("experiment_invalid", 1, "max_concurrency")]
    assert problems(tmp_path, "budget: -1\nlanguage: fr\n") == [
        ("experiment_invalid", 2, "language"),
        ("experiment_invalid", 1, "budget"),
    ]
    assert problems(tmp_path, f"name: {'a' * 301}\n") == [("experiment_invalid", 1, "name")]
    assert problems(tmp_path, "questions: [a]\n") == [("experiment_invalid", 1, "questions")]
    assert problems(tmp_path, "questions: a\n\nspeed: 9\n") == [("experiment_invalid", 3, "speed")]
    assert problems(tmp_path, "questions: a\njudge:\n- x\n- [1]\n") == [("experiment_invalid", 4, "judge.1")]
    assert problems(tmp_path, "a: [\n")[0][0] == "experiment_not_yaml"
    assert problems(tmp_path, "- a\n")[0][0] == "experiment_invalid"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"questions": ""}, "--questions is needed"),
        ({"judge": ["baseline"]}, "judge and no_judge"),
        ({"gate_on": "luck"}, "gate_on"),
        ({"reuse_answers": 1, "no_ask": True}, "reuse_answers and no_ask"),
        ({"profile": "nobody"}, "unknown profile"),
    ],
)
def test_what_makes_no_sense_is_refused_and_makes_no_run(
    said: dict[str, Any], tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        evaluate("--config", file_of(tmp_path, said | more))
    assert not Run.objects.exists()


def test_a_run_written_as_a_file_and_run_again_has_the_same_configuration(said: dict[str, Any], tmp_path: Path) -> None:
    del said["no_judge"]
    more = {
        "judge": "baseline",
        "metrics": ["answer_relevancy"],
        "embeddings": "none",
        "limit": 4,
        "max_concurrency": 4,
    }
    first = evaluate("--config", file_of(tmp_path, said | more))
    out = tmp_path / "again.yaml"
    call_command("export_report", str(first.pk), "--output", str(out), stdout=StringIO())
    assert yaml.safe_load(out.read_text())["reuse_answers"] == first.pk
    again = evaluate("--config", str(out))
    assert again.pk != first.pk
    assert (again.config_hash, again.answer_set) == (first.config_hash, first.answer_set)
    seats = [sorted(map(str, run.judges.values_list("judge_version", "rubric_version"))) for run in (first, again)]
    assert seats[0] == seats[1]
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, first.project))
    reply = viewer.get(reverse("run-report", args=[first.pk]), {"format": "experiment"})
    assert b"".join(reply.streaming_content).decode() == out.read_text()


def test_without_a_profile_the_projects_default_counts(said: dict[str, Any]) -> None:
    Project.objects.update(default_profile="graphrag")
    words = ["--questions", said["questions"], "--system", said["system"], "--no-judge"]
    assert evaluate(*words).profile_version.name == "graphrag"
    assert evaluate(*words, "--profile", "generation").profile_version.name == "generation"


def test_an_experiment_of_source_000_names_the_model_that_judges(said: dict[str, Any], tmp_path: Path) -> None:
    found = read(file_of(tmp_path, "extraction_llm: x\nresponse_llm: {model: m-1}\nchunk: 5\n", "baseline_m1.yaml"))
    assert found == {"name": "baseline_m1", "judge": ["m-1"]}
    found = read(file_of(tmp_path, "name: n\nresponse_llm: m-1\njudge_llm: m-2\n"))
    assert found == {"name": "n", "judge": ["m-2"]}
    assert problems(tmp_path, "response_llm: m\neval_queries: [a]\n") == [
        ("experiment_has_questions", None, "eval_queries")
    ]
    path = file_of(tmp_path, "response_llm: m-1\n")
    asked = ["--questions", said["questions"], "--system", said["system"], "--skip-indexing"]
    assert not evaluate("--config", path, *asked, "--no-llm-judge").judges.exists()
    with pytest.raises(CommandError, match="unknown judge 'm-1'"):
        evaluate("--config", path, *asked)
    endpoint = Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1")
    make_judge(Project.objects.get(), "j", endpoint=endpoint, model="m-1")
    out = StringIO()
    call_command("evaluate", "--config", path, *asked, "--dry-run", stdout=out)
    assert "judge calls" in out.getvalue()
