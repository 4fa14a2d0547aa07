"""Versions of judge prompts: drafted, put in force for a judge, pinned by runs, and kept away from sealed answers."""

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


def reworded(text: str = "Grade one answer.", language: str = "en", **more: Any) -> Rubric:
    return shipped_rubric(FAMILY, language).model_copy(update={"instruction": text, **more})


@pytest.mark.parametrize("shipped", shipped_rubrics(), ids=lambda one: f"{one.family}-{one.language}")
def test_every_shipped_rubric_passes_and_survives_being_written(shipped: Rubric) -> None:
    check_draft(shipped)
    assert parse_rubric(rubric_yaml(shipped)).content_hash == shipped.content_hash


def test_words_may_differ_and_nothing_else() -> None:
    check_draft(reworded())
    first, *others = shipped_rubric(FAMILY, "en").metrics
    for wrong, part in (
        ({"metrics": tuple(others)}, "metrics"),
        ({"metrics": (first.model_copy(update={"levels": first.levels[1:]}), *others)}, "levels"),
        ({"metrics": (first.model_copy(update={"scale": "real 1..5"}), *others)}, "scale"),
        ({"closing": "Grade it."}, "{metrics}"),
    ):
        with pytest.raises(DomainError) as refused:
            check_draft(reworded(**wrong))
        assert (refused.value.code, part in refused.value.params["parts"]) == ("rubric_differs", True)


@given(st.sampled_from("\u200b\u202e\ufeff\x00\x1b\ue000\u0378\u2028\u2029"))
def test_characters_that_nobody_sees_are_refused(hidden: str) -> None:
    with pytest.raises(DomainError, match="rubric_unseen"):
        check_draft(reworded(f"Grade{hidden} it."))


def test_placeholders_in_a_draft_are_plain_text() -> None:
    # nothing is formatted: only the closing's own slot is replaced
    assert "{question} {{ x }} %s" in reworded("{question} {{ x }} %s").system_text(["correctness"])


def test_differences_are_lines_of_a_diff() -> None:
    lines = unified_diff(shipped_rubric(FAMILY, "en"), reworded(), ("before", "after"))
    assert lines[:2] == ["--- before", "+++ after"]
    assert "+instruction: Grade one answer." in lines
    assert unified_diff(reworded(), reworded(), ("a", "b")) == []


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def judge(project: Project) -> JudgeVersion:
    endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
    return make_judge(project, endpoint=endpoint)


def test_a_draft_is_the_next_version_and_equal_content_the_same(project: Project) -> None:
    made = draft(project, reworded(), by=None, note="Too lenient about dates")
    shipped = shipped_rubric_row(FAMILY, "en")
    assert (made.version, made.project, made.note) == (shipped.version + 1, project, "Too lenient about dates")
    assert draft(project, reworded(), by=None) == made
    assert AuditEvent.objects.filter(verb="rubric.drafted").count() == 1
    elsewhere = draft(make_project(), reworded(), by=None)
    assert (elsewhere.pk == made.pk, elsewhere.version) == (False, made.version + 1)


def test_a_version_is_in_force_for_one_judge_from_its_activation_to_its_retirement(
    project: Project, judge: JudgeVersion
) -> None:
    slot, shipped = rubric_scope(judge, FAMILY), shipped_rubric_row(FAMILY, "en")
    first, second = draft(project, reworded(), by=None), draft(project, reworded("Grade."), by=None)
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
    other = make_judge(project, endpoint=judge.endpoint)
    assert version_statuses(rubric_scope(other, FAMILY)).status_of(first) == VersionStatus.DRAFT


