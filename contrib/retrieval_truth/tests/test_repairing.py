"""A repair from its pool to corrected figures and the next version of the question set."""

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
from contrib.retrieval_truth.tests.built import RANKINGS, members, rate_all, repair, run_over, two_runs, verdict
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


def figure(found: RepairResult, metric: str, at: int = 0, *, difference: bool = False) -> RepairedFigure:
    return [one for one in found.figures if one.metric == metric and bool(one.minus) == difference][at]


def waiting(person: User) -> int:
    """How many passages of the one repair wait for the person."""
    (row,) = remaining_passages(person)
    return row.passages


def test_the_pool_holds_what_was_retrieved_and_what_is_labelled() -> None:
    found = repair()
    names = [one.chunk_id for one in found.passages.filter(question__external_id="q1").order_by("pk")]
    assert sorted(names) == [f"q1-{one}" for one in range(8)]
    rows = {one.chunk_id: one for one in found.passages.filter(question__external_id="q1")}
    assert rows["q1-0"].ranks == [1, 5]
    assert rows["q1-5"].ranks == [0, 1]
    assert (rows["q1-0"].label, rows["q1-0"].stratum, rows["q1-0"].sampled) == (1.0, "labelled", False)
    assert found.passages.filter(label=None).count() == 70
    assert found.passages.filter(sampled=True).count() == 40
    assert sum(one.probability for one in found.passages.filter(label=None)) == pytest.approx(40)
    assert [one.position for one in found.systems.order_by("position")] == [0, 1]


def test_a_passage_without_an_id_is_one_by_its_text() -> None:
    runs = two_runs(3, ids=False)
    person = make_user(Role.REVIEWER, runs[0].project)
    found = make_repair(runs, name="x", reviewers=[person], size=5, k=5)
    assert found.passages.filter(question__external_id="q1").exclude(text="").count() == 8
    assert found.passages.get(question__external_id="q1", text="Passage q1-1.").ranks == [2, 2]


def test_verdicts_of_the_judge_are_the_judges_word() -> None:
    a, b = two_runs()
    verdict(a, "q1-1", "relevant")
    verdict(b, "q1-1", "irrelevant")
    verdict(b, "q1-6", "irrelevant")
    found = make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, a.project)], size=10, k=5)
    rows = {one.chunk_id: one for one in found.passages.filter(question__external_id="q1")}
    assert (rows["q1-1"].judge, rows["q1-6"].judge, rows["q1-2"].judge) == (0.5, 0.0, None)
    assert rows["q1-6"].guess == pytest.approx(0.1)


def test_what_cannot_be_repaired_is_refused() -> None:
    a, b = two_runs()
    person = make_user(Role.REVIEWER, a.project)
    for runs, code in (
        ([a], "repair_runs"),
        ([a, a], "pairs_same_answers"),
        ([a, make_scored_run()], "several_projects"),
    ):
        with pytest.raises(DomainError, match=code):
            make_repair(runs, name="x", reviewers=[person])
    with pytest.raises(DomainError, match="no_reviewers"):
        make_repair([a, b], name="x", reviewers=[])
    with pytest.raises(DomainError, match="not_in_project"):
        make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, make_project())])
    with pytest.raises(DomainError, match="too_few_for_first"):
        make_repair([a, b], name="x", reviewers=[person], size=3, first_relevant=True)
    assert not RetrievalRepair.objects.exists()
    make_repair([a, b], name="x", reviewers=[person], size=3)
    with pytest.raises(DomainError, match="repair_exists"):
        make_repair([a, b], name="x", reviewers=[person])


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
    with pytest.raises(DomainError, match="passages_without_text") as told:
        make_repair([a, b], name="x", reviewers=[make_user(Role.REVIEWER, a.project)], size=3, k=5)
    assert told.value.params == {"count": 1, "chunk": "elsewhere-9"}


def test_two_people_share_one_stack_in_orders_of_their_own() -> None:
    found = repair(people=2)
    one, other = members(found)
    first = next_card(found, one)
    assert first is not None
    assert first.passage.pk != getattr(next_card(found, other), "passage", first.passage).pk  # by this seed
    rate_passage(found, first.passage, one, "relevant")
    assert next_card(found, one) != first
    assert waiting(other) == 39
    assert last_rated_passage(found, one) == first.passage.pk
    assert rate_all(found, other) == 39
    assert next_card(found, one) is None


def test_who_cannot_judge_leaves_a_passage_to_the_others() -> None:
    found = repair(people=2)
    one, other = members(found)
    first = next_card(found, one)
    assert first is not None
    rate_passage(found, first.passage, one, "cannot")
    assert waiting(one) == 39
    assert waiting(other) == 40
    assert compute_results(found).cannot == 1


