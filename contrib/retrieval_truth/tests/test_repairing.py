"""Repairs from the pool to corrected figures and the next version of the question set."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.utils import DatabaseError
from django.test import Client
from django.urls import reverse
from django.utils import translation

from contrib.retrieval_truth.acceptance import accept_labels, corrected_retrieval, repaired_retrieval
from contrib.retrieval_truth.models import PassageRating, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.pooling import NOT_RELEVANT, make_repair
from contrib.retrieval_truth.rating import last_rated_passage, next_card, rate_passage, remaining_passages, set_open
from contrib.retrieval_truth.results import RepairedFigure, RepairResult, compute_results, export_repair, results_for
from contrib.retrieval_truth.tests.built import RANKINGS, members, rate_all, repair, run_over, store_verdict, two_runs
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.datasets.importing import import_question_set
from evaluation.models import Answer, QuestionSet, User
from review.figure_cache.builders import differing_kinds
from review.reports.exports import export
from review.reports.retrieval import unrated_in_words
from tests.evaluation.datasets.sources import question_file
from tests.factories import make_project, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def figure(results: RepairResult, metric: str, at: int = 0, *, difference: bool = False) -> RepairedFigure:
    return [row for row in results.figures if row.metric == metric and bool(row.minus) == difference][at]


def waiting_passages(user: User) -> int:
    """Number of passages of the only repair that wait for the person."""
    (row,) = remaining_passages(user)
    return row.passage_count


def test_pool_has_retrieved_and_labelled_passages() -> None:
    label_repair = repair()
    names = [row.chunk_id for row in label_repair.passages.filter(question__external_id="q1").order_by("pk")]
    assert sorted(names) == [f"q1-{row}" for row in range(8)]
    rows = {row.chunk_id: row for row in label_repair.passages.filter(question__external_id="q1")}
    assert rows["q1-0"].ranks == [1, 5]
    assert rows["q1-5"].ranks == [0, 1]
    assert (rows["q1-0"].label, rows["q1-0"].stratum, rows["q1-0"].sampled) == (1.0, "labelled", False)
    assert label_repair.passages.filter(label=None).count() == 70
    assert label_repair.passages.filter(sampled=True).count() == 40
    assert sum(row.probability for row in label_repair.passages.filter(label=None)) == pytest.approx(40)
    assert [row.position for row in label_repair.systems.order_by("position")] == [0, 1]


def test_passage_without_an_id_is_identified_by_its_text() -> None:
    runs = two_runs(3, ids=False)
    reviewer = make_user(Role.REVIEWER, runs[0].project)
    label_repair = make_repair(runs, name="x", reviewers=[reviewer], size=5, k=5)
    assert label_repair.passages.filter(question__external_id="q1").exclude(text="").count() == 8
    assert label_repair.passages.get(question__external_id="q1", text="Passage q1-1.").ranks == [2, 2]


def test_judge_verdicts_are_stored_with_the_passages() -> None:
    a, b = two_runs()
    store_verdict(a, "q1-1", "relevant")
    store_verdict(b, "q1-1", "irrelevant")
    store_verdict(b, "q1-6", "irrelevant")
    label_repair = make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, a.project)], size=10, k=5)
    rows = {row.chunk_id: row for row in label_repair.passages.filter(question__external_id="q1")}
    assert (rows["q1-1"].judge, rows["q1-6"].judge, rows["q1-2"].judge) == (0.5, 0.0, None)
    assert rows["q1-6"].guess == pytest.approx(0.1)


def test_invalid_repair_is_refused() -> None:
    a, b = two_runs()
    reviewer = make_user(Role.REVIEWER, a.project)
    for runs, code in (
        ([a], "repair_runs"),
        ([a, a], "pairs_same_answers"),
        ([a, make_scored_run()], "several_projects"),
    ):
        with pytest.raises(DomainError, match=code):
            make_repair(runs, name="x", reviewers=[reviewer])
    with pytest.raises(DomainError, match="no_reviewers"):
        make_repair([a, b], name="x", reviewers=[])
    with pytest.raises(DomainError, match="not_in_project"):
        make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, make_project())])
    with pytest.raises(DomainError, match="too_few_for_first"):
        make_repair([a, b], name="x", reviewers=[reviewer], size=3, first_relevant=True)
    assert not RetrievalRepair.objects.exists()
    make_repair([a, b], name="x", reviewers=[reviewer], size=3)
    with pytest.raises(DomainError, match="repair_exists"):
        make_repair([a, b], name="x", reviewers=[reviewer])


def test_passages_without_a_text_are_refused_by_name() -> None:
    a, b = two_runs(2)
    answer = Answer.objects.filter(answer_set=a.answer_set_id).order_by("pk")[0]
    Answer.objects.bulk_create(
        [
            Answer(
                answer_set=answer.answer_set, question=answer.question, round=1, status="ok", text="x",
                text_hash="0" * 64, retrieves=True, retrieved_ids=["q1-0", "elsewhere-9"],
            )
        ]
    )  # fmt: skip
    with pytest.raises(DomainError, match="passages_without_text") as error:
        make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, a.project)], size=3, k=5)
    assert error.value.params == {"count": 1, "chunk": "elsewhere-9"}


def test_reviewers_share_the_passages_in_their_own_orders() -> None:
    label_repair = repair(reviewer_count=2)
    first_reviewer, second_reviewer = members(label_repair)
    first = next_card(label_repair, first_reviewer)
    assert first is not None
    assert (
        first.passage.pk != getattr(next_card(label_repair, second_reviewer), "passage", first.passage).pk
    )  # by this seed
    rate_passage(label_repair, first.passage, first_reviewer, "relevant")
    assert next_card(label_repair, first_reviewer) != first
    assert waiting_passages(second_reviewer) == 39
    assert last_rated_passage(label_repair, first_reviewer) == first.passage.pk
    assert rate_all(label_repair, second_reviewer) == 39
    assert next_card(label_repair, first_reviewer) is None


def test_passage_that_cannot_be_judged_is_left_to_others() -> None:
    label_repair = repair(reviewer_count=2)
    first_reviewer, second_reviewer = members(label_repair)
    first = next_card(label_repair, first_reviewer)
    assert first is not None
    rate_passage(label_repair, first.passage, first_reviewer, "cannot")
    assert waiting_passages(first_reviewer) == 39
    assert waiting_passages(second_reviewer) == 40
    assert compute_results(label_repair).cannot == 1


def test_changed_grade_is_a_new_row_and_an_equal_grade_is_none() -> None:
    label_repair = repair()
    (reviewer,) = members(label_repair)
    first = next_card(label_repair, reviewer)
    assert first is not None
    rate_passage(label_repair, first.passage, reviewer, "relevant")
    rate_passage(label_repair, first.passage, reviewer, "relevant")
    rate_passage(label_repair, first.passage, reviewer, "not", reason="Another city.")
    rows = PassageRating.objects.order_by("round").values_list("round", "grade")
    assert list(rows) == [(0, "relevant"), (1, "not")]
    card = next_card(label_repair, reviewer, first.passage.pk)
    assert card is not None
    assert (card.grade, card.reason) == ("not", "Another city.")
    with pytest.raises(DatabaseError), transaction.atomic():
        PassageRating.objects.update(grade="relevant")


def test_invalid_ratings_are_refused() -> None:
    label_repair = repair()
    (reviewer,) = members(label_repair)
    labelled_passage = label_repair.passages.filter(sampled=False).first()
    sampled_passage = label_repair.passages.filter(sampled=True).first()
    assert labelled_passage is not None
    assert sampled_passage is not None
    with pytest.raises(DomainError, match="not_drawn"):
        rate_passage(label_repair, labelled_passage, reviewer, "relevant")
    with pytest.raises(DomainError, match="unknown_grade"):
        rate_passage(label_repair, sampled_passage, reviewer, "perhaps")
    with pytest.raises(DomainError, match="reason_too_long"):
        rate_passage(label_repair, sampled_passage, reviewer, "not", reason="x" * 5001)
    set_open(label_repair, is_open=False, by=reviewer)
    with pytest.raises(DomainError, match="repair_closed"):
        rate_passage(label_repair, sampled_passage, reviewer, "relevant")
    set_open(label_repair, is_open=True, by=reviewer)
    assert rate_passage(label_repair, sampled_passage, reviewer, "relevant")


def test_figures_are_withheld_then_estimated_then_exact() -> None:
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    rate_all(label_repair, reviewer, limit=19)
    assert {row.withheld for row in compute_results(label_repair).figures} == {"too_few_labels"}
    rate_all(label_repair, reviewer, limit=20)
    precision = figure(compute_results(label_repair), "precision_at_k")
    assert precision.low is not None
    assert precision.high is not None
    assert precision.low < 0.4 < precision.high  # two of A's five places are right
    rate_all(label_repair, reviewer)
    results = compute_results(label_repair)
    # A: places 1 and 2 of 5, of 3 relevant in the pool: recall 2/3; B: 1, 2 and 5: recall 1
    assert [row.value for row in results.figures if row.metric == "precision_at_k"] == pytest.approx([0.4, 0.6, -0.2])
    assert [row.value for row in results.figures if row.metric == "recall_at_k"] == pytest.approx([2 / 3, 1, -1 / 3])
    assert {row.method for row in results.figures} == {"census"}
    # before: one relevant passage a question, at place 1 of A and 5 of B
    assert [row.before for row in results.figures if row.metric == "precision_at_k"] == pytest.approx([0.2, 0.2, 0.0])
    assert [(row.hit_at_k, row.reciprocal_rank) for row in results.first] == [(1.0, 1.0), (1.0, 1.0)]
    assert {results.better, results.worse} == {row.system for row in results.first}
    assert results.better == results.first[1].system or figure(results, "ndcg_at_k", difference=True).value > 0


def test_partly_relevant_counts_as_configured() -> None:
    for counts, value in ((False, 0.2), (True, 1.0)):
        label_repair = repair(size=70, partly_counts=counts, name=f"x{counts}")
        (reviewer,) = members(label_repair)
        for passage in label_repair.passages.filter(sampled=True):
            rate_passage(label_repair, passage, reviewer, "partly")
        assert figure(compute_results(label_repair), "precision_at_k").value == pytest.approx(value)


def test_hit_and_mrr_need_the_passages_above_the_first_relevant() -> None:
    label_repair = repair(size=45, first_relevant=True)
    # A has its known one first; B has four unknown places above it, in ten questions
    certain = label_repair.passages.filter(stratum=PooledPassage.Stratum.CERTAIN)
    assert certain.count() >= 40
    first_ranks = compute_results(label_repair).first
    assert [(row.hit_at_k, row.undecided) for row in first_ranks] == [(1.0, 0), (None, 10)]
    rate_all(label_repair, members(label_repair)[0])
    assert [row.reciprocal_rank for row in compute_results(label_repair).first] == [1.0, 1.0]


def test_rating_lead_sees_figures_after_the_last_own_passage() -> None:
    runs = two_runs()
    lead = make_user(Role.LEAD, runs[0].project)
    label_repair = make_repair(runs, name="x", reviewers=[lead], size=25, k=5)
    with pytest.raises(DomainError, match="passages_left"):
        results_for(label_repair, lead)
    # Nor by closing it, because it can be reopened.
    set_open(label_repair, is_open=False, by=lead)
    with pytest.raises(DomainError, match="passages_left"):
        results_for(label_repair, lead)
    set_open(label_repair, is_open=True, by=lead)
    rate_all(label_repair, lead)
    assert results_for(label_repair, lead).rated == 25


def test_accepted_labels_create_a_version_that_names_unrated_passages() -> None:
    label_repair = repair(size=40)
    (reviewer,) = members(label_repair)
    with pytest.raises(DomainError, match="no_new_labels"):
        accept_labels(label_repair, by=reviewer)
    rate_all(label_repair, reviewer)
    result = accept_labels(label_repair, by=reviewer)
    source, version = label_repair.question_set, result.question_set
    assert (version.name, version.version, version.predecessor) == (source.name, 2, source)
    assert version.metadata["retrieval_truth"] == {
        "repair": label_repair.pk, "name": "first", "unrated": 30, "rated": 40,
    }  # fmt: skip
    assert result.unrated == 30
    relevant_count = PassageRating.objects.filter(grade="relevant").count()
    assert result.relevant == relevant_count
    label_counts = [len(question.read().ground_truth_chunk_ids) for question in version.questions.all()]
    assert sum(label_counts) == 10 + relevant_count
    not_relevant_counts = [len(question.metadata.get(NOT_RELEVANT, [])) for question in version.questions.all()]
    assert sum(not_relevant_counts) == 40 - relevant_count
    with pytest.raises(DomainError, match="no_new_labels"):
        accept_labels(label_repair, by=reviewer)
    assert QuestionSet.objects.filter(name=source.name).count() == 2
    assert compute_results(label_repair).rated == 40  # goes on by the stored probabilities


def test_later_ratings_create_another_version_when_accepted() -> None:
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    rate_all(label_repair, reviewer, limit=40)
    first = accept_labels(label_repair, by=reviewer).question_set
    page, lead = reverse("truth", args=[label_repair.pk]), Client()
    lead.force_login(make_user(Role.LEAD, label_repair.project))
    assert "were added since" not in lead.get(page).content.decode()
    rate_all(label_repair, reviewer)
    assert "30 ratings were added since" in lead.get(page).content.decode()
    lead.post(reverse("truth-accept", args=[label_repair.pk]))
    second = QuestionSet.objects.get(name=first.name, version=3)
    assert second.predecessor == first
    assert second.metadata["retrieval_truth"]["unrated"] == 0
    labels = [set(question.read().ground_truth_chunk_ids) for question in second.questions.order_by("position")]
    assert labels == [{f"q{n}-{passage_number}" for passage_number in (0, 1, 5)} for n in range(1, 11)]
    rated_run = run_over(second, "A whole", RANKINGS[0])
    assert corrected_retrieval(rated_run) is None  # its labels are all there is
    before = corrected_retrieval(run_over(first, "A before", RANKINGS[0]))
    assert before is not None
    assert (before.unrated, before.older, before.figures[0].value) == (0, False, pytest.approx(0.4))
    assert unrated_in_words(before) == "The pool of “first” is fully rated, but this version has the earlier labels."
    import_question_set(
        label_repair.project, first.name, question_file({"question": "Another?", "category": "c"}), by=reviewer
    )
    with pytest.raises(DomainError, match="newer_question_set"):
        accept_labels(label_repair, by=reviewer)


def test_run_on_the_earlier_version_is_corrected_after_acceptance() -> None:
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    a, b = (system.run for system in label_repair.systems.order_by("position"))
    rate_all(label_repair, reviewer, limit=40)
    assert corrected_retrieval(a) is None  # nobody accepted them
    version = accept_labels(label_repair, by=reviewer).question_set
    corrected = corrected_retrieval(a)
    assert corrected is not None
    assert (corrected.older, corrected.unrated) == (True, 30)
    # its own labels know the first of three relevant passages a question, of which A has two among five
    assert [row.labels_alone for row in corrected.figures[:2]] == pytest.approx([0.2, 1.0])
    repaired_figures = {
        row.metric: row
        for row in compute_results(label_repair).figures
        if not row.minus and row.system == "System A v1"
    }
    assert [row.value for row in corrected.figures] == [repaired_figures[row.metric].value for row in corrected.figures]
    assert unrated_in_words(corrected).startswith("The labels of “first” are in a later version of the question set")
    rate_all(label_repair, reviewer)
    complete_version = accept_labels(label_repair, by=reviewer).question_set
    pair = repaired_retrieval(
        [run_over(complete_version, "A new", RANKINGS[0]), b]
    )  # a version that is complete, and one before
    assert pair is not None
    assert [pair.figures[name].value for name in ("precision_at_k", "recall_at_k")] == pytest.approx([-0.2, -1 / 3])
    assert version.pk != complete_version.pk


def test_run_on_accepted_labels_is_corrected_by_stored_probabilities() -> None:
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    rate_all(label_repair, reviewer, limit=40)
    version = accept_labels(label_repair, by=reviewer).question_set
    repeated_run, fresh = run_over(version, "A again", RANKINGS[0]), run_over(version, "C", (9, 0, 1, 2, 3))
    corrected = corrected_retrieval(repeated_run)
    assert corrected is not None
    assert (corrected.repair, corrected.k, corrected.questions, corrected.unrated, corrected.outside) == (
        label_repair.pk,
        5,
        10,
        30,
        0,
    )
    repaired_figures = {
        row.metric: row
        for row in compute_results(label_repair).figures
        if not row.minus and row.system == "System A v1"
    }
    for row in corrected.figures:
        repaired = repaired_figures[row.metric]
        assert (row.value, row.low, row.high) == pytest.approx((repaired.value, repaired.low, repaired.high))
    precision = corrected.figures[0]
    # known are the first passage of each question and those found to be relevant among the 40 that were rated
    labelled = [set(question.read().ground_truth_chunk_ids) for question in version.questions.all()]
    relevant_count = sum(
        f"q{n}-{passage_number}" in ids for n, ids in enumerate(labelled, 1) for passage_number in RANKINGS[0]
    )
    assert precision.labels_alone == pytest.approx(relevant_count / 50)
    assert precision.low is not None
    assert precision.high is not None
    assert precision.low < 0.4 < precision.high  # two of its five places are right
    beyond = corrected_retrieval(fresh)
    assert beyond is not None
    assert beyond.outside == 10
    assert {row.withheld for row in beyond.figures} == {"outside_pool"}
    assert corrected_retrieval(two_runs()[0]) is None


@pytest.mark.slow
def test_report_and_pages_follow_the_ratings() -> None:
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    rate_all(label_repair, reviewer, limit=40)
    version = accept_labels(label_repair, by=reviewer).question_set
    a, b = (run_over(version, f"{name} again", ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    lead, viewer = Client(), Client()
    lead.force_login(make_user(Role.LEAD, a.project))
    viewer.force_login(make_user(Role.VIEWER, a.project))
    link = f'href="{reverse("truth", args=[label_repair.pk])}"'
    notice = "30 passages of the pool of “first” are unrated and count as misses in the retrieval metrics."
    for page in (reverse("run", args=[a.pk]), reverse("run-retrieval", args=[a.pk])):
        page_text = lead.get(page).content.decode()
        assert notice in page_text
        assert link in page_text
        assert link not in viewer.get(page).content.decode()
    assert notice in lead.get(f"{reverse('run-compare')}?runs={a.pk},{b.pk}").content.decode()
    for form in ("html", "md"):
        with translation.override("en"):
            assert notice in b"".join(export(a, form).chunks).decode()
    retrieval_json = json.loads(b"".join(export(a, "json").chunks))["retrieval"]
    assert (retrieval_json["repair"], retrieval_json["unrated"], len(retrieval_json["figures"])) == (
        label_repair.pk,
        30,
        3,
    )
    rate_all(label_repair, reviewer, limit=10)
    assert "20 passages of the pool" in lead.get(reverse("run", args=[a.pk])).content.decode()
    assert differing_kinds(a) == []
    rate_all(label_repair, reviewer)
    retrieval_json = json.loads(b"".join(export(a, "json").chunks))["retrieval"]
    assert (retrieval_json["unrated"], retrieval_json["figures"][0]["value"]) == (0, pytest.approx(0.4))


def test_exports_have_the_figures_and_the_entire_pool() -> None:
    label_repair = repair(size=40)
    rate_all(label_repair, members(label_repair)[0])
    report = json.loads(b"".join(export_repair(label_repair, "json").chunks))
    assert (report["target"], report["recall_relative_to"], report["rated"]) == ("this_run", "pool", 40)
    assert len(report["figures"]) == 9
    rows = list(csv.DictReader(io.StringIO(b"".join(export_repair(label_repair, "csv").chunks).decode("utf-8-sig"))))
    assert len(rows) == 80
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(40)
    assert sum(bool(row["ratings"]) for row in rows) == 40


def test_commands_create_and_print_a_repair(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = two_runs()
    make_user(Role.REVIEWER, a.project)
    output = io.StringIO()
    call_command("repair_truth", str(a.pk), str(b.pk), name="by command", size=30, k=5, seed=1, stdout=output)
    label_repair = RetrievalRepair.objects.get()
    assert output.getvalue() == f"repair {label_repair.pk}: 30 passages to rate\n"
    output = io.StringIO()
    call_command("retrieval_truth", str(label_repair.pk), stdout=output)
    assert "by command: 0 of 30 rated, 70 without a label" in output.getvalue()
    output = io.StringIO()
    call_command("retrieval_truth", str(label_repair.pk), format="json", stdout=output)
    assert json.loads(output.getvalue())["drawn"] == 30
    with pytest.raises(CommandError, match="Repair 0 does not exist"):
        call_command("retrieval_truth", "0")
    with pytest.raises(CommandError, match="2 to 8"):
        call_command("repair_truth", str(a.pk), name="alone")
