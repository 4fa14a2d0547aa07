"""Gold sets: labels, split, growth and detection of changes."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.roles import Role
from evaluation.criteria.rubrics import draft
from evaluation.models import Endpoint, HoldOutOpening, SealedAnswer
from review.calibration.holdout_rules import prepare_holdout_test
from review.calibration.overview import find_gold_set, overview, preview
from review.calibration.versions import collect_labels, find_changes, freeze, grow
from review.models import GoldItem, GoldSet, HoldoutTest, Rating, ReviewQueue
from review.statistics.acceptance import Claim
from review.statistics.gold_split import SPLIT_SHARES, AnswerGroup, Split, split_groups
from tests.evaluation.rest.clients import Caller
from tests.factories import make_answer_set, make_judge, make_project, make_user
from tests.review.builders import answer_rows, imported_rating, metric, run_over
from tests.review.calibration.labelled import rate_by_two_experts, rated_run, rubric_with_instruction
from tests.review.sampled import rate_half


def test_split_shares_hold_in_every_category_and_level() -> None:
    groups = {f"g{n}": AnswerGroup(1, ("a", "b")[n % 2], n % 5 / 4) for n in range(200)}
    parts = split_groups(groups, seed=3)
    assert [sum(split == expected for split in parts.values()) for expected in Split] == [40, 60, 100]
    for category in "ab":
        category_splits = [parts[name] for name, expected in groups.items() if expected.category == category]
        assert [category_splits.count(expected) for expected in Split] == [20, 30, 50]
    for level in range(5):
        level_splits = [parts[name] for name, expected in groups.items() if expected.label == level / 4]
        assert all(abs(level_splits.count(expected) - 40 * share) <= 2 for expected, share in SPLIT_SHARES.items())


def test_holdout_member_of_a_pair_is_not_always_the_lower_label() -> None:
    """If the hold-out always took the lowest label of a category, open labels would bound it."""
    groups = {"low": AnswerGroup(1, "a", 0.0), "high": AnswerGroup(1, "a", 1.0)}
    parts = [split_groups(groups, seed) for seed in range(20)]
    assert {name for assignment in parts for name, split in assignment.items() if split is Split.HOLD_OUT} == {
        "low",
        "high",
    }


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.floats(0, 1)), max_size=60), st.integers(0, 9))
def test_every_group_has_one_split_and_it_is_deterministic(rows: list[tuple[int, str, float]], seed: int) -> None:
    groups = {f"g{n}": AnswerGroup(*row) for n, row in enumerate(rows)}
    parts = split_groups(groups, seed)
    assert parts.keys() == groups.keys()
    assert parts == split_groups(dict(reversed(groups.items())), seed)


@pytest.mark.django_db
def test_labels_are_unrounded_means_of_blind_first_ratings() -> None:
    run = rated_run(6)
    first = answer_rows(run)[0]
    imported_rating(first, metric("correctness"), "c", 5, blind=False)  # not blind
    imported_rating(first, metric("correctness"), "d", None)  # cannot judge
    labels = collect_labels(run)
    # worth of 0 is 1; both say 1. Worth of 1 is 3; they say 3 and 4: 3.5
    assert [label.label for label in labels[:2]] == [1.0, 3.5]
    assert [len(label.ratings) for label in labels[:2]] == [2, 2]


@pytest.mark.django_db
def test_example_ratings_are_not_labels() -> None:
    run = run_over(make_answer_set(), judged=False)
    rate_half(run, [3.0, 4.0, 5.0])
    assert len(collect_labels(run)) == 3
    ReviewQueue.objects.update(example=True)
    assert collect_labels(run) == []


@pytest.mark.django_db
def test_frozen_gold_set_is_split_sealed_and_shown_without_holdout() -> None:
    gold = freeze(rated_run(200), "gold", by=None)
    (metric_overview,) = overview(gold).metrics
    assert {split: figures.answers for split, figures in metric_overview.parts.items()} == {
        "examples": 40,
        "validation": 60,
        "hold_out": 100,
    }
    assert (metric_overview.lacks_groups, metric_overview.lacks_answers, overview(gold).left) == (0, 0, 0.05)
    assert SealedAnswer.objects.filter(project=gold.project).count() == 100
    # of 200 pairs the odd half differ by a level, but for those of worth 5: each is 1 from the other, squared 1
    differing_pairs = sum(n % 2 and 1 + n * 7 % 5 < 5 for n in range(200))
    assert metric_overview.expert_loss == pytest.approx(differing_pairs / 200)


@pytest.mark.parametrize("count", [1, 40, 160, 199, 200, 203])
@pytest.mark.django_db
def test_needs_before_freezing_are_those_of_the_holdout_test(count: int) -> None:
    run = rated_run(count)
    (before,) = preview(run)
    gold = freeze(run, "gold", by=None)
    (after,) = overview(gold).metrics
    names = ("answers", "groups", "needed_answers", "needed_groups", "is_testable")
    assert [getattr(before, name) for name in names] == [getattr(after, name) for name in names]
    assert (before.answers, before.groups) == (count, count)
    assert GoldSet.objects.count() == 1
    endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
    judge = make_judge(run.project, "judge", endpoint=endpoint)
    version = draft(run.project, rubric_with_instruction("x"), by=None)
    if before.is_testable:
        assert (before.needed_answers, before.needed_groups) == (200, 60)
        assert prepare_holdout_test(gold, judge, version, claim=Claim.BETTER).pk is None
    else:
        assert before.needed_answers > before.answers or before.needed_groups > before.groups
        with pytest.raises(DomainError, match=r"hold_out_too_small|gold_other_metrics"):
            prepare_holdout_test(gold, judge, version, claim=Claim.BETTER)
    assert not HoldoutTest.objects.exists()


@pytest.mark.django_db
def test_growing_keeps_splits_and_adds_new_groups_to_each() -> None:
    run = rated_run(100)
    first = freeze(run, "gold", by=None)
    second_run = run_over(make_answer_set(run.answer_set.question_set), judged=False)
    rate_by_two_experts(second_run)
    second = grow(second_run, "gold", by=None)
    splits_before = dict(first.items.values_list("group", "split"))
    assert (second.version, second.items.count()) == (2, 200)
    assert set(second.items.values_list("group", "split")) == set(
        splits_before.items()
    )  # the same questions, asked again
    assert set(second.items.values_list("since", flat=True)) == {1}
    assert find_changes(second) == []
    with pytest.raises(DomainError, match="gold_no_labels"):
        grow(second_run, "gold", by=None)
    with pytest.raises(DomainError, match="gold_exists"):
        freeze(run, "gold", by=None)
    with pytest.raises(DomainError, match="gold_unknown"):
        grow(run, "silver", by=None)
    assert (find_gold_set(run.project_id, "gold"), find_gold_set(run.project_id, "gold@1")) == (second, first)
    with pytest.raises(UnknownName):
        find_gold_set(run.project_id, "gold@3")


def _update_rows(rows: object, **values: object) -> None:
    from evaluation.storage import append_only

    with append_only.suspended():
        rows.update(**values)  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_changed_rating_label_or_split_is_detected() -> None:
    gold = freeze(rated_run(40), "gold", by=None)
    assert find_changes(gold) == []
    item = gold.items.filter(split="hold_out").select_related("metric").first()
    assert item is not None
    with pytest.raises(DatabaseError), transaction.atomic():
        gold.items.update(label=1.0)
    rating = Rating.objects.filter(pk=item.ratings[0][0])
    original_value = rating.get().value
    _update_rows(rating, value=0.5)
    assert find_changes(gold) == [f"rating {item.answer_id} correctness"]
    _update_rows(rating, value=original_value)
    assert find_changes(gold) == []
    _update_rows(GoldItem.objects.filter(pk=item.pk), label=item.label + 0.5)
    assert find_changes(gold) == ["set", f"label {item.answer_id} correctness"]
    _update_rows(GoldItem.objects.filter(pk=item.pk), label=item.label, split="validation")
    assert find_changes(gold) == ["set"]


@pytest.mark.django_db
def test_commands_create_show_grow_and_export_gold_sets(tmp_path: Path) -> None:
    run = rated_run(60)

    def run_command(*words: str) -> str:
        out = StringIO()
        call_command("gold_set", *words, stdout=out)
        return out.getvalue()

    lines = run_command("create", "gold", "--run", str(run.pk)).splitlines()
    assert lines[0].startswith("gold@1 ")
    assert lines[1].startswith("correctness\t12 (12 groups, 0 seen)\t18 (18 groups, 0 seen)\t30 (30 groups, 0 seen)\t")
    assert lines[2:] == [
        "correctness: a hold-out test needs 200 rated answers in 60 groups; there are 60 in 60",
        "hold-out tests: 0; error budget left: 0.0500 of 0.05",
    ]
    assert json.loads(run_command("show", "gold", "--format", "json"))["looks"] == 0
    file = tmp_path / "open.jsonl"
    assert run_command("export", "gold", "--output", str(file)) == "30 labels of examples and validation\n"
    assert {json.loads(line)["split"] for line in file.read_text("utf-8").splitlines()} == {"examples", "validation"}


@pytest.mark.django_db
def test_rest_lets_leads_freeze_and_never_exports_the_holdout() -> None:
    run = rated_run(40)
    callers = {role: Caller(role, run.project) for role in Role}
    body = {"run": run.pk, "name": "gold"}
    assert callers[Role.EVALUATOR].post("gold-sets/", body).status_code == 403
    response = callers[Role.LEAD].post("gold-sets/", body)
    assert response.status_code == 201
    url = f"gold-sets/{response.json()['id']}/"
    assert callers[Role.LEAD].post("gold-sets/", body).status_code == 409
    holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer_id", flat=True))
    for role, caller in callers.items():
        reply = caller.get(f"{url}export/")
        if role in {Role.VIEWER, Role.REVIEWER}:
            assert reply.status_code == 403
            continue
        rows = reply.json()
        assert len(rows) == 20
        assert not holdout_answers & {row["answer_id"] for row in rows}
    assert callers[Role.VIEWER].get(url).json()["metrics"][0]["parts"]["hold_out"]["answers"] == 20


@pytest.mark.django_db
def test_create_command_refuses_a_project_other_than_the_runs() -> None:
    run = rated_run(20)
    other_project = make_project()
    with pytest.raises(CommandError, match=f"belongs to {run.project.name}, not to {other_project.name}"):
        call_command(
            "gold_set", "create", "gold", "--run", str(run.pk), "--project", other_project.name, stdout=StringIO()
        )
    assert not GoldSet.objects.exists()
    call_command("gold_set", "create", "gold", "--run", str(run.pk), "--project", run.project.name, stdout=StringIO())
    assert GoldSet.objects.get().project == run.project


@pytest.mark.django_db
def test_open_command_is_for_leads_only() -> None:
    run = rated_run(20)
    freeze(run, "gold", by=None)
    lead, evaluator = make_user(Role.LEAD, run.project), make_user(Role.EVALUATOR, run.project)
    out = StringIO()
    with pytest.raises(CommandError, match="is not a lead"):
        call_command("gold_set", "open", "gold", "--by", evaluator.username, stdout=out)
    call_command("gold_set", "open", "gold", "--by", lead.username, stdout=out)
    assert out.getvalue() == f"gold is open to {lead.username}, who may not draft or propose answer_quality\n"
    assert HoldOutOpening.objects.get().created_by == lead
