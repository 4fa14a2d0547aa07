"""Versions that quote locked answers or name their questions are refused before a hold-out test."""

from __future__ import annotations

import pytest

from evaluation.core.errors import DomainError
from evaluation.criteria.rubrics import draft
from evaluation.models import Endpoint, RubricVersion
from review.calibration.holdout_rules import check_no_quotes, open_holdout_test
from review.calibration.retirement import retire
from review.calibration.versions import freeze
from review.models import GoldItem, GoldSet, HoldoutTest
from review.statistics.acceptance import Claim
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, question_spec
from tests.review.builders import answer_rows, imported_rating, metric, run_over
from tests.review.calibration.labelled import rubric_with_instruction

pytestmark = pytest.mark.django_db
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]


@pytest.fixture
def gold() -> GoldSet:
    specs = [question_spec(n) for n in range(12)]
    texts = [" ".join(f"{word}{n}" for word in WORDS) for n in range(12)]
    run = run_over(make_answer_set(make_question_set(make_project(), specs), texts=texts), judged=False)
    for number, answer in enumerate(answer_rows(run)):
        imported_rating(answer, metric("correctness"), "a", 1 + number % 5, sampling="all")
    return freeze(run, "gold", by=None)


def items(gold: GoldSet, *, locked: bool) -> list[GoldItem]:
    rows = gold.items.select_related("answer__question").order_by("pk")
    return list(rows.filter(split="hold_out") if locked else rows.exclude(split="hold_out"))


def version(gold: GoldSet, text: str) -> RubricVersion:
    return draft(gold.project, rubric_with_instruction(text), by=None)


def test_table_of_locked_answers_is_refused_without_spending_error(gold: GoldSet) -> None:
    table = "\n".join(f"{item.answer.text} = {item.label}" for item in items(gold, locked=True))
    memorising = version(gold, f"Read the answer. {table}")
    with pytest.raises(DomainError, match="prompt_quotes_hold_out"):
        check_no_quotes(gold.project_id, memorising)
    endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
    judge = make_judge(gold.project, "judge", endpoint=endpoint)
    with pytest.raises(DomainError, match="prompt_quotes_hold_out"):
        open_holdout_test(gold, judge, memorising, by=None, claim=Claim.BETTER)
    assert not HoldoutTest.objects.exists()


def test_eight_words_of_one_locked_answer_are_refused(gold: GoldSet) -> None:
    words = items(gold, locked=True)[0].answer.text.split()
    with pytest.raises(DomainError, match="prompt_quotes_hold_out"):
        check_no_quotes(gold.project_id, version(gold, "Give 2 for " + " ".join(words[2:10])))
    check_no_quotes(gold.project_id, version(gold, "Give 2 for " + " ".join(words[2:9])))


def test_three_ids_of_locked_questions_are_refused(gold: GoldSet) -> None:
    ids = [question_id.answer.question.external_id for question_id in items(gold, locked=True)]
    with pytest.raises(DomainError, match="prompt_quotes_hold_out"):
        check_no_quotes(gold.project_id, version(gold, " ".join(f"{question_id}=2" for question_id in ids[:3])))
    check_no_quotes(gold.project_id, version(gold, " ".join(f"{question_id}=2" for question_id in ids[:2])))


def test_examples_of_open_answers_are_allowed(gold: GoldSet) -> None:
    examples = "\n".join(item.answer.text for item in items(gold, locked=False))
    check_no_quotes(gold.project_id, version(gold, f"Read the answer. {examples}"))


def test_retired_gold_set_locks_nothing(gold: GoldSet) -> None:
    text = items(gold, locked=True)[0].answer.text
    retire(gold, by=None, reason="The next one is larger")
    check_no_quotes(gold.project_id, version(gold, text))