def test_what_makes_no_sense_is_refused(project: Project, judge: JudgeVersion) -> None:
    made = draft(project, reworded(), by=None)
    with pytest.raises(DomainError, match="reason_required"):
        activate(made, judge, by=None, reason="  ")
    with pytest.raises(DomainError, match="rubric_not_activated"):
        retire(judge, FAMILY, by=None, reason="why")
    with pytest.raises(DomainError, match="rubric_active"):
        activate(shipped_rubric_row(FAMILY, "en"), judge, by=None, reason="why")
    with pytest.raises(DomainError, match="rubric_other_language"):
        activate(draft(project, reworded("채점", "ko"), by=None), judge, by=None, reason="why")
    with pytest.raises(UnknownName):
        activate(draft(make_project(), reworded("Else"), by=None), judge, by=None, reason="why")
    with pytest.raises(UnknownName):
        find_version(project.pk, "en", "answer_quality@99")
    assert not RubricEvent.objects.exists()


def test_the_database_keeps_the_ground_of_an_activation(project: Project, judge: JudgeVersion) -> None:
    event = activate(draft(project, reworded(), by=None), judge, by=None, reason="why")
    row = {name: getattr(event, name) for name in ("project", "judge", "family", "language", "version")}
    with pytest.raises(DatabaseError), transaction.atomic():
        RubricEvent.objects.create(seq=2, verb="activated", ground="decided", reason="", **row)
    with pytest.raises(DatabaseError), transaction.atomic():
        RubricEvent.objects.filter(pk=event.pk).update(reason="other")


def seats(answers: AnswerSet, judge: JudgeVersion, *rubrics: str) -> list[tuple[str, int, bool, str]]:
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(rubrics=rubrics), judge=judge)
    rows = RunJudge.objects.filter(run=run, rubric_version__family=FAMILY).order_by("pk")
    return [(one.rubric_version.family, one.rubric_version.version, one.primary, one.standing) for one in rows]