def test_changing_ones_mind_is_a_new_row_and_the_same_grade_is_none() -> None:
    found = repair()
    (one,) = members(found)
    first = next_card(found, one)
    assert first is not None
    rate_passage(found, first.passage, one, "relevant")
    rate_passage(found, first.passage, one, "relevant")
    rate_passage(found, first.passage, one, "not", reason="Another city.")
    rows = PassageRating.objects.order_by("round").values_list("round", "grade")
    assert list(rows) == [(0, "relevant"), (1, "not")]
    again = next_card(found, one, first.passage.pk)
    assert again is not None
    assert (again.grade, again.reason) == ("not", "Another city.")
    with pytest.raises(DatabaseError), transaction.atomic():
        PassageRating.objects.update(grade="relevant")


def test_ratings_that_do_not_fit_are_refused() -> None:
    found = repair()
    (one,) = members(found)
    labelled = found.passages.filter(sampled=False).first()
    drawn = found.passages.filter(sampled=True).first()
    assert labelled is not None
    assert drawn is not None
    with pytest.raises(DomainError, match="not_drawn"):
        rate_passage(found, labelled, one, "relevant")
    with pytest.raises(DomainError, match="unknown_grade"):
        rate_passage(found, drawn, one, "perhaps")
    with pytest.raises(DomainError, match="reason_too_long"):
        rate_passage(found, drawn, one, "not", reason="x" * 5001)
    set_open(found, is_open=False, by=one)
    with pytest.raises(DomainError, match="repair_closed"):
        rate_passage(found, drawn, one, "relevant")
    set_open(found, is_open=True, by=one)
    assert rate_passage(found, drawn, one, "relevant")


def test_figures_are_withheld_then_estimated_then_known() -> None:
    found = repair(size=70)
    (one,) = members(found)
    rate_all(found, one, most=19)
    assert {row.withheld for row in compute_results(found).figures} == {"too_few_labels"}
    rate_all(found, one, most=20)
    told = figure(compute_results(found), "precision_at_k")
    assert told.low is not None
    assert told.high is not None
    assert told.low < 0.4 < told.high  # two of A's five places are right
    rate_all(found, one)
    whole = compute_results(found)
    # A: places 1 and 2 of 5, of 3 relevant in the pool: recall 2/3; B: 1, 2 and 5: recall 1
    assert [row.value for row in whole.figures if row.metric == "precision_at_k"] == pytest.approx([0.4, 0.6, -0.2])
    assert [row.value for row in whole.figures if row.metric == "recall_at_k"] == pytest.approx([2 / 3, 1, -1 / 3])
    assert {row.method for row in whole.figures} == {"census"}
    # before: one relevant passage a question, at place 1 of A and 5 of B
    assert [row.before for row in whole.figures if row.metric == "precision_at_k"] == pytest.approx([0.2, 0.2, 0.0])
    assert [(row.hit_at_k, row.reciprocal_rank) for row in whole.first] == [(1.0, 1.0), (1.0, 1.0)]
    assert {whole.better, whole.worse} == {row.system for row in whole.first}
    assert whole.better == whole.first[1].system or figure(whole, "ndcg_at_k", difference=True).value > 0


def test_partly_stands_on_the_side_that_was_said() -> None:
    for counts, value in ((False, 0.2), (True, 1.0)):
        found = repair(size=70, partly_counts=counts, name=f"x{counts}")
        (one,) = members(found)
        for passage in found.passages.filter(sampled=True):
            rate_passage(found, passage, one, "partly")
        assert figure(compute_results(found), "precision_at_k").value == pytest.approx(value)


def test_hit_and_mrr_need_the_passages_above_the_first_relevant_one() -> None:
    found = repair(size=45, first_relevant=True)
    # A has its known one first; B has four unknown places above it, in ten questions
    certain = found.passages.filter(stratum=PooledPassage.Stratum.CERTAIN)
    assert certain.count() >= 40
    told = compute_results(found).first
    assert [(one.hit_at_k, one.undecided) for one in told] == [(1.0, 0), (None, 10)]
    rate_all(found, members(found)[0])
    assert [one.reciprocal_rank for one in compute_results(found).first] == [1.0, 1.0]


def test_a_lead_who_rates_sees_figures_after_the_last_own_passage() -> None:
    lead_run = two_runs()
    lead = make_user(Role.LEAD, lead_run[0].project)
    found = make_repair(lead_run, name="x", reviewers=[lead], size=25, k=5)
    with pytest.raises(DomainError, match="passages_left"):
        results_for(found, lead)
    rate_all(found, lead)
    assert results_for(found, lead).rated == 25


