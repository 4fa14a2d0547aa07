"""Own metrics in runs: scored beside shipped ones, recorded with their package, and failing alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.core.metric_specs import MetricKind
from evaluation.judges.shipped import baseline_judge, metric_row, profile_row, save_judge
from evaluation.metric_packages import isolation
from evaluation.metric_packages.declared import declared_metrics
from evaluation.models import AnswerSet, Endpoint, MetricDefinition, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import resume, retry_failed, start
from review.comparisons.comparison import compare
from review.reports.inputs import load_inputs
from review.reports.provenance_facts import provenance_facts
from review.reports.report import build_report
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer
from tests.own_metrics import Register, register, write_package, write_rubrics

__all__ = ["register"]
pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ("one two three", "raise now", "hang now please")
CODE = """
    @declare("moody")
    def moody(question, answer, settings):
        if answer.text.startswith("raise"):
            raise ValueError("no mood")
        while answer.text.startswith("hang"):
            pass
        return Result.scored(len(answer.text.split()) / 10)

    @declare("by_reference", inputs=("reference",), direction=Direction.LOWER)
    def by_reference(question, answer, settings):
        return Result.scored(0.5)

    PACKAGE = MetricPackage(rule_metrics=(word_count_share, moody, by_reference))
"""
OWN = ("word_count_share", "moody", "by_reference")


@pytest.fixture(autouse=True)
def no_queue(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CONCORD_DISPATCHER = "local"
    monkeypatch.setattr(isolation.PackageProcess.__init__, "__defaults__", (2.0,))


def make_answers() -> AnswerSet:
    references = {1: ("one",), 2: (), 3: ("one",)}
    specs = [question_spec(n, category="single_hop", references=references[n], keywords=()) for n in references]
    return make_answer_set(make_question_set(specs=specs), texts=TEXTS)


def run_metrics(answers: AnswerSet, names: tuple[str, ...] = OWN) -> Run:
    run = prepare_run(answers, profile_row(answers.project, "standard"), RunSpec(metrics=names), judge=None)
    start(run)
    return drain(run.pk, seconds=60)


def results(run: Run, name: str) -> list[tuple[str, float | None, str]]:
    rows = Score.objects.filter(run=run, metric__name=name).order_by("answer__question__position", "-round")
    return list(rows.values_list("status", "value", "reason"))


@pytest.mark.both_databases
def test_metric_that_raises_or_hangs_fails_alone(tmp_path: Path, register: Register) -> None:
    assert register(write_package(tmp_path, CODE)) == []
    run = run_metrics(make_answers())
    assert results(run, "word_count_share") == [("scored", 0.3, ""), ("scored", 0.2, ""), ("scored", 0.3, "")]
    assert results(run, "moody") == [
        ("scored", 0.3, ""),
        ("failed", None, "metric_raised: ValueError: no mood"),
        ("failed", None, "metric_timeout: moody, 2 s"),
    ]
    # The question without an expected answer has no input for it.
    assert results(run, "by_reference") == [
        ("scored", 0.5, ""),
        ("not_applicable", None, "no_reference"),
        ("scored", 0.5, ""),
    ]
    assert not WorkUnit.objects.filter(run=run, kind="rules").exclude(state="done").exists()
    assert sorted(WorkUnit.objects.filter(run=run, state="failed").values_list("metric", flat=True)) == ["moody"] * 2
    assert (run.state, run.reason) == (Run.State.INCOMPLETE, "moody: 2/3")
    definition = MetricDefinition.objects.get(name="by_reference")
    assert (definition.kind, definition.direction, definition.version) == (MetricKind.RULE, "lower", 1)


def test_scores_and_report_name_package_version_and_hash(tmp_path: Path, register: Register) -> None:
    register(write_package(tmp_path, version="1.2"))
    run = run_metrics(make_answers(), ("word_count_share",))
    stamp = run.config["packages"]["word_count_share"]
    name, version, digest = stamp.split()
    assert (name, version, len(digest)) == ("metrics.py", "1.2", 16)
    own_scores = Score.objects.filter(run=run, metric__name="word_count_share")
    assert [score.detail["package"] for score in own_scores] == [stamp] * 3
    assert not Score.objects.filter(run=run).exclude(metric__name="word_count_share").filter(detail__has_key="package")
    report = build_report(load_inputs(run))
    assert report.provenance.packages == {"word_count_share": stamp}
    facts = [fact for fact in provenance_facts(report.provenance) if fact.term == "Own metrics"]
    assert [(fact.text, fact.code) for fact in facts] == [("metrics.py 1.2 · word_count_share", digest)]


def test_comparison_flags_another_version(tmp_path: Path, register: Register, replace_package: Any) -> None:
    answers = make_answers()
    register(write_package(tmp_path, CODE))
    runs = [run_metrics(answers, ("word_count_share",)), run_metrics(answers, ("word_count_share",))]
    assert "metrics" not in compare(runs).differences[0].differs
    replace_package("# changed")
    runs.append(run_metrics(answers, ("word_count_share",)))
    difference = compare(runs[1:]).differences[0]
    described = difference.differs["metrics"]
    assert described[0] != described[1]
    assert all("word_count_share v1 (metrics.py " in text for text in described)
    differing = {metric.name for metric in difference.metrics if "metrics" in metric.differs}
    assert differing == {"word_count_share"}


@pytest.fixture
def replace_package(tmp_path: Path, register: Register) -> Callable[[str], None]:
    """Register the package again with another source, as a restarted process does."""
    from evaluation.metric_packages.loading import PACKAGES
    from evaluation.metrics import catalogue

    def replace(code: str, head: str = CODE) -> None:
        for name in catalogue.own_rule_metrics():
            del catalogue._BY_NAME[name]
        PACKAGES.clear()
        assert register(write_package(tmp_path, f"{head}\n    {code}")) == []

    return replace


def test_run_pauses_if_its_package_changed(replace_package: Any) -> None:
    answers = make_answers()
    replace_package("")
    run = prepare_run(answers, profile_row(answers.project, "standard"), RunSpec(metrics=OWN[:1]), judge=None)
    replace_package("# changed")
    start(run)
    run = drain(run.pk, seconds=60)
    assert (run.state, run.reason.partition(": ")[0]) == (Run.State.PAUSED, "package_changed")
    assert not Score.objects.filter(run=run).exists()
    replace_package("")
    resume(run)
    assert drain(run.pk, seconds=60).state == Run.State.COMPLETED


def test_retry_computes_only_what_failed(tmp_path: Path, register: Register) -> None:
    code = CODE.replace('if answer.text.startswith("raise")', f"if not Path({str(tmp_path / 'fixed')!r}).exists()")
    register(write_package(tmp_path, code))
    run = run_metrics(make_answers(), ("word_count_share", "moody"))
    assert run.reason == "moody: 3/3"
    (tmp_path / "fixed").touch()
    assert retry_failed(run) == 3
    run = drain(run.pk, seconds=60)
    assert run.reason == "moody: 1/3"
    assert [status for status, _, _ in results(run, "moody")] == ["scored", "failed"] * 2 + ["failed", "failed"]
    assert Score.objects.filter(run=run, metric__name="word_count_share").count() == 3


def test_changed_scale_is_another_version_of_the_metric(
    tmp_path: Path, register: Register, replace_package: Any
) -> None:
    register(write_package(tmp_path, CODE))
    spec = declared_metrics()["by_reference"]
    assert metric_row(spec) == metric_row(spec)
    head = CODE.replace("direction=Direction.LOWER", "scale=Scale.parse('0..10:real')")
    replace_package("", head)
    changed = metric_row(declared_metrics()["by_reference"])
    assert (changed.version, changed.scale) == (2, "real 0..10")


TONE = """
    SPEC = judged("kindness", "tone", scale=Scale.parse("1..2"))
    SCHEMA = {"type": "object", "properties": {"kind": {"type": "boolean"}}, "required": ["kind"]}

    def judge(case):
        if case.answer.text.startswith("raise"):
            raise ValueError("no tone")
        first = yield JudgeRequest({"answer": case.answer.text}, SCHEMA, names=("kindness",))
        while case.answer.text.startswith("hang"):
            pass
        second = yield JudgeRequest({"first": first.parts["kind"]}, SCHEMA, names=("kindness",))
        return {"kindness": Result.scored(1 + second.parts["kind"])}

    PACKAGE = MetricPackage(families=(Family("tone", (SPEC,), judge),), rubrics=Path(__file__).parent)
