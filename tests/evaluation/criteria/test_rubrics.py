"""Judge prompt versions: drafted, activated per judge, pinned by runs, and withheld from sealed answers."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, transaction
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.roles import Role
from evaluation.criteria.rubrics import activate, draft, find_version, propose, retire, rubric_scope, version_statuses
from evaluation.judges.shipped import baseline_judge, profile_row, shipped_rubric_row
from evaluation.judging.draft_checks import check_draft, rubric_yaml, unified_diff
from evaluation.judging.rubric import Rubric, parse_rubric, shipped_rubric, shipped_rubrics
from evaluation.models import (
    AnswerSet,
    AuditEvent,
    Endpoint,
    JudgeVersion,
    Project,
    RubricEvent,
    RubricVersion,
    RunJudge,
    SealedAnswer,
    VersionStatus,
    WorkUnit,
)
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import launch_run, prepare_run
from evaluation.runs.experiments import export_experiment
from evaluation.runs.planning import plan_draft
from evaluation.runs.results import drift
from evaluation.worker.lifecycle import planned_units, seal_key
from tests.evaluation.rest.clients import Caller
from tests.factories import make_answer_set, make_judge, make_project, make_question_set

FAMILY = "answer_quality"


def reworded_rubric(text: str = "Grade one answer.", language: str = "en", **changes: Any) -> Rubric:
    return shipped_rubric(FAMILY, language).model_copy(update={"instruction": text, **changes})


@pytest.mark.parametrize("shipped", shipped_rubrics(), ids=lambda rubric: f"{rubric.family}-{rubric.language}")
def test_shipped_rubrics_pass_the_checks_and_round_trip(shipped: Rubric) -> None:
    check_draft(shipped)
    assert parse_rubric(rubric_yaml(shipped)).content_hash == shipped.content_hash


def test_only_wording_may_differ() -> None:
    check_draft(reworded_rubric())
    first, *other_metrics = shipped_rubric(FAMILY, "en").metrics
    for changes, part in (
        ({"metrics": tuple(other_metrics)}, "metrics"),
        ({"metrics": (first.model_copy(update={"levels": first.levels[1:]}), *other_metrics)}, "levels"),
        ({"metrics": (first.model_copy(update={"scale": "real 1..5"}), *other_metrics)}, "scale"),
        ({"closing": "Grade it."}, "{metrics}"),
    ):
        with pytest.raises(DomainError) as error:
            check_draft(reworded_rubric(**changes))
        assert (error.value.code, part in error.value.params["parts"]) == ("rubric_differs", True)


@given(st.sampled_from("\u200b\u202e\ufeff\x00\x1b\ue000\u0378\u2028\u2029"))
def test_invisible_characters_are_refused(hidden: str) -> None:
    with pytest.raises(DomainError, match="rubric_unseen"):
        check_draft(reworded_rubric(f"Grade{hidden} it."))


def test_placeholders_in_a_draft_are_plain_text() -> None:
    # nothing is formatted: only the closing's own slot is replaced
    assert "{question} {{ x }} %s" in reworded_rubric("{question} {{ x }} %s").system_text(["correctness"])


def test_difference_is_a_unified_diff() -> None:
    lines = unified_diff(shipped_rubric(FAMILY, "en"), reworded_rubric(), ("before", "after"))
    assert lines[:2] == ["--- before", "+++ after"]
    assert "+instruction: Grade one answer." in lines
    assert unified_diff(reworded_rubric(), reworded_rubric(), ("a", "b")) == []


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def judge(project: Project) -> JudgeVersion:
    endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
    return make_judge(project, endpoint=endpoint)


def test_draft_is_the_next_version_and_equal_content_reuses_it(project: Project) -> None:
    version = draft(project, reworded_rubric(), by=None, note="Too lenient about dates")
    shipped = shipped_rubric_row(FAMILY, "en")
    assert (version.version, version.project, version.note) == (shipped.version + 1, project, "Too lenient about dates")
    assert draft(project, reworded_rubric(), by=None) == version
    assert AuditEvent.objects.filter(verb="rubric.drafted").count() == 1
    foreign_version = draft(make_project(), reworded_rubric(), by=None)
    assert (foreign_version.pk == version.pk, foreign_version.version) == (False, version.version + 1)


def test_version_is_active_for_one_judge_until_its_retirement(project: Project, judge: JudgeVersion) -> None:
    slot, shipped = rubric_scope(judge, FAMILY), shipped_rubric_row(FAMILY, "en")
    first, second = draft(project, reworded_rubric(), by=None), draft(project, reworded_rubric("Grade."), by=None)
    assert (version_statuses(slot).active, version_statuses(slot).status_of(first)) == (shipped, VersionStatus.DRAFT)
    propose(first, judge, by=None)
    assert (version_statuses(slot).active, version_statuses(slot).status_of(first)) == (
        shipped,
        VersionStatus.CANDIDATE,
    )
    activate(first, judge, by=None, reason="It reads dates")
    assert (version_statuses(slot).active, version_statuses(slot).status_of(shipped)) == (first, VersionStatus.RETIRED)
    activate(second, judge, by=None, reason="Shorter")
    assert (version_statuses(slot).active, version_statuses(slot).status_of(first)) == (second, VersionStatus.RETIRED)
    retire(judge, FAMILY, by=None, reason="Worse on tables")
    assert (version_statuses(slot).active, version_statuses(slot).status_of(second)) == (shipped, VersionStatus.RETIRED)
    assert list(RubricEvent.objects.values_list("seq", "verb")) == [
        (1, "proposed"),
        (2, "activated"),
        (3, "activated"),
        (4, "retired"),
    ]
    other_judge = make_judge(project, endpoint=judge.endpoint)
    assert version_statuses(rubric_scope(other_judge, FAMILY)).status_of(first) == VersionStatus.DRAFT


def test_invalid_activations_are_refused(project: Project, judge: JudgeVersion) -> None:
    version = draft(project, reworded_rubric(), by=None)
    with pytest.raises(DomainError, match="reason_required"):
        activate(version, judge, by=None, reason="  ")
    with pytest.raises(DomainError, match="rubric_not_activated"):
        retire(judge, FAMILY, by=None, reason="why")
    with pytest.raises(DomainError, match="rubric_active"):
        activate(shipped_rubric_row(FAMILY, "en"), judge, by=None, reason="why")
    with pytest.raises(DomainError, match="rubric_other_language"):
        activate(draft(project, reworded_rubric("채점", "ko"), by=None), judge, by=None, reason="why")
    with pytest.raises(UnknownName):
        activate(draft(make_project(), reworded_rubric("Else"), by=None), judge, by=None, reason="why")
    with pytest.raises(UnknownName):
        find_version(project.pk, "en", "answer_quality@99")
    assert not RubricEvent.objects.exists()


def test_database_enforces_the_reason_of_an_activation(project: Project, judge: JudgeVersion) -> None:
    event = activate(draft(project, reworded_rubric(), by=None), judge, by=None, reason="why")
    row = {name: getattr(event, name) for name in ("project", "judge", "family", "language", "version")}
    with pytest.raises(DatabaseError), transaction.atomic():
        RubricEvent.objects.create(seq=2, verb="activated", ground="decided", reason="", **row)
    with pytest.raises(DatabaseError), transaction.atomic():
        RubricEvent.objects.filter(pk=event.pk).update(reason="other")


def assigned_rubrics(answers: AnswerSet, judge: JudgeVersion, *rubrics: str) -> list[tuple[str, int, bool, str]]:
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(rubrics=rubrics), judge=judge)
    rows = RunJudge.objects.filter(run=run, rubric_version__family=FAMILY).order_by("pk")
    return [
        (assignment.rubric_version.family, assignment.rubric_version.version, assignment.primary, assignment.standing)
        for assignment in rows
    ]


def test_run_language_may_differ_from_the_language_of_the_judge(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    activate(draft(project, reworded_rubric("채점", "ko"), by=None), other_judge(project, judge), by=None, reason="why")
    runs = {
        language: prepare_run(answers, profile_row(project, "graphrag"), RunSpec(language=language), judge=judge)
        for language in ("", "ko", "en")
    }
    rows = RunJudge.objects.filter(rubric_version__family=FAMILY).select_related("rubric_version")
    versions = {language: rows.get(run=run).rubric_version for language, run in runs.items()}
    shipped = {language: shipped_rubric_row(FAMILY, language) for language in ("en", "ko")}
    assert versions == {"": shipped["en"], **shipped}  # that another judge's Korean prompt is in force changes nothing
    assert drift(runs["ko"]) == ()
    assert "language: ko" in export_experiment(runs["ko"])
    assert "language" not in export_experiment(runs["en"])


def other_judge(project: Project, judge: JudgeVersion) -> JudgeVersion:
    return make_judge(project, endpoint=judge.endpoint, language="ko")


def test_run_pins_the_active_and_the_named_versions(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    assert assigned_rubrics(answers, judge) == [(FAMILY, 1, True, "active")]
    draft(project, reworded_rubric(), by=None)
    assert assigned_rubrics(answers, judge) == [(FAMILY, 1, True, "active")]
    two_versions = [(FAMILY, 2, True, "draft"), (FAMILY, 1, False, "active")]
    assert assigned_rubrics(answers, judge, f"{FAMILY}@2", f"{FAMILY}@1") == two_versions
    activate(RubricVersion.objects.get(family=FAMILY, version=2), judge, by=None, reason="why")
    assert assigned_rubrics(answers, judge) == [(FAMILY, 2, True, "active")]
    with pytest.raises(DomainError, match="rubric_not_used"):
        assigned_rubrics(answers, judge, "claims@1")
    with pytest.raises(DomainError, match="rubric_of_baseline"):
        assigned_rubrics(answers, baseline_judge(project, "en"), f"{FAMILY}@2")


def test_draft_never_judges_a_sealed_answer_or_its_copy(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    sealed = answers.answers.order_by("pk")[1]
    question_hash, text_hash = seal_key(sealed)
    SealedAnswer.objects.create(project=project, question_hash=question_hash, text_hash=text_hash)
    draft(project, reworded_rubric(), by=None)
    profile = profile_row(project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(rubrics=[f"{FAMILY}@2", f"{FAMILY}@1"]), judge=judge)
    judged: dict[int, set[int]] = {}
    for unit in planned_units(run):
        if unit.kind == WorkUnit.Kind.JUDGE and unit.run_judge and unit.run_judge.rubric_version.family == FAMILY:
            assert unit.answer is not None
            judged.setdefault(unit.run_judge.rubric_version.version, set()).add(unit.answer.pk)
    assert judged[1] - judged[2] == {sealed.pk}
    plan, units = plan_draft(run), list(planned_units(run))
    assert (plan.units, plan.answers) == (len(units), len({unit.answer_id for unit in units}))
    assert plan.calls == sum(unit.kind == WorkUnit.Kind.JUDGE for unit in units)


def test_draft_does_not_judge_answers_still_to_be_collected(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    AnswerSet.objects.filter(pk=answers.pk).update(content_hash=None)
    answers.refresh_from_db()
    draft(project, reworded_rubric(), by=None)
    profile = profile_row(project, "graphrag")
    with pytest.raises(DomainError, match="rubric_needs_answers"):
        prepare_run(answers, profile, RunSpec(rubrics=[f"{FAMILY}@2"]), judge=judge)
    assert prepare_run(answers, profile, RunSpec(rubrics=[f"{FAMILY}@1"]), judge=judge).pk


def test_commands_draft_show_compare_and_activate(project: Project, judge: JudgeVersion, tmp_path: Path) -> None:
    def run_rubric_command(*words: str) -> str:
        out = StringIO()
        call_command("rubric", *words, stdout=out)
        return out.getvalue().strip()

    file = tmp_path / "mine.yaml"
    file.write_text(rubric_yaml(reworded_rubric()), encoding="utf-8")
    assert run_rubric_command("draft", str(file), "--note", "dates") == f"{FAMILY}@2"
    assert run_rubric_command("show", f"{FAMILY}@2") == rubric_yaml(reworded_rubric()).strip()
    assert "+instruction: Grade one answer." in run_rubric_command("diff", f"{FAMILY}@2").splitlines()
    assert f"{FAMILY}@2\ten\tdraft\t{judge.name}\tdates" in run_rubric_command("list", FAMILY).splitlines()
    run_rubric_command("activate", f"{FAMILY}@2", "--reason", "dates")
    assert f"{FAMILY}@2\ten\tactive\t{judge.name}\tdates" in run_rubric_command("list", FAMILY).splitlines()
    run_rubric_command("retire", FAMILY, "--reason", "worse")
    assert f"{FAMILY}@2\ten\tretired\t{judge.name}\tdates" in run_rubric_command("list", FAMILY).splitlines()


def test_rest_drafts_for_evaluators_and_activates_for_leads(project: Project, judge: JudgeVersion) -> None:
    evaluator, lead, viewer = (Caller(role, project) for role in (Role.EVALUATOR, Role.LEAD, Role.VIEWER))
    assert viewer.post("rubrics/", {"text": rubric_yaml(reworded_rubric())}).status_code in {400, 403}
    response = evaluator.post("rubrics/", {"text": rubric_yaml(reworded_rubric()), "note": "dates"})
    assert (response.status_code, response.json()["version"], response.json()["project"]) == (201, 2, project.pk)
    assert evaluator.post("rubrics/", {"text": "family: x"}).status_code == 400
    assert evaluator.post("rubrics/", {"text": rubric_yaml(reworded_rubric("\u200b"))}).status_code == 409
    url, body = f"rubrics/{response.json()['id']}/", {"judge": judge.pk, "reason": "dates"}
    assert evaluator.post(f"{url}activate/", body).status_code == 403
    assert lead.post(f"{url}activate/", {"judge": judge.pk, "reason": ""}).status_code == 400
    assert lead.post(f"{url}activate/", body).status_code == 200
    assert [e["verb"] for e in viewer.get(f"{url}events/").json()["results"]] == ["activated"]
    foreign_lead = Caller(Role.LEAD, make_project())
    assert foreign_lead.get(url).status_code == 404
    assert foreign_lead.post(f"{url}activate/", body).status_code == 404
    assert (
        Caller(Role.LEAD, make_project())
        .post(f"rubrics/{shipped_rubric_row(FAMILY, 'en').pk}/activate/", body)
        .status_code
        == 404
    )


def test_rest_starts_a_run_with_a_named_version(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    draft(project, reworded_rubric(), by=None)
    run = launch_run(answers, RunSpec(profile="graphrag", judge=judge.name, rubrics=(f"{FAMILY}@2",)), None)
    assignment = run.judges.get(rubric_version__family=FAMILY, judge_version=judge)
    assert (assignment.rubric_version.version, assignment.standing) == (2, "draft")
