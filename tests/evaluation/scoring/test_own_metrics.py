"""Own metrics in runs: scored beside shipped ones, recorded with their package, and failing alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import MetricKind
from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, metric_row, profile_row, save_judge, save_profile
from evaluation.judging import catalogue as judging_catalogue
from evaluation.judging import rubric
from evaluation.metric_packages import isolation
from evaluation.metric_packages.declared import declared_metrics
from evaluation.metric_packages.isolation import PackageProcess
from evaluation.metric_packages.loading import PACKAGES
from evaluation.metrics import catalogue as rule_catalogue
from evaluation.metrics.catalogue import own_rule_metrics
from evaluation.models import AnswerSet, Endpoint, JudgeVersion, MetricDefinition, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.profiles.spec import ProfileSpec
from evaluation.runs.creation import CollectionRequest, prepare_run
from evaluation.runs.execution import drain
from evaluation.runs.experiments import export_experiment
from evaluation.scoring import own_metrics
from evaluation.worker import units
from evaluation.worker.lifecycle import planned_units, resume, retry_failed, start
from examples.rag_service import RagService
from review.comparisons.comparison import compare
from review.reports.inputs import load_inputs
from review.reports.provenance_facts import provenance_facts
from review.reports.report import build_report
from tests.evaluation.systems.asking import make_questions, toy_system
from tests.factories import make_answer_set, make_question_set, make_user, question_spec
from tests.judge_server import JudgeServer
from tests.own_metrics import Register, write_package, write_rubrics

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
    monkeypatch.setattr(isolation, "STEP_SECONDS", 2.0)


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

    def replace(code: str, head: str = CODE) -> None:
        uninstall()
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


def test_batch_that_takes_too_long_gives_units_back(
    tmp_path: Path, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch computes one unit, because no time is left for the next."""
    monkeypatch.setattr(own_metrics, "BATCH_SECONDS", 0.0)
    sizes: list[int] = []
    original_give_back = own_metrics.units.give_back_all

    def give_back(claimed: Iterable[WorkUnit]) -> list[WorkUnit]:
        given_back = original_give_back(claimed)
        sizes.append(len(given_back))
        return given_back

    monkeypatch.setattr(own_metrics.units, "give_back_all", give_back)
    register(write_package(tmp_path))
    run = run_metrics(make_answers(), ("word_count_share",))
    assert run.state == Run.State.COMPLETED
    # The first batch claims all three, the others one each.
    assert sizes == [2, 0, 0]
    assert [value for _, value, _ in results(run, "word_count_share")] == [0.3, 0.2, 0.3]


def test_interruption_ends_the_call(tmp_path: Path, register: Register) -> None:
    """Closing the steps, as Ctrl+C does, does not wait for the limit of the call."""
    mark = tmp_path / "called"
    code = CODE.replace("while answer.text", f"Path({str(mark)!r}).touch()\n        while answer.text")
    register(write_package(tmp_path, code))
    answers = make_answers()
    run = prepare_run(answers, profile_row(answers.project, "standard"), RunSpec(metrics=("moody",)), judge=None)
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    units.insert_units(planned_units(run))
    with PackageProcess(60) as process:
        steps = own_metrics.OwnMetricSession(run, process, time.monotonic() + 60, Event()).steps()
        while not mark.exists():
            next(steps)
            time.sleep(0.05)
        began = time.monotonic()
        steps.close()
        assert time.monotonic() - began < 20


def test_own_metrics_wait_for_collected_answers(tmp_path: Path, register: Register, rag_service: RagService) -> None:
    register(write_package(tmp_path))
    question_set = make_questions(3)
    version = toy_system(rag_service, question_set)
    answers = CollectionRequest(question_set=question_set, version=version).create_answer_set(None)
    run = run_metrics(answers, ("word_count_share",))
    assert run.state == Run.State.COMPLETED
    assert [status for status, _, _ in results(run, "word_count_share")] == ["scored"] * 3


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


