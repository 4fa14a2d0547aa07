"""Experiment files: they take every command-line option, the command line wins, and each run can be exported as one."""

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
def experiment() -> dict[str, Any]:
    """The smallest experiment file: five questions with answers and no judge."""
    questions = make_question_set(make_project(), [question_spec(n) for n in range(5)])
    answers = make_answer_set(questions, texts=[f"Answer {n}" for n in range(5)])
    return {"questions": questions.name, "system": answers.system_version.system.name, "no_judge": True}


def file_of(folder: Path, content: Any, name: str = "experiment.yaml") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def evaluate(*arguments: str) -> Run:
    call_command("evaluate", *arguments, stdout=StringIO(), stderr=StringIO())
    return Run.objects.latest("pk")


def command() -> tuple[Command, CommandParser]:
    command = Command()
    return command, command.create_parser("manage.py", "evaluate")


def read(path: str) -> dict[str, Any]:
    return read_experiment(Path(path), command()[0].experiment)


def problems(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    with pytest.raises(InvalidFile) as error:
        read(file_of(folder, text))
    return [(problem.code, problem.line, problem.field) for problem in error.value.problems]


def test_experiment_fields_equal_the_command_options() -> None:
    evaluate, parser = command()
    options = vars(parser.parse_args([]))
    of_django = {"settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks", "verbosity"}
    call_options = {"config", "dry_run", "format", "skip_indexing"}  # of a call, not of an experiment
    assert set(evaluate.experiment.model_fields) == set(options) - of_django - call_options - {"version"}


def test_a_file_is_run_and_the_command_line_wins(experiment: dict[str, Any], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    path = file_of(tmp_path, experiment | {"limit": 3, "repeat": 2, "name": "nightly", "output": str(report)})
    run = evaluate("--config", path)
    assert (run.name, run.config["repeat"], len(run.config["question_ids"])) == ("nightly", 2, 3)
    assert report.exists()
    run = evaluate("--config", path, "--limit", "2", "--repeat", "1", "--name", "by hand")
    assert (run.name, run.config["repeat"], len(run.config["question_ids"])) == ("by hand", 1, 2)


def test_judge_option_overrides_no_judge_of_the_file_and_vice_versa(experiment: dict[str, Any], tmp_path: Path) -> None:
    path = file_of(tmp_path, experiment)
    assert evaluate("--config", path, "--judge", "baseline").judges.exists()
    path = file_of(tmp_path, experiment | {"no_judge": False, "judge": "baseline"})
    assert not evaluate("--config", path, "--no-judge").judges.exists()
    assert not evaluate("--config", path, "--no-llm-judge").judges.exists()


def test_problems_name_line_and_field(tmp_path: Path) -> None:
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
    ("extra_settings", "message"),
    [
        ({"questions": ""}, "Set --questions"),
        ({"judge": ["baseline"]}, "judge and no_judge"),
        ({"gate_on": "luck"}, "gate_on"),
        ({"reuse_answers": 1, "no_ask": True}, "reuse_answers and no_ask"),
        ({"profile": "nobody"}, "unknown profile"),
    ],
)
def test_contradicting_experiment_is_refused_without_a_run(
    experiment: dict[str, Any], tmp_path: Path, extra_settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        evaluate("--config", file_of(tmp_path, experiment | extra_settings))
    assert not Run.objects.exists()


def test_exported_experiment_reproduces_the_configuration(experiment: dict[str, Any], tmp_path: Path) -> None:
    del experiment["no_judge"]
    options = {
        "judge": "baseline",
        "metrics": ["answer_relevancy"],
        "embeddings": "none",
        "limit": 4,
        "max_concurrency": 4,
    }
    first = evaluate("--config", file_of(tmp_path, experiment | options))
    output_path = tmp_path / "again.yaml"
    call_command("export_report", str(first.pk), "--output", str(output_path), stdout=StringIO())
    assert yaml.safe_load(output_path.read_text())["reuse_answers"] == first.pk
    rerun = evaluate("--config", str(output_path))
    assert rerun.pk != first.pk
    assert (rerun.config_hash, rerun.answer_set) == (first.config_hash, first.answer_set)
    judge_rows = [sorted(map(str, run.judges.values_list("judge_version", "rubric_version"))) for run in (first, rerun)]
    assert judge_rows[0] == judge_rows[1]
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, first.project))
    reply = viewer.get(reverse("run-report", args=[first.pk]), {"format": "experiment"})
    assert b"".join(reply.streaming_content).decode() == output_path.read_text()


def test_project_default_profile_is_used_without_a_profile(experiment: dict[str, Any]) -> None:
    Project.objects.update(default_profile="graphrag")
    arguments = ["--questions", experiment["questions"], "--system", experiment["system"], "--no-judge"]
    assert evaluate(*arguments).profile_version.name == "graphrag"
    assert evaluate(*arguments, "--profile", "generation").profile_version.name == "generation"


def test_graphrag_experiment_file_names_the_judge_model(experiment: dict[str, Any], tmp_path: Path) -> None:
    fields = read(file_of(tmp_path, "extraction_llm: x\nresponse_llm: {model: m-1}\nchunk: 5\n", "baseline_m1.yaml"))
    assert fields == {"name": "baseline_m1", "judge": ["m-1"]}
    fields = read(file_of(tmp_path, "name: n\nresponse_llm: m-1\njudge_llm: m-2\n"))
    assert fields == {"name": "n", "judge": ["m-2"]}
    assert problems(tmp_path, "response_llm: m\neval_queries: [a]\n") == [
        ("experiment_has_questions", None, "eval_queries")
    ]
    path = file_of(tmp_path, "response_llm: m-1\n")
    options = ["--questions", experiment["questions"], "--system", experiment["system"], "--skip-indexing"]
    assert not evaluate("--config", path, *options, "--no-llm-judge").judges.exists()
    with pytest.raises(CommandError, match="unknown judge 'm-1'"):
        evaluate("--config", path, *options)
    endpoint = Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1")
    make_judge(Project.objects.get(), "j", endpoint=endpoint, model="m-1")
    output = StringIO()
    call_command("evaluate", "--config", path, *options, "--dry-run", stdout=output)
    assert "judge calls" in output.getvalue()


def test_evaluation_without_judge_goes_on_with_the_equal_run(experiment: dict[str, Any], tmp_path: Path) -> None:
    path = file_of(tmp_path, experiment)
    first_run = evaluate("--config", path)
    assert evaluate("--config", path) == first_run
    other_runs = [
        evaluate("--config", path, *options)
        for options in (["--name", "again"], ["--limit", "2"], ["--profile", "graphrag"], ["--judge", "baseline"])
    ]
    assert len({run.pk for run in [first_run, *other_runs]}) == 5
    assert {run.state for run in [first_run, *other_runs]} == {Run.State.COMPLETED}
