"""The workbench: what it shows of examples and validation, what can be done there and by whom, and that nothing on it
is of a hold-out answer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.models import RubricVersion, Run, VersionStatus
from evaluation.worker.lifecycle import planned_units
from review.calibration import holdout_tests, judge_budget, workbench
from review.calibration.workbench import (
    DisagreementFilter,
    disagreements,
    load_workbench,
    measure_version,
    version_history,
)
from review.models import Exposure, GoldItem, GoldSet, HoldoutTest, Search, SearchResult
from tests.factories import make_user
from tests.jobs import catch_rings, work
from tests.pages.markup import compact
from tests.review.builders import metric, run_over, score
from tests.review.calibration.labelled import FAMILY, reworded
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


def judged(place: Place, version: RubricVersion, off: Any) -> None:
    """Verdicts of a version on every open answer: the label and so much beside it."""
    row, run = metric("correctness"), run_over(place.run.answer_set, judged=False)
    for number, item in enumerate(place.gold.items.exclude(split="hold_out").select_related("answer")):
        value = max(1.0, min(5.0, item.label + off(number)))
        more = {"judge_version": place.judge, "rubric_version": version, "reason": f"because {number}"}
        score(run, item.answer, row, value, **more)


def client_of(place: Place, role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role, place.run.project))
    return client


def here(place: Place, version: RubricVersion, **more: Any) -> dict[str, Any]:
    return {"judge": place.judge.pk, "family": FAMILY, "rubric": version.pk, **more}


def test_the_loss_on_validation_is_the_weighted_mean_square_with_its_interval(place: Place) -> None:
    bench = load_workbench(place.gold, place.judge, FAMILY)
    active = bench.active
    (none,) = measure_version(bench, active)
    assert (none.n, none.total, none.loss) == (0, 72, None)
    judged(place, active, lambda number: 0.0)
    bench = load_workbench(place.gold, place.judge, FAMILY)
    (exact,) = measure_version(bench, active, resamples=50)
    # every verdict is the label: a loss of 0, which does not vary and has no interval
    assert (exact.n, exact.loss, exact.low, exact.high) == (72, 0.0, None, None)
    version = place.drafted("other words")
    judged(place, version, lambda number: 1.0 if number % 2 else -1.0)
    bench = load_workbench(place.gold, place.judge, FAMILY)
    (found,) = measure_version(bench, version, resamples=50)
    items = bench.validation_items(metric("correctness").pk)
    squares = [
        ((bench.verdicts[version.pk][one.answer_id, one.metric_id].value or 0) - one.label) ** 2 for one in items
    ]
    assert found.loss == pytest.approx(sum(squares) / 72)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.loss < found.high
    assert [row.version.version for row in version_history(bench)] == [1, 2]


def test_disagreements_are_filtered_by_direction_size_and_category(place: Place) -> None:
    version = place.drafted("other words")
    judged(place, version, lambda number: (0.0, 1.0, -2.0)[number % 3])
    bench = load_workbench(place.gold, place.judge, FAMILY)
    every = disagreements(bench, version, DisagreementFilter())
    assert [abs(one.distance) for one in every] == sorted((abs(one.distance) for one in every), reverse=True)
    more, less = (disagreements(bench, version, DisagreementFilter(direction=side)) for side in (1, -1))
    assert (len(more) + len(less), {one.distance > 0 for one in more}) == (len(every), {True})
    assert all(abs(one.distance) >= 1.5 for one in disagreements(bench, version, DisagreementFilter(min_distance=1.5)))
    tables = disagreements(bench, version, DisagreementFilter(category="tables"))
    assert {one.item.category for one in tables} == {"tables"}
    assert disagreements(bench, version, DisagreementFilter(metric=10**6)) == []


def test_a_draft_without_verdicts_stands_beside_the_disagreements_of_the_version_in_force(place: Place) -> None:
    judged(place, place.slot.active, lambda number: 2.0)
    version = place.drafted("new")
    found = disagreements(load_workbench(place.gold, place.judge, FAMILY), version, DisagreementFilter())
    assert found
    assert {one.version for one in found} == {place.slot.active}


def test_the_page_shows_no_text_of_a_hold_out_answer_and_records_what_it_showed(place: Place) -> None:
    version = place.drafted("<script>alert(1)</script>")
    for one in (version, place.slot.active):
        judged(place, one, lambda number: 1.0 if number % 2 else -1.0)
    held = set(place.gold.items.filter(split="hold_out").values_list("answer__text", flat=True))
    lead = client_of(place, Role.LEAD)
    at = reverse("calibration", args=[place.gold.pk])
    for page in (0, 1, 2, 14):
        shown = lead.get(at, here(place, version, page=page)).content.decode()
        assert not held & set(re.findall(r"Answer \d+, worth \d\.", shown))
        assert "<script>alert(1)" not in shown
    assert "because" in lead.get(at).content.decode()
    assert not Exposure.objects.exists()  # the person has nothing to rate


def test_pages_name_metrics_and_how_versions_were_made_in_the_reader_s_language(place: Place) -> None:
    version = place.drafted("other words")
    for one, off in ((place.slot.active, 1.0), (version, -1.0)):
        judged(place, one, lambda number, off=off: off if number % 3 else 0.0)
    told = dict.fromkeys(("n", "loss", "gain", "low", "high", "share"), 0.5)
    search = Search.objects.create(gold_set=place.gold, judge_version=place.judge, family=FAMILY, active=version)
    made = [{"version": 1, "kind": kind, "metric": "correctness"} | told for kind in ("diverse", "round 2", "map")]
    SearchResult.objects.create(search=search, outcome=SearchResult.Outcome.NOTHING_BETTER, figures=made)
    lead = client_of(place, Role.LEAD)
    pages = [reverse("calibration-list"), reverse("calibration", args=[place.gold.pk])]
    for at, asked in ((pages[0], {}), (pages[1], here(place, version))):
        shown = lead.get(at, asked, headers={"accept-language": "ko"}).content.decode()
        read = compact(re.sub(r"<textarea.*?</textarea>|<pre.*?</pre>", "", shown, flags=re.DOTALL))
        assert metric("correctness").title["ko"] in read
        assert "correctness" not in read
    assert "수준과 범주를 고루 담은 예시" in read
    assert "다시 쓰기 2라운드" in read
    assert not re.search(r">(diverse|round 2|map)<", read)


def test_a_score_of_a_draft_on_a_hold_out_answer_is_in_no_figure(place: Place) -> None:
    version = place.drafted("made before the freeze")
    judged(place, version, lambda number: 1.0)
    before = load_workbench(place.gold, place.judge, FAMILY)
    told = [(one.n, one.loss) for one in measure_version(before, version)]
    row = metric("correctness")
    for item in place.gold.items.filter(split="hold_out").select_related("answer"):
        score(place.run, item.answer, row, 5, judge_version=place.judge, rubric_version=version)
    after = load_workbench(place.gold, place.judge, FAMILY)
    assert [(one.n, one.loss) for one in measure_version(after, version)] == told
    held = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    assert not held & {answer for answer, _ in after.verdicts[version.pk]}


def test_what_another_gold_set_locks_is_not_open_here(place: Place) -> None:
    from review.calibration.versions import freeze

    other = freeze(place.run, "other", by=None, seed=5)
    locked = set(GoldItem.objects.filter(split="hold_out").values_list("answer_id", flat=True))
    items = load_workbench(other, place.judge, FAMILY).items
    assert items
    assert not locked & {one.answer_id for one in items}


def test_an_evaluator_drafts_and_a_lead_looks_in_the_browser(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rung = catch_rings(monkeypatch)
    evaluator, lead = client_of(place, Role.EVALUATOR), client_of(place, Role.LEAD)
    at = reverse("calibration", args=[place.gold.pk])
    active = place.slot.active
    text = rubric_yaml(reworded("SKILLED"))
    posted = evaluator.post(
        reverse("calibration-draft", args=[place.gold.pk]), here(place, active, text=text, note="why")
    )
    version = RubricVersion.objects.get(note="why")
    assert posted.headers["Location"].endswith(f"rubric={version.pk}")
    evaluator.post(reverse("calibration-propose", args=[place.gold.pk]), here(place, version))
    assert place.slot.status_of(version) == VersionStatus.CANDIDATE
    look = reverse("calibration-holdout-test", args=[place.gold.pk])
    assert evaluator.post(look, here(place, version)).status_code == 403
    assert b"Take a look</button>" not in evaluator.get(at).content
    assert b"Take a look</button>" in lead.get(at).content
    lead.post(look, here(place, version))
    assert b"under way" in lead.get(at, here(place, version)).content
    work(holdout_tests.advance_holdout_test, rung[0])
    assert HoldoutTest.objects.get().result.outcome == "accepted"
    page = compact(lead.get(at, here(place, version)).content.decode())
    assert "<b>accepted</b>" in page
    lead.post(look, here(place, version))  # in force already: refused in words
    assert b"works by" in lead.get(at, here(place, version)).content


def test_a_text_that_cannot_be_a_draft_is_said_beside_it_and_stays(place: Place) -> None:
    evaluator = client_of(place, Role.EVALUATOR)
    at = reverse("calibration-draft", args=[place.gold.pk])
    for text in (
        "- no rubric",
        rubric_yaml(reworded("x")).replace("value: 5", "value: 6"),
        rubric_yaml(reworded("x")).replace("answer_quality", "claims"),
    ):
        reply = evaluator.post(at, here(place, place.slot.active, text=text, note="mine"))
        page = reply.context["page"]
        assert (reply.status_code, page.draft_input.text.strip(), page.draft_input.note) == (400, text.strip(), "mine")
        assert page.draft_input.errors
    assert not RubricVersion.objects.filter(project=place.run.project).exists()


def test_trying_one_answer_keeps_nothing_and_is_for_open_answers_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "find_response_format", judge_budget.find_response_format)
    version, evaluator = place.drafted("SKILLED"), client_of(place, Role.EVALUATOR)
    at = reverse("calibration-try", args=[place.gold.pk])
    opened = place.gold.items.filter(split="examples").first()
    held = place.gold.items.filter(split="hold_out").first()
    assert opened is not None
    assert held is not None
    page = evaluator.post(at, here(place, version, answer=opened.answer_id)).context["page"]
    told = {title: one.value for title, one in page.trial.results}
    assert len(place.script.calls) == 1
    assert set(told.values()) == {float(re.findall(r"worth (\d)", opened.answer.text)[0])}
    refused = evaluator.post(at, here(place, version, answer=held.answer_id), follow=True)
    assert b"not among the examples and validation answers" in refused.content
    assert len(place.script.calls) == 1
    assert not Run.objects.exclude(pk=place.run.pk).exists()


def test_a_run_at_the_bench_judges_open_answers_by_both_versions(place: Place) -> None:
    version, evaluator = place.drafted("SKILLED"), client_of(place, Role.EVALUATOR)
    evaluator.post(reverse("calibration-run", args=[place.gold.pk]), here(place, version))
    run = Run.objects.exclude(pk=place.run.pk).get()
    held = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    units = list(planned_units(run))
    assert len(units) == 2 * 120
    assert not held & {unit.answer_id for unit in units}
    assert {(one.rubric_version.version, one.standing, one.primary) for one in run.judges.all()} == {
        (2, "draft", True),
        (1, "active", False),
    }


def test_a_lead_freezes_and_grows_in_the_browser_and_others_do_not(place: Place) -> None:
    lead, evaluator = client_of(place, Role.LEAD), client_of(place, Role.EVALUATOR)
    body = {"run": place.run.pk, "name": "second"}
    assert evaluator.post(reverse("calibration-freeze"), body).status_code == 403
    lead.post(reverse("calibration-freeze"), body)
    made = GoldSet.objects.get(name="second")
    told = lead.post(reverse("calibration-freeze"), body, follow=True)
    assert b"already" in told.content
    told = lead.post(reverse("calibration-grow", args=[made.pk]), body, follow=True)
    assert b"blind" in told.content  # nothing new to add
    assert evaluator.get(reverse("calibration-list")).status_code == 200


def test_another_project_is_not_there(place: Place) -> None:
    stranger = Client()
    stranger.force_login(make_user(Role.LEAD, None))
    assert stranger.get(reverse("calibration", args=[place.gold.pk])).status_code == 404
    for name in ("draft", "try", "run", "propose", "holdout-test", "grow"):
        assert stranger.post(reverse(f"calibration-{name}", args=[place.gold.pk])).status_code == 404


@pytest.mark.parametrize("wrong", [{"judge": "x"}, {"judge": "99999"}, {"family": "claims"}])
def test_what_is_not_there_is_not_found_and_odd_filters_are_ignored(place: Place, wrong: dict[str, str]) -> None:
    evaluator = client_of(place, Role.EVALUATOR)
    at = reverse("calibration", args=[place.gold.pk])
    assert evaluator.get(at, wrong).status_code == 404
    odd = {"metric": "x", "toward": "9", "least": "nan", "page": "-1", "rubric": "7.5", "category": "none"}
    assert evaluator.get(at, odd).status_code == 200


def test_what_was_not_proved_is_not_watched(place: Place) -> None:
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    about = {"judge": place.judge.pk, "family": "answer_quality"}
    lead.post(reverse("calibration-check", args=[place.gold.pk]), about)
    assert "has not proved itself" in lead.get(reverse("calibration", args=[place.gold.pk])).content.decode()