def test_accepted_labels_make_the_next_version_that_says_what_is_unrated() -> None:
    found = repair(size=40)
    (one,) = members(found)
    with pytest.raises(DomainError, match="no_new_labels"):
        accept_labels(found, by=one)
    rate_all(found, one)
    made = accept_labels(found, by=one)
    source, version = found.question_set, made.question_set
    assert (version.name, version.version, version.predecessor) == (source.name, 2, source)
    assert version.metadata["retrieval_truth"] == {
        "repair": found.pk, "name": "first", "unrated": 30, "rated": 40,
    }  # fmt: skip
    assert made.unrated == 30
    right = PassageRating.objects.filter(grade="relevant").count()
    assert made.relevant == right
    named = [len(question.read().ground_truth_chunk_ids) for question in version.questions.all()]
    assert sum(named) == 10 + right
    refused = [len(question.metadata.get(NOT_RELEVANT, [])) for question in version.questions.all()]
    assert sum(refused) == 40 - right
    with pytest.raises(DomainError, match="no_new_labels"):
        accept_labels(found, by=one)
    assert QuestionSet.objects.filter(name=source.name).count() == 2
    assert compute_results(found).rated == 40  # goes on by the stored probabilities


def test_ratings_after_acceptance_make_a_further_version_when_a_lead_accepts_again() -> None:
    found = repair(size=70)
    (one,) = members(found)
    rate_all(found, one, most=40)
    first = accept_labels(found, by=one).question_set
    page, lead = reverse("truth", args=[found.pk]), Client()
    lead.force_login(make_user(Role.LEAD, found.project))
    assert "were given since" not in lead.get(page).content.decode()
    rate_all(found, one)
    assert "30 ratings were given since" in lead.get(page).content.decode()
    lead.post(reverse("truth-accept", args=[found.pk]))
    second = QuestionSet.objects.get(name=first.name, version=3)
    assert second.predecessor == first
    assert second.metadata["retrieval_truth"]["unrated"] == 0
    named = [set(question.read().ground_truth_chunk_ids) for question in second.questions.order_by("position")]
    assert named == [{f"q{n}-{place}" for place in (0, 1, 5)} for n in range(1, 11)]
    whole = run_over(second, "A whole", RANKINGS[0])
    assert corrected_retrieval(whole) is None  # its labels are all there is
    before = corrected_retrieval(run_over(first, "A before", RANKINGS[0]))
    assert before is not None
    assert (before.unrated, before.older, before.figures[0].value) == (0, False, pytest.approx(0.4))
    assert (
        unrated_in_words(before)
        == "The pool of “first” is rated as a whole, but this version has the labels of before."
    )
    import_question_set(found.project, first.name, question_file({"question": "Another?", "category": "c"}), by=one)
    with pytest.raises(DomainError, match="newer_question_set"):
        accept_labels(found, by=one)


def test_a_run_on_the_version_before_is_corrected_too_once_labels_were_accepted() -> None:
    found = repair(size=70)
    (one,) = members(found)
    a, b = (each.run for each in found.systems.order_by("position"))
    rate_all(found, one, most=40)
    assert corrected_retrieval(a) is None  # nobody accepted them
    version = accept_labels(found, by=one).question_set
    told = corrected_retrieval(a)
    assert told is not None
    assert (told.older, told.unrated) == (True, 30)
    # its own labels know the first of three relevant passages a question, of which A has two among five
    assert [row.labels_alone for row in told.figures[:2]] == pytest.approx([0.2, 1.0])
    whole = {row.metric: row for row in compute_results(found).figures if not row.minus and row.system == "System A v1"}
    assert [row.value for row in told.figures] == [whole[row.metric].value for row in told.figures]
    assert unrated_in_words(told).startswith("A later version of the question set has the labels of “first”")
    rate_all(found, one)
    made = accept_labels(found, by=one).question_set
    pair = repaired_retrieval([run_over(made, "A new", RANKINGS[0]), b])  # a version that is complete, and one before
    assert pair is not None
    assert [pair.figures[name].value for name in ("precision_at_k", "recall_at_k")] == pytest.approx([-0.2, -1 / 3])
    assert version.pk != made.pk