"""


def test_judge_family_scores_and_fails_alone(tmp_path: Path, register: Register, settings: Any) -> None:
    source = write_package(tmp_path, TONE)
    write_rubrics(tmp_path, "tone", "kindness")
    isolation._shared_process.cache_clear()
    assert register(source) == []
    answers = make_answers()
    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
        judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
        secondary = (baseline_judge(answers.project, "en"),)
        spec = RunSpec(metrics=("kindness",))
        profile = profile_row(answers.project, "graphrag")
        run = prepare_run(answers, profile, spec, judge=judge, secondary=secondary)
        start(run)
        run = drain(run.pk, seconds=60)
    assert list(run.config["packages"]) == ["kindness"]
    scores = Score.objects.filter(run=run, metric__name="kindness").order_by("answer__question__position")
    remote = list(scores.filter(judge_version=judge).values_list("status", "reason", "rubric_version__family"))
    assert remote == [
        ("scored", "", "tone"),
        ("failed", "metric_raised: ValueError: no tone", "tone"),
        ("failed", "metric_timeout: tone, 2 s", "tone"),
    ]
    assert set(scores.filter(judge_version=secondary[0]).values_list("reason", flat=True)) == {"baseline_has_no_rule"}
    assert not Score.objects.filter(run=run, status="failed").exclude(metric__name="kindness").exists()
