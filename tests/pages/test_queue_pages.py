"""Making a queue from a run, and its preview."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.roles import Role
from review.evidence.rating_input import RatingInput
from review.models import Draw, Exposure, FrameMember, ReviewQueue
from review.models.queue_spec import CONFIGURABLE_SETTINGS
from review.queues.distribution import parse_tag_lines
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from tests.factories import make_answer_set, make_profile, make_queue, make_scored_run, make_user
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
NAMES = st.text(st.characters(whitelist_categories=["L", "N"]), min_size=1, max_size=8)


@pytest.fixture
def world() -> World:
    return make_world()


def queue_form(world: World, **fields: object) -> dict[str, object]:
    return {
        "run": world.run.pk, "name": "", "strategy": "uniform", "size": 4, "metrics": ["correctness"],
        "reviewers": [world.people["member"].pk, world.people["outsider"].pk], "reviews_needed": 1, "mode": "blind",
        "coverage": "corrected_overall",
        "reveal": "on_difference", "reveal_threshold": 2, "guideline": "Be fair.", "overlap_percent": 100, "looks": 2,
        "adjudicate_from": 3, "repeat_percent": 0, "distribution": "pool", "reveal_percent": 10,
    } | fields  # fmt: skip


def test_form_shows_five_fields_and_folds_the_others(world: World) -> None:
    page = world.client("lead").get(f"{reverse('queue-new')}?run={world.run.pk}").content.decode()
    form_markup = page.split('id="queue-form"')[1].split("</section>")[0]
    unfolded_markup = re.sub(r"<details.*?</details>", "", form_markup, flags=re.DOTALL)
    unfolds = set(re.findall(r' name="(\w+)"', form_markup)) - set(re.findall(r' name="(\w+)"', unfolded_markup))
    five = {"coverage", "strategy", "size", "reviewers", "reviews_needed"}
    assert set(re.findall(r' name="(\w+)"', unfolded_markup)) - {"csrfmiddlewaretoken", "run", "seed"} == five
    assert {setting.input_name for setting in CONFIGURABLE_SETTINGS if setting.form} <= five | unfolds


def test_queue_is_created_with_its_draw(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), queue_form(world))
    queue = ReviewQueue.objects.latest("pk")
    assert response.headers["Location"] == reverse("queue", args=[queue.pk])
    assert (queue.guideline, queue.hide_system, queue.items.count()) == ("Be fair.", True, 4)
    assert queue.adjudicate_from == 3
    draw = Draw.objects.latest("pk")
    # Four of six by chance: each has probability 4/6, sampled or not.
    assert {round(p, 6) for p in FrameMember.objects.filter(draw=draw).values_list("probability", flat=True)} == {
        0.666667
    }


def test_too_many_reviews_per_answer_are_refused_and_form_is_kept(world: World) -> None:
    response = world.client("lead").post(
        reverse("queue-new"), queue_form(world, reviews_needed=3, guideline="Kept text")
    )
    assert response.status_code == 409
    assert 'role="alert"' in response.content.decode()
    assert "Kept text" in response.content.decode()


def test_revealing_queue_name_is_refused(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), queue_form(world, name="The stratified one"))
    assert response.status_code == 409


@pytest.mark.parametrize("fields", [{"coverage": "all"}, {"reviewers": []}, {"size": 0}, {"strategy": "by whim"}])
def test_incomplete_form_names_missing_fields(world: World, fields: dict[str, object]) -> None:
    response = world.client("lead").post(reverse("queue-new"), queue_form(world, **fields))
    assert response.status_code == 400
    assert 'class="errors"' in response.content.decode()


def test_preview_counts_without_creating_a_queue(world: World) -> None:
    queue_count = ReviewQueue.objects.count()
    page = world.client("lead").get(reverse("queue-preview"), queue_form(world, reviews_needed=2)).content.decode()
    assert '<span class="big">4</span>' in page
    assert "about 4 answers" in page  # 4 answers x 2 reviews / 2 people
    assert (ReviewQueue.objects.count(), Draw.objects.count()) == (queue_count, queue_count)


def test_project_reviewers_are_preselected(world: World) -> None:
    page = world.client("lead").get(f"{reverse('queue-new')}?run={world.run.pk}").content.decode()
    for name, is_checked in (("member", True), ("outsider", True), ("viewer", False), ("lead", False)):
        box = page.partition(f'name="reviewers" value="{world.people[name].pk}"')[2].partition(">")[0]
        assert ("checked" in box) == is_checked, name


def test_queue_can_be_closed_and_reopened(world: World) -> None:
    lead = world.client("lead")
    lead.post(reverse("queue-close", args=[world.queue.pk]))
    assert "closed" in world.client("member").get(reverse("queue-list")).content.decode()
    lead.post(reverse("queue-reopen", args=[world.queue.pk]))
    world.queue.refresh_from_db()
    assert world.queue.state == "open"


def test_queue_mixes_two_runs_with_repeats_and_double_review(world: World) -> None:
    second_run = make_scored_run(make_answer_set(world.run.answer_set.question_set))
    form_data = queue_form(
        world, runs=[second_run.pk], strategy="all", reviews_needed=2, overlap_percent=25, distribution="round_robin",
        deadline="2036-05-01T18:00",
    )  # fmt: skip
    page = world.client("lead").get(reverse("queue-preview"), form_data).content.decode()
    # 12 answers; a quarter is 3, rated twice: 15 ratings, 8 for each of two people at most
    assert "about 8 answers" in page
    assert str(second_run) in page
    world.client("lead").post(reverse("queue-new"), form_data)
    queue = ReviewQueue.objects.latest("pk")
    assert queue.items.count() == 12
    assert queue.draws.count() == 2
    assert sorted(queue.items.values_list("reviews_needed", flat=True)) == [1] * 9 + [2] * 3
    assert queue.items.filter(reservations__isnull=False).count() == 15
    assert queue.deadline is not None
    assert queue.deadline.year == 2036


def test_named_questions_are_selected_and_unknown_ones_refused(world: World) -> None:
    lead = world.client("lead")
    lead.post(reverse("queue-new"), queue_form(world, strategy="hand_picked", questions="q1, q3\nq1"))
    queue = ReviewQueue.objects.latest("pk")
    assert set(queue.items.values_list("answer__question__external_id", flat=True)) == {"q1", "q3"}
    assert not FrameMember.objects.filter(draw__queue=queue, probability__isnull=False).exists()
    response = lead.post(reverse("queue-new"), queue_form(world, strategy="hand_picked", questions="q1, q99"))
    assert response.status_code == 409
    assert "q99" in response.content.decode()


def test_strategy_takes_all_fails_and_a_share_of_others(world: World) -> None:
    form_data = queue_form(world, strategy="fails_plus_share", fail_below=2.5, other_share=50, metrics=["correctness"])
    world.client("lead").post(reverse("queue-new"), form_data)
    members = FrameMember.objects.filter(draw=Draw.objects.latest("pk"))
    assert {
        frame_member.probability for frame_member in members if frame_member.sampled and "fail" in frame_member.stratum
    } == {1.0}
    assert all(0 < (frame_member.probability or 0) <= 1 for frame_member in members)


@pytest.mark.parametrize(
    "fields",
    [
        {"deadline": "2001-01-01T10:00"},
        {"distribution": "by_tag", "fields_of": "tax kim"},
        {"distribution": "by_tag", "fields_of": "tax: nobody"},
        {"repeat_percent": 60},
        {"overlap_percent": 101},
        {"runs": [999999]},
    ],
)
def test_invalid_settings_are_named_at_their_field(world: World, fields: dict[str, object]) -> None:
    response = world.client("lead").post(reverse("queue-new"), queue_form(world, **fields))
    assert response.status_code == 400
    assert 'class="errors"' in response.content.decode()


def test_assignment_by_tag_without_reviewers_is_refused(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), queue_form(world, distribution="by_tag"))
    assert response.status_code == 409
    assert "Assign tags or categories to reviewers" in response.content.decode()


@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=4, unique=True), max_size=5))
def test_tags_and_reviewers_are_parsed(fields: dict[str, list[str]]) -> None:
    assert parse_tag_lines("\n".join(f"{tag}: {', '.join(names)}" for tag, names in fields.items())) == fields


def people_page(world: World) -> str:
    return world.client("lead").get(reverse("queue-people", args=[world.queue.pk])).content.decode()


def test_lead_sees_pace_and_moves_unrated_items(world: World) -> None:
    lead, queue = world.client("lead"), world.queue
    receiver_ids = [world.people["outsider"].pk]
    lead.post(reverse("queue-invite", args=[queue.pk]), {"people": receiver_ids})
    assert queue.members.filter(reviewer=world.people["outsider"]).exists()
    assert world.people["member"].username in people_page(world)
    transfer = {"giver": world.people["member"].pk, "taker": world.people["outsider"].pk}
    answer = lead.post(reverse("queue-reassign", args=[queue.pk]), transfer, follow=True).content.decode()
    assert "1 answer reassigned." in answer
    world.assignment.refresh_from_db()
    assert world.assignment.state == "expired"


def test_refused_action_shows_reason_on_people_page(world: World) -> None:
    lead = world.client("lead")
    for name, data, message in (
        ("queue-reassign", {"giver": world.people["member"].pk}, "Choose a person."),
        ("queue-deadline", {"deadline": "2001-01-01T00:00"}, "has already passed"),
        ("queue-deadline", {"deadline": "soon"}, "valid date and time"),
        ("queue-invite", {}, "Choose at least one reviewer."),
    ):
        response = lead.post(reverse(name, args=[world.queue.pk]), data)
        assert response.status_code == 409, name
        assert message in response.content.decode()


def test_reviewers_are_assigned_per_answer(world: World) -> None:
    item = world.queue.items.order_by("pk").last()
    assert item
    address = reverse("queue-items", args=[world.queue.pk])
    world.client("lead").post(address, {"items": [item.pk], "people": [world.people["member"].pk]})
    assert [reservation.reviewer for reservation in item.reservations.all()] == [world.people["member"]]
    page = world.client("lead").get(address).content.decode()
    assert page.count("anyone available") == world.queue.items.count() - 1
    response = world.client("lead").post(address, {"items": [item.pk]})
    assert response.status_code == 409


def test_reviewers_cannot_open_pages_of_the_lead(world: World) -> None:
    for name in ("queue-people", "queue-items", "queue-questions"):
        assert world.client("member").get(reverse(name, args=[world.queue.pk])).status_code == 403


def test_lead_sees_disagreements_without_names_or_judge() -> None:
    queue = make_queue(
        make_scored_run(values=[3], metrics=["correctness"]), 2, metrics=["correctness"], reviews_needed=2
    )
    for member, value in zip(queue.members.order_by("pk"), (1, 5), strict=True):
        while (assignment := next_assignment(queue, member.reviewer)) is not None:
            submit(assignment, {"correctness": RatingInput(value=value)}, idempotency_key="k", by=member.reviewer)
    lead = Client(headers={"accept-language": "en"})
    lead.force_login(make_user(Role.LEAD, queue.project))
    assert "disputed items need" in lead.get(reverse("home")).content.decode()
    page = lead.get(reverse("queue", args=[queue.pk])).content.decode().partition('id="disputes"')[2]
    assert page.count(">reviewers disagree<") == queue.items.count()
    assert reverse("adjudication-case", args=[queue.items.order_by("pk")[0].pk]) in page
    assert "/answers/" not in page  # there the judge and the names are shown
    assert [
        username for username in queue.members.values_list("reviewer__username", flat=True) if username in page
    ] == []


def test_purpose_of_the_queue_decides_its_criteria(world: World) -> None:
    weights = {
        "completeness": 0.1,
        "claim_support": 0.1,
        "correctness": 0.3,
        "answer_relevancy": 0.1,
        "faithfulness": 0.4,
    }
    components = [{"metric": name, "weight": weight} for name, weight in weights.items()]
    spec = {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": components}
    profile = make_profile(world.project, spec)
    run = make_scored_run(make_answer_set(world.question_set), [1], metrics=[*weights], profile=profile)
    client = world.client("lead")
    main_metrics, all_metrics = (
        client.get(
            reverse("queue-preview"),
            queue_form(world, run=run.pk, metrics=[], size=6, strategy="all", coverage=coverage),
        ).content.decode()
        for coverage in ("fewest_keys", "corrected_overall")
    )
    assert "will be partly corrected" in main_metrics
    assert "Criteria for each answer: Faithfulness, Correctness" in main_metrics
    assert "3 of 5 criteria in turn" in all_metrics
    page = client.get(f"{reverse('queue-new')}?run={run.pk}").content.decode()
    assert "checked" in page.partition('value="corrected_overall"')[2].partition(">")[0]
    client.post(
        reverse("queue-new"), queue_form(world, run=run.pk, metrics=[], coverage="corrected_overall", strategy="all")
    )
    assert {len(item.metric_ids) for item in ReviewQueue.objects.latest("pk").items.all()} == {3}


def test_preview_names_the_resulting_kind_of_score(world: World) -> None:
    client = world.client("lead")
    components = [{"metric": "correctness", "weight": 0.75}, {"metric": "faithfulness", "weight": 0.25}]
    spec = {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": components}
    run = make_scored_run(make_answer_set(world.question_set), profile=make_profile(world.project, spec))
    partial_preview, full_preview = (
        client.get(reverse("queue-preview"), queue_form(world, run=run.pk, metrics=metrics, size=6)).content.decode()
        for metrics in (["correctness"], ["correctness", "faithfulness"])
    )
    assert "will be partly corrected" in partial_preview
    assert "Faithfulness (25%)" in partial_preview
    assert "will be partly corrected" not in full_preview


def test_reviewer_who_saw_the_judge_is_told_rating_is_not_blind(world: World) -> None:
    client = world.client("member")
    page = reverse("review-item", args=[world.assignment.pk])
    notice = "but not as a blind one"
    assert notice not in client.get(page).content.decode()
    Exposure.objects.create(user=world.people["member"], scope="answer", object_id=world.assignment.item.answer_id)
    assert notice in client.get(page).content.decode()
