"""Custom criteria in expert review: rated by level texts, compared with the judge, corrected and reported."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge
from evaluation.models import CriterionVersion, Run, Score, User
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from review.evidence.rating_input import RatingInput
from review.models import Rating, ReviewQueue
from review.ratings.import_files import import_ratings
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from tests.evaluation.criteria.written import in_force
from tests.evaluation.scoring.families import make_profile_version
from tests.factories import make_answer_set, make_question_set, make_queue, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db
CLASSES = {
    "form": "class",
    "direction": "none",
    "ko": None,
    "en": {
        "question": "Which door?",
        "levels": [{"label": "open", "text": "Open to all"}, {"label": "shut", "text": "Shut to most"}],
    },
}


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def judged_run(questions: int = 6, **fields: Any) -> tuple[Run, CriterionVersion]:
    """Create a completed run with a criterion that the baseline scores by counting words."""
    answers = make_answer_set(make_question_set(specs=questions))
    version = in_force(answers.project, **({"offline": "relevancy"} | fields))
    profile = make_profile_version(answers, reported=[version.criterion.name, "keyword_hit"])
    run = prepare_run(answers, profile, judge=baseline_judge(answers.project, "en"))
    start(run)
    return drain(run.pk, seconds=30), version


def make_review_queue(run: Run, version: CriterionVersion, reviewer_count: int = 1, **fields: Any) -> ReviewQueue:
    reviewers = [make_user(Role.REVIEWER, run.project) for _ in range(reviewer_count)]
    return make_queue(run, reviewers, metrics=[version.criterion.name], reveal="never", **fields)


def rate_all(queue: ReviewQueue, user: User, value: float) -> None:
    name = queue.metrics.get().metric.name
    while assignment := next_assignment(queue, user):
        submit(assignment, {name: RatingInput(value)}, idempotency_key=str(assignment.pk), by=user)


def first_reviewer(queue: ReviewQueue) -> User:
    return queue.members.select_related("reviewer").first().reviewer  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("language", "texts"), [("ko", ("공손함", "고객에게 알맞은")), ("en", ("Polite", "Is the tone"))]
)
def test_review_form_shows_question_and_level_texts_in_the_users_language(
    client: Client, language: str, texts: tuple[str, ...]
) -> None:
    run, version = judged_run()
    queue = make_review_queue(run, version)
    user = first_reviewer(queue)
    User.objects.filter(pk=user.pk).update(language=language)
    assignment = next_assignment(queue, user)
    client.force_login(user)
    assert assignment is not None
    page = compact(
        client.get(reverse("review-item", args=[assignment.pk]), headers={"accept-language": language}).content.decode()
    )
    for text in texts:
        assert text in page
    for level in ("1", "2", "3"):
        assert f'name="value:{version.criterion.name}" value="{level}"' in page


def test_classes_are_chosen_by_their_texts(client: Client) -> None:
    run, version = judged_run(**CLASSES, offline="none")
    queue = make_review_queue(run, version)
    user = first_reviewer(queue)
    assignment = next_assignment(queue, user)
    client.force_login(user)
    assert assignment is not None
    page = client.get(reverse("review-item", args=[assignment.pk])).content.decode()
    assert "Open to all" in page
    assert "Shut to most" in page


def test_ratings_are_used_in_agreement_correction_and_report() -> None:
    run, version = judged_run()
    name = version.criterion.name
    queue = make_review_queue(run, version, reviewer_count=2, strategy="all", reviews_needed=2)
    for member, value in zip(queue.members.select_related("reviewer").order_by("pk"), (3, 2), strict=True):
        rate_all(queue, member.reviewer, value)
    assert Rating.objects.filter(metric__name=name, phase="initial", blind=True).count() == 12

    out = StringIO()
    call_command("agreement", str(run.pk), "--format", "json", stdout=out)
    agreement = json.loads(out.getvalue())
    agreement_row = agreement["judges"]["baseline@1"][name]
    values = list(Score.objects.filter(run=run, metric__name=name).values_list("value", flat=True))
    # the experts' mean is 2.5 of every answer, so the bias is the judge's mean less 2.5
    assert agreement_row["n"] == 6
    assert agreement_row["bias"] == pytest.approx(sum(v for v in values if v is not None) / 6 - 2.5)
    assert agreement["experts"][name]["n"] == 6

    out = StringIO()
    call_command("results", str(run.pk), "--format", "json", stdout=out)
    report = json.loads(out.getvalue())
    line = report["metrics"][name]
    # a census: every answer is rated, so the corrected figure is the experts' mean
    assert line["corrected"]["value"] == pytest.approx(2.5)
    assert (line["kind"], line["scale"]) == ("custom", "levels 1..3")


@pytest.mark.parametrize("page", ["run", "run-agreement"])
def test_run_pages_show_the_criterion_by_its_title(client: Client, page: str) -> None:
    run, version = judged_run()
    queue = make_review_queue(run, version, strategy="all")
    rate_all(queue, first_reviewer(queue), 3)
    client.force_login(make_user(Role.LEAD, run.project))
    for language, title in (("en", "Tone"), ("ko", "말투")):
        response = client.get(reverse(page, args=[run.pk]), headers={"accept-language": language})
        assert title in response.content.decode()


def test_lead_overrides_a_criterion_by_level_text_on_the_answer_page(client: Client) -> None:
    run, version = judged_run()
    client.force_login(make_user(Role.LEAD, run.project))
    answer = run.answer_set.answers.first()
    assert answer is not None
    url = reverse("answer", args=[answer.pk]) + f"?run={run.pk}"
    page = client.get(url, headers={"accept-language": "en"}).content.decode()
    assert "Polite" in page
    assert f"criterion:{version.criterion.name} v1 (en)" in page


def test_imported_ratings_use_the_criterion_and_cannot_change_its_scale() -> None:
    run, version = judged_run()
    name = version.criterion.name
    question = run.answer_set.question_set.questions.first()
    assert question is not None
    row = {"question_id": question.external_id, "metric": name, "value": 2, "rater": "human", "author": "ann"}
    content = json.dumps(row).encode()
    import_ratings(run, content, "r.jsonl")
    assert Rating.objects.get(author="ann").metric.kind == "custom"
    with pytest.raises(DomainError, match="metric_known"):
        import_ratings(run, content, "r.jsonl", defines=[f"{name}=1..5"])


def test_import_cannot_use_the_name_of_another_projects_criterion() -> None:
    run, _ = judged_run()
    foreign = in_force(make_answer_set().project)
    content = json.dumps({"question_id": "q1", "metric": foreign.criterion.name, "value": 2, "rater": "human"}).encode()
    with pytest.raises(DomainError, match="criterion_name_taken"):
        import_ratings(run, content, "r.jsonl", defines=[f"{foreign.criterion.name}=1..5"])
    assert foreign.criterion.events.get().metric.scale == "levels 1..3"  # type: ignore[union-attr]
