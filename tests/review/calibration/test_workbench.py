"""Calibration workbench: examples and validation answers, permitted actions, and no hold-out content."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.models import RubricVersion, Run, VersionStatus
from evaluation.storage import append_only
from evaluation.worker.lifecycle import planned_units
from review.calibration import holdout_tests, judge_budget, workbench
from review.calibration.workbench import (
    DisagreementFilter,
    closeness_changes,
    disagreements,
    load_workbench,
    measure_version,
    version_history,
)
from review.models import Exposure, GoldItem, GoldSet, HoldoutTest, Rating, Search, SearchResult
from tests.factories import make_user
from tests.jobs import record_wakeups, work_on_job
from tests.pages.markup import compact
from tests.review.builders import imported_rating, metric, run_over, score
from tests.review.calibration.labelled import FAMILY, rubric_with_instruction
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


def score_open_answers(place: CalibrationSetup, version: RubricVersion, offset_of: Any) -> None:
    """Score every open answer with its label plus ``offset_of(number)``."""
    row, run = metric("correctness"), run_over(place.run.answer_set, judged=False)
    run.judges.create(judge_version=place.judge, rubric_version=version, primary=True)
    for number, item in enumerate(place.gold.items.exclude(split="hold_out").select_related("answer")):
        value = max(1.0, min(5.0, item.label + offset_of(number)))
        fields = {"judge_version": place.judge, "rubric_version": version, "reason": f"because {number}"}
        score(run, item.answer, row, value, **fields)


def client_of(place: CalibrationSetup, role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role, place.run.project))
    return client


def page_params(place: CalibrationSetup, version: RubricVersion, **params: Any) -> dict[str, Any]:
    return {"judge": place.judge.pk, "family": FAMILY, "rubric": version.pk, **params}


def test_validation_loss_is_the_weighted_mean_square_with_its_interval(place: CalibrationSetup) -> None:
    workbench = load_workbench(place.gold, place.judge, FAMILY)
    active = workbench.active
    (none,) = measure_version(workbench, active)
    assert (none.n, none.total, none.loss) == (0, 72, None)
    score_open_answers(place, active, lambda number: 0.0)
    workbench = load_workbench(place.gold, place.judge, FAMILY)
    (exact,) = measure_version(workbench, active, resamples=50)
    # every verdict is the label: a loss of 0, which does not vary and has no interval
    assert (exact.n, exact.loss, exact.low, exact.high) == (72, 0.0, None, None)
    version = place.create_draft("other words")
    score_open_answers(place, version, lambda number: 1.0 if number % 2 else -1.0)
    workbench = load_workbench(place.gold, place.judge, FAMILY)
    (measures,) = measure_version(workbench, version, resamples=50)
    items = workbench.validation_items(metric("correctness").pk)
    squares = [
        ((workbench.scores_by_version[version.pk][item.answer_id, item.metric_id].value or 0) - item.label) ** 2
        for item in items
    ]
    assert measures.loss == pytest.approx(sum(squares) / 72)
    assert measures.low is not None
    assert measures.high is not None
    assert measures.low < measures.loss < measures.high
    assert [row.version.version for row in version_history(workbench)] == [1, 2]


def test_disagreements_are_filtered_by_direction_size_and_category(place: CalibrationSetup) -> None:
    version = place.create_draft("other words")
    score_open_answers(place, version, lambda number: (0.0, 1.0, -2.0)[number % 3])
    workbench = load_workbench(place.gold, place.judge, FAMILY)
    rows = disagreements(workbench, version, DisagreementFilter())
    assert [abs(row.distance) for row in rows] == sorted((abs(row.distance) for row in rows), reverse=True)
    too_high, too_low = (
        disagreements(workbench, version, DisagreementFilter(direction=direction)) for direction in (1, -1)
    )
    assert (len(too_high) + len(too_low), {row.distance > 0 for row in too_high}) == (len(rows), {True})
    assert all(
        abs(row.distance) >= 1.5 for row in disagreements(workbench, version, DisagreementFilter(min_distance=1.5))
    )
    tables = disagreements(workbench, version, DisagreementFilter(category="tables"))
    assert {row.item.category for row in tables} == {"tables"}
    assert disagreements(workbench, version, DisagreementFilter(metric=10**6)) == []


def test_draft_without_verdicts_is_not_judged_yet(place: CalibrationSetup) -> None:
    score_open_answers(place, place.statuses.active, lambda number: 2.0)
    version, lead = place.create_draft("new"), client_of(place, Role.LEAD)
    assert disagreements(load_workbench(place.gold, place.judge, FAMILY), version, DisagreementFilter()) == []
    url = reverse("calibration", args=[place.gold.pk])
    page = compact(lead.get(url, page_params(place, version)).content.decode())
    assert f"{version} has not judged these answers yet." in page
    assert f"Disagreements of {place.statuses.active}" in page
    assert "because" not in page


def test_disagreement_shows_what_is_needed_to_judge_it(place: CalibrationSetup) -> None:
    version = place.create_draft("new")
    item = place.gold.items.filter(split="validation", label=3.5).select_related("answer__question")[0]
    imported_rating(item.answer, metric("correctness"), "later", 2, comment="Not part of the gold set")
    with append_only.suspended():
        Rating.objects.filter(pk=item.ratings[0][0]).update(comment="The date is wrong")
    columns = {"judge_version": place.judge, "rubric_version": version, "reason": "All dates agree"}
    score(place.run, item.answer, metric("correctness"), 5, **columns)
    lead = client_of(place, Role.LEAD)
    reply = lead.get(reverse("calibration", args=[place.gold.pk]), page_params(place, version))
    page = compact(html.unescape(reply.content.decode()))
    question = item.answer.question.read()
    levels = {level.value: level.text for level in version.rubric.metric("correctness").levels}
    for text in (
        *(question.text, *question.references, item.answer.text, "The date is wrong", "All dates agree"),
        *(f"<b>{value}: {levels[value]}</b>" for value in (3, 4, 5)),
        *(" / ".join(alternatives) for alternatives in question.keywords),
        *(context.text for context in item.answer.contexts.all()),
    ):
        assert text in page, text
    assert "Not part of the gold set" not in page


def test_closeness_is_the_agreement_of_both_versions_on_the_same_answers(place: CalibrationSetup) -> None:
    version = place.create_draft("new")
    score_open_answers(place, place.statuses.active, lambda number: (0.0, 2.0)[number % 2])
    score_open_answers(place, version, lambda number: (1.0, 3.0, 0.0)[number % 3])
    workbench = load_workbench(place.gold, place.judge, FAMILY)
    (change,) = closeness_changes(workbench, version)
    shares = [
        measure_version(workbench, row)[0].agreement.statistics["within_one"].value
        for row in (workbench.active, version)
    ]
    assert [change.before, change.after] == [pytest.approx(share) for share in shares]
    assert (change.tolerance, change.n, change.total) == (1.0, 72, 72)
    assert change.low is not None
    assert change.high is not None
    assert change.low < change.after - change.before < change.high
    assert closeness_changes(workbench, place.create_draft("unjudged")) == []


def test_page_shows_no_holdout_text_and_records_what_it_shows(place: CalibrationSetup) -> None:
    version = place.create_draft("<script>alert(1)</script>")
    for scored_version in (version, place.statuses.active):
        score_open_answers(place, scored_version, lambda number: 1.0 if number % 2 else -1.0)
    holdout = place.gold.items.filter(split="hold_out")
    holdout_texts = set(holdout.values_list("answer__text", flat=True))
    lead = client_of(place, Role.LEAD)
    url = reverse("calibration", args=[place.gold.pk])
    for page in (0, 1, 2, 14):
        body = lead.get(url, page_params(place, version, page=page)).content.decode()
        assert not holdout_texts & set(re.findall(r"Answer \d+, worth \d\.", body))
        assert "<script>alert(1)" not in body
    assert "because" in lead.get(url).content.decode()
    exposed_answers = set(Exposure.objects.values_list("object_id", flat=True))
    assert exposed_answers
    assert exposed_answers.isdisjoint(holdout.values_list("answer", flat=True))


def test_pages_name_metrics_and_strategies_in_the_users_language(place: CalibrationSetup) -> None:
    version = place.create_draft("other words")
    for scored_version, offset in ((place.statuses.active, 1.0), (version, -1.0)):
        score_open_answers(place, scored_version, lambda number, offset=offset: offset if number % 3 else 0.0)
    values = dict.fromkeys(("n", "loss", "gain", "low", "high", "share"), 0.5)
    search = Search.objects.create(gold_set=place.gold, judge_version=place.judge, family=FAMILY, active=version)
    figures = [{"version": 1, "kind": kind, "metric": "correctness"} | values for kind in ("diverse", "round 2", "map")]
    SearchResult.objects.create(search=search, outcome=SearchResult.Outcome.NOTHING_BETTER, figures=figures)
    lead = client_of(place, Role.LEAD)
    pages = [reverse("calibration-list"), reverse("calibration", args=[place.gold.pk])]
    for url, params in ((pages[0], {}), (pages[1], page_params(place, version))):
        body = lead.get(url, params, headers={"accept-language": "ko"}).content.decode()
        text = compact(re.sub(r"<textarea.*?</textarea>|<pre.*?</pre>", "", body, flags=re.DOTALL))
        assert metric("correctness").title["ko"] in text
        assert "correctness" not in text
    assert "수준과 범주를 고루 담은 예시" in text
    assert "다시 쓰기 2차" in text
    assert not re.search(r">(diverse|round 2|map)<", text)


def test_draft_score_of_a_holdout_answer_is_in_no_figure(place: CalibrationSetup) -> None:
    version = place.create_draft("made before the freeze")
    score_open_answers(place, version, lambda number: 1.0)
    workbench_before = load_workbench(place.gold, place.judge, FAMILY)
    losses_before = [(measures.n, measures.loss) for measures in measure_version(workbench_before, version)]
    row = metric("correctness")
    for item in place.gold.items.filter(split="hold_out").select_related("answer"):
        score(place.run, item.answer, row, 5, judge_version=place.judge, rubric_version=version)
    workbench_after = load_workbench(place.gold, place.judge, FAMILY)
    assert [(measures.n, measures.loss) for measures in measure_version(workbench_after, version)] == losses_before
    holdout_answers = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    assert not holdout_answers & {answer for answer, _ in workbench_after.scores_by_version[version.pk]}


def test_answer_locked_by_another_gold_set_is_not_open(place: CalibrationSetup) -> None:
    from review.calibration.versions import freeze

    other_gold = freeze(place.run, "other", by=None, seed=5)
    locked = set(GoldItem.objects.filter(split="hold_out").values_list("answer_id", flat=True))
    items = load_workbench(other_gold, place.judge, FAMILY).items
    assert items
    assert not locked & {item.answer_id for item in items}


@pytest.mark.slow
def test_evaluator_drafts_and_lead_tests_in_the_browser(
    place: CalibrationSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued = record_wakeups(monkeypatch)
    evaluator, lead = client_of(place, Role.EVALUATOR), client_of(place, Role.LEAD)
    url = reverse("calibration", args=[place.gold.pk])
    active = place.statuses.active
    text = rubric_yaml(rubric_with_instruction("SKILLED"))
    posted = evaluator.post(
        reverse("calibration-draft", args=[place.gold.pk]), page_params(place, active, text=text, note="why")
    )
    version = RubricVersion.objects.get(note="why")
    assert posted.headers["Location"].endswith(f"rubric={version.pk}#compare")
    evaluator.post(reverse("calibration-propose", args=[place.gold.pk]), page_params(place, version))
    assert place.statuses.status_of(version) == VersionStatus.CANDIDATE
    test_url = reverse("calibration-holdout-test", args=[place.gold.pk])
    assert evaluator.post(test_url, page_params(place, version)).status_code == 403
    assert b"Run hold-out test" not in evaluator.get(url).content
    assert b"Run hold-out test" in lead.get(url).content
    lead.post(test_url, page_params(place, version))
    assert b"Hold-out test running" in lead.get(url, page_params(place, version)).content
    work_on_job(holdout_tests.advance_holdout_test, enqueued[0])
    assert HoldoutTest.objects.get().result.outcome == "accepted"
    page = compact(lead.get(url, page_params(place, version)).content.decode())
    assert '<span class="big">accepted</span>' in page
    lead.post(test_url, page_params(place, version))  # in force already: refused in words
    assert b"already uses" in lead.get(url, page_params(place, version)).content


def test_invalid_draft_text_is_kept_with_its_errors(place: CalibrationSetup) -> None:
    evaluator = client_of(place, Role.EVALUATOR)
    url = reverse("calibration-draft", args=[place.gold.pk])
    for text in (
        "- no rubric",
        rubric_yaml(rubric_with_instruction("x")).replace("value: 5", "value: 6"),
        rubric_yaml(rubric_with_instruction("x")).replace("answer_quality", "claims"),
    ):
        reply = evaluator.post(url, page_params(place, place.statuses.active, text=text, note="mine"))
        page = reply.context["page"]
        assert (reply.status_code, page.draft_input.text.strip(), page.draft_input.note) == (400, text.strip(), "mine")
        assert page.draft_input.errors
    assert not RubricVersion.objects.filter(project=place.run.project).exists()


def test_trying_one_answer_stores_nothing_and_needs_an_open_answer(
    place: CalibrationSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "find_response_format", judge_budget.find_response_format)
    version, evaluator = place.create_draft("SKILLED"), client_of(place, Role.EVALUATOR)
    url = reverse("calibration-try", args=[place.gold.pk])
    open_item = place.gold.items.filter(split="examples").first()
    holdout_item = place.gold.items.filter(split="hold_out").first()
    assert open_item is not None
    assert holdout_item is not None
    page = evaluator.post(url, page_params(place, version, answer=open_item.answer_id)).context["page"]
    values = {title: value.value for title, value in page.trial.results}
    assert len(place.script.calls) == 1
    assert set(values.values()) == {float(re.findall(r"worth (\d)", open_item.answer.text)[0])}
    response = evaluator.post(url, page_params(place, version, answer=holdout_item.answer_id), follow=True)
    assert b"an example or validation answer of the gold set" in response.content
    assert len(place.script.calls) == 1
    assert not Run.objects.exclude(pk=place.run.pk).exists()


def test_workbench_run_judges_open_answers_by_both_versions(place: CalibrationSetup) -> None:
    version, evaluator = place.create_draft("SKILLED"), client_of(place, Role.EVALUATOR)
    evaluator.post(reverse("calibration-run", args=[place.gold.pk]), page_params(place, version))
    run = Run.objects.exclude(pk=place.run.pk).get()
    holdout_answers = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    units = list(planned_units(run))
    assert len(units) == 2 * 120
    assert not holdout_answers & {unit.answer_id for unit in units}
    assert {
        (run_judge.rubric_version.version, run_judge.standing, run_judge.primary) for run_judge in run.judges.all()
    } == {
        (2, "draft", True),
        (1, "active", False),
    }


def test_only_leads_freeze_and_grow_gold_sets_in_the_browser(place: CalibrationSetup) -> None:
    lead, evaluator = client_of(place, Role.LEAD), client_of(place, Role.EVALUATOR)
    body = {"run": place.run.pk, "name": "second"}
    assert evaluator.post(reverse("calibration-freeze"), body).status_code == 403
    lead.post(reverse("calibration-freeze"), body)
    gold = GoldSet.objects.get(name="second")
    response = lead.post(reverse("calibration-freeze"), body, follow=True)
    assert b"already" in response.content
    response = lead.post(reverse("calibration-grow", args=[gold.pk]), body, follow=True)
    assert b"blind" in response.content  # nothing new to add
    assert evaluator.get(reverse("calibration-list")).status_code == 200


def test_gold_set_of_another_project_is_not_found(place: CalibrationSetup) -> None:
    outsider = Client()
    outsider.force_login(make_user(Role.LEAD, None))
    assert outsider.get(reverse("calibration", args=[place.gold.pk])).status_code == 404
    for name in ("draft", "try", "run", "propose", "holdout-test", "grow"):
        assert outsider.post(reverse(f"calibration-{name}", args=[place.gold.pk])).status_code == 404


@pytest.mark.parametrize("invalid", [{"judge": "x"}, {"judge": "99999"}, {"family": "claims"}])
def test_unknown_objects_are_not_found_and_invalid_filters_ignored(
    place: CalibrationSetup, invalid: dict[str, str]
) -> None:
    evaluator = client_of(place, Role.EVALUATOR)
    url = reverse("calibration", args=[place.gold.pk])
    assert evaluator.get(url, invalid).status_code == 404
    invalid_filters = {"metric": "x", "toward": "9", "least": "nan", "page": "-1", "rubric": "7.5", "category": "none"}
    assert evaluator.get(url, invalid_filters).status_code == 200


def test_unproved_version_has_no_anchor_check(place: CalibrationSetup) -> None:
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    params = {"judge": place.judge.pk, "family": "answer_quality"}
    lead.post(reverse("calibration-check", args=[place.gold.pk]), params)
    assert "approved. Only approved versions" in lead.get(reverse("calibration", args=[place.gold.pk])).content.decode()