def uninstall() -> None:
    """Forget all packages, as a restarted process does after they were uninstalled."""
    for name in own_rule_metrics():
        del rule_catalogue._BY_NAME[name]
    for name in judging_catalogue.own_families():
        del judging_catalogue._FAMILIES[name]
    rubric._package_rubrics.clear()
    PACKAGES.clear()


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
    run, judge, baseline = run_tone(tmp_path, register, settings)
    assert list(run.config["packages"]) == ["kindness"]
    scores = Score.objects.filter(run=run, metric__name="kindness").order_by("answer__question__position")
    remote = list(scores.filter(judge_version=judge).values_list("status", "reason", "rubric_version__family"))
    assert remote == [
        ("scored", "", "tone"),
        ("failed", "metric_raised: ValueError: no tone", "tone"),
        ("failed", "metric_timeout: tone, 2 s", "tone"),
    ]
    assert set(scores.filter(judge_version=baseline).values_list("reason", flat=True)) == {"baseline_has_no_rule"}
    assert not Score.objects.filter(run=run, status="failed").exclude(metric__name="kindness").exists()


def run_tone(tmp_path: Path, register: Register, settings: Any) -> tuple[Run, JudgeVersion, JudgeVersion]:
    """A run of the family over a remote judge, with the baseline for comparison."""
    source = write_package(tmp_path, TONE)
    write_rubrics(tmp_path, "tone", "kindness")
    isolation._shared_process.cache_clear()
    assert register(source) == []
    answers = make_answers()
    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
        judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
        baseline = baseline_judge(answers.project, "en")
        profile = profile_row(answers.project, "graphrag")
        spec = RunSpec(metrics=("kindness",))
        run = prepare_run(answers, profile, spec, judge=judge, secondary=(baseline,))
        start(run)
        return drain(run.pk, seconds=60), judge, baseline


def test_pages_of_a_run_work_with_and_without_its_packages(tmp_path: Path, register: Register, settings: Any) -> None:
    run, judge, _ = run_tone(tmp_path, register, settings)
    register(write_package(tmp_path, CODE, "rules.py"))
    rules_run = run_metrics(run.answer_set)
    lead = make_user(Role.LEAD, run.project)
    client = Client()
    client.force_login(lead)
    answer = run.answer_set.answers.earliest("pk")
    pages = [
        *(
            reverse(name, args=[pk])
            for name in ("run", "run-agreement", "run-answers")
            for pk in (run.pk, rules_run.pk)
        ),
        *(f"{reverse('answer', args=[answer.pk])}?run={pk}" for pk in (run.pk, rules_run.pk)),
        f"{reverse('run-compare')}?runs={run.pk},{rules_run.pk}",
        f"{reverse('queue-new')}?run={run.pk}",
        reverse("judge", args=[judge.pk]),
        reverse("run-list"),
        reverse("api-run-detail", args=[run.pk]),
        reverse("api-run-answers", args=[run.pk]),
    ]
    for state in ("installed", "uninstalled"):
        faulty = [(page, status) for page in pages if (status := client.get(page).status_code) != 200]
        assert faulty == [], state
        detail = client.get(reverse("api-run-detail", args=[rules_run.pk])).json()
        assert detail["packages"] == rules_run.config["packages"]
        assert detail["means"]["moody"] == {"mean": 0.3, "scored": 1, "failed": 2, "not_applicable": 0}
        assert "moody" in client.get(reverse("run", args=[rules_run.pk])).content.decode()
        assert "kindness" in export_experiment(run)
        uninstall()


def test_metric_for_which_lower_is_better_has_no_weight(tmp_path: Path, register: Register) -> None:
    register(write_package(tmp_path, CODE))
    answers = make_answers()
    content = {
        "name": "own",
        "title": {"en": "Own", "ko": "자체"},
        "parts": [{"metric": "by_reference", "weight": 1.0}],
    }
    profile = save_profile(answers.project, ProfileSpec.model_validate(content))
    with pytest.raises(DomainError, match="criterion_not_weighable"):
        prepare_run(answers, profile, judge=None)


def test_profile_with_an_uninstalled_metric_is_refused(tmp_path: Path, register: Register) -> None:
    register(write_package(tmp_path))
    answers = make_answers()
    content = {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": [{"metric": OWN[0], "weight": 1.0}]}
    profile = save_profile(answers.project, ProfileSpec.model_validate(content))
    run = prepare_run(answers, profile, judge=None)
    start(run)
    report = build_report(load_inputs(drain(run.pk, seconds=60)))
    # 3, 2 and 3 words of 10: (0.3 + 0.2 + 0.3) / 3.
    assert report.overall.judge_only.value == pytest.approx(0.8 / 3)
    uninstall()
    with pytest.raises(DomainError, match="metric_not_installed"):
        prepare_run(answers, profile, judge=None)