def test_a_run_may_be_judged_in_another_language_than_the_judge_s_own(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    activate(draft(project, reworded("채점", "ko"), by=None), other_judge(project, judge), by=None, reason="why")
    made = {
        language: prepare_run(answers, profile_row(project, "graphrag"), RunSpec(language=language), judge=judge)
        for language in ("", "ko", "en")
    }
    rows = RunJudge.objects.filter(rubric_version__family=FAMILY).select_related("rubric_version")
    used = {language: rows.get(run=run).rubric_version for language, run in made.items()}
    shipped = {language: shipped_rubric_row(FAMILY, language) for language in ("en", "ko")}
    assert used == {"": shipped["en"], **shipped}  # that another judge's Korean prompt is in force changes nothing
    assert drift(made["ko"]) == ()
    assert "language: ko" in export_experiment(made["ko"])
    assert "language" not in export_experiment(made["en"])


def other_judge(project: Project, judge: JudgeVersion) -> JudgeVersion:
    return make_judge(project, endpoint=judge.endpoint, language="ko")


def test_a_run_pins_the_version_in_force_and_those_it_names(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    assert seats(answers, judge) == [(FAMILY, 1, True, "active")]
    draft(project, reworded(), by=None)
    assert seats(answers, judge) == [(FAMILY, 1, True, "active")]
    both = [(FAMILY, 2, True, "draft"), (FAMILY, 1, False, "active")]
    assert seats(answers, judge, f"{FAMILY}@2", f"{FAMILY}@1") == both
    activate(RubricVersion.objects.get(family=FAMILY, version=2), judge, by=None, reason="why")
    assert seats(answers, judge) == [(FAMILY, 2, True, "active")]
    with pytest.raises(DomainError, match="rubric_not_used"):
        seats(answers, judge, "claims@1")
    with pytest.raises(DomainError, match="rubric_of_baseline"):
        seats(answers, baseline_judge(project, "en"), f"{FAMILY}@2")


def test_a_draft_makes_no_verdict_on_a_sealed_answer_nor_on_a_copy_of_it(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    sealed = answers.answers.order_by("pk")[1]
    question_hash, text_hash = seal_key(sealed)
    SealedAnswer.objects.create(project=project, question_hash=question_hash, text_hash=text_hash)
    draft(project, reworded(), by=None)
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


def test_a_draft_does_not_judge_answers_that_are_still_to_be_asked_for(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    AnswerSet.objects.filter(pk=answers.pk).update(content_hash=None)
    answers.refresh_from_db()
    draft(project, reworded(), by=None)
    profile = profile_row(project, "graphrag")
    with pytest.raises(DomainError, match="rubric_needs_answers"):
        prepare_run(answers, profile, RunSpec(rubrics=[f"{FAMILY}@2"]), judge=judge)
    assert prepare_run(answers, profile, RunSpec(rubrics=[f"{FAMILY}@1"]), judge=judge).pk


def test_commands_draft_show_compare_and_put_in_force(project: Project, judge: JudgeVersion, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        out = StringIO()
        call_command("rubric", *words, stdout=out)
        return out.getvalue().strip()

    file = tmp_path / "mine.yaml"
    file.write_text(rubric_yaml(reworded()), encoding="utf-8")
    assert said("draft", str(file), "--note", "dates") == f"{FAMILY}@2"
    assert said("show", f"{FAMILY}@2") == rubric_yaml(reworded()).strip()
    assert "+instruction: Grade one answer." in said("diff", f"{FAMILY}@2").splitlines()
    assert f"{FAMILY}@2\ten\tdraft\t{judge.name}\tdates" in said("list", FAMILY).splitlines()
    said("activate", f"{FAMILY}@2", "--reason", "dates")
    assert f"{FAMILY}@2\ten\tactive\t{judge.name}\tdates" in said("list", FAMILY).splitlines()
    said("retire", FAMILY, "--reason", "worse")
    assert f"{FAMILY}@2\ten\tretired\t{judge.name}\tdates" in said("list", FAMILY).splitlines()


def test_rest_drafts_for_evaluators_and_activates_for_leads(project: Project, judge: JudgeVersion) -> None:
    evaluator, lead, viewer = (Caller(role, project) for role in (Role.EVALUATOR, Role.LEAD, Role.VIEWER))
    assert viewer.post("rubrics/", {"text": rubric_yaml(reworded())}).status_code in {400, 403}
    made = evaluator.post("rubrics/", {"text": rubric_yaml(reworded()), "note": "dates"})
    assert (made.status_code, made.json()["version"], made.json()["project"]) == (201, 2, project.pk)
    assert evaluator.post("rubrics/", {"text": "family: x"}).status_code == 400
    assert evaluator.post("rubrics/", {"text": rubric_yaml(reworded("\u200b"))}).status_code == 409
    at, body = f"rubrics/{made.json()['id']}/", {"judge": judge.pk, "reason": "dates"}
    assert evaluator.post(f"{at}activate/", body).status_code == 403
    assert lead.post(f"{at}activate/", {"judge": judge.pk, "reason": ""}).status_code == 400
    assert lead.post(f"{at}activate/", body).status_code == 200
    assert [e["verb"] for e in viewer.get(f"{at}events/").json()["results"]] == ["activated"]
    stranger = Caller(Role.LEAD, make_project())
    assert stranger.get(at).status_code == 404
    assert stranger.post(f"{at}activate/", body).status_code == 404
    assert (
        Caller(Role.LEAD, make_project())
        .post(f"rubrics/{shipped_rubric_row(FAMILY, 'en').pk}/activate/", body)
        .status_code
        == 404
    )


def test_rest_starts_a_run_with_a_named_version(project: Project, judge: JudgeVersion) -> None:
    answers = make_answer_set(make_question_set(project))
    draft(project, reworded(), by=None)
    run = launch_run(answers, RunSpec(profile="graphrag", judge=judge.name, rubrics=(f"{FAMILY}@2",)), None)
    used = run.judges.get(rubric_version__family=FAMILY, judge_version=judge)
    assert (used.rubric_version.version, used.standing) == (2, "draft")