def test_a_run_on_accepted_labels_is_corrected_by_the_stored_probabilities() -> None:
    found = repair(size=70)
    (one,) = members(found)
    rate_all(found, one, most=40)
    version = accept_labels(found, by=one).question_set
    again, fresh = run_over(version, "A again", RANKINGS[0]), run_over(version, "C", (9, 0, 1, 2, 3))
    told = corrected_retrieval(again)
    assert told is not None
    assert (told.repair, told.k, told.questions, told.unrated, told.outside) == (found.pk, 5, 10, 30, 0)
    whole = {row.metric: row for row in compute_results(found).figures if not row.minus and row.system == "System A v1"}
    for row in told.figures:
        of = whole[row.metric]
        assert (row.value, row.low, row.high) == pytest.approx((of.value, of.low, of.high))
    precision = told.figures[0]
    # known are the first passage of each question and those found to be relevant among the 40 that were rated
    labelled = [set(question.read().ground_truth_chunk_ids) for question in version.questions.all()]
    right = sum(f"q{n}-{place}" in ids for n, ids in enumerate(labelled, 1) for place in RANKINGS[0])
    assert precision.labels_alone == pytest.approx(right / 50)
    assert precision.low is not None
    assert precision.high is not None
    assert precision.low < 0.4 < precision.high  # two of its five places are right
    beyond = corrected_retrieval(fresh)
    assert beyond is not None
    assert beyond.outside == 10
    assert {row.withheld for row in beyond.figures} == {"outside_pool"}
    assert corrected_retrieval(two_runs()[0]) is None


@pytest.mark.slow
def test_report_and_pages_of_such_a_run_say_so_and_follow_the_ratings() -> None:
    found = repair(size=70)
    (one,) = members(found)
    rate_all(found, one, most=40)
    version = accept_labels(found, by=one).question_set
    a, b = (run_over(version, f"{name} again", ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    lead, viewer = Client(), Client()
    lead.force_login(make_user(Role.LEAD, a.project))
    viewer.force_login(make_user(Role.VIEWER, a.project))
    link = f'href="{reverse("truth", args=[found.pk])}"'
    said = "30 passages of the pool of “first” are unrated and count as misses in the retrieval metrics."
    for page in (reverse("run", args=[a.pk]), reverse("run-retrieval", args=[a.pk])):
        read = lead.get(page).content.decode()
        assert said in read
        assert link in read
        assert link not in viewer.get(page).content.decode()
    assert said in lead.get(f"{reverse('run-compare')}?runs={a.pk},{b.pk}").content.decode()
    for form in ("html", "md"):
        with translation.override("en"):
            assert said in b"".join(export(a, form).chunks).decode()
    told = json.loads(b"".join(export(a, "json").chunks))["retrieval"]
    assert (told["repair"], told["unrated"], len(told["figures"])) == (found.pk, 30, 3)
    rate_all(found, one, most=10)
    assert "20 passages of the pool" in lead.get(reverse("run", args=[a.pk])).content.decode()
    assert differing_kinds(a) == []
    rate_all(found, one)
    told = json.loads(b"".join(export(a, "json").chunks))["retrieval"]
    assert (told["unrated"], told["figures"][0]["value"]) == (0, pytest.approx(0.4))


def test_files_hold_the_figures_and_the_whole_pool() -> None:
    found = repair(size=40)
    rate_all(found, members(found)[0])
    said = json.loads(b"".join(export_repair(found, "json").chunks))
    assert (said["target"], said["recall_relative_to"], said["rated"]) == ("this_run", "pool", 40)
    assert len(said["figures"]) == 9
    rows = list(csv.DictReader(io.StringIO(b"".join(export_repair(found, "csv").chunks).decode("utf-8-sig"))))
    assert len(rows) == 80
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(40)
    assert sum(bool(row["ratings"]) for row in rows) == 40


def test_the_commands_make_and_print_a_repair(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = two_runs()
    make_user(Role.REVIEWER, a.project)
    out = io.StringIO()
    call_command("repair_truth", str(a.pk), str(b.pk), name="by command", size=30, k=5, seed=1, stdout=out)
    found = RetrievalRepair.objects.get()
    assert out.getvalue() == f"repair {found.pk}: 30 passages to rate\n"
    out = io.StringIO()
    call_command("retrieval_truth", str(found.pk), stdout=out)
    assert "by command: 0 of 30 rated, 70 without a label" in out.getvalue()
    out = io.StringIO()
    call_command("retrieval_truth", str(found.pk), format="json", stdout=out)
    assert json.loads(out.getvalue())["drawn"] == 30
    with pytest.raises(CommandError, match="there is no repair 0"):
        call_command("retrieval_truth", "0")
    with pytest.raises(CommandError, match="two to 8"):
        call_command("repair_truth", str(a.pk), name="alone")
