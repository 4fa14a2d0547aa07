"""Questions that a judge writes from the answer: what it is asked, and what becomes of its reply without embeddings."""

from __future__ import annotations

from evaluation.core.metric_specs import RuleSettings
from evaluation.judging.families.asked_back import WrittenQuestions, parse_written
from tests.evaluation.judging.families.scripted import before, said
from tests.evaluation.judging.samples import talked

CASE = before("asked_back", settings=RuleSettings(embeds=True))


def test_the_judge_is_shown_the_answer_alone_under_a_step_of_its_own() -> None:
    (ask,), results = talked(CASE, said(questions=["a?"], noncommittal=False))
    assert results == {}  # the questions wait for embeddings
    assert (dict(ask.blocks), ask.step, ask.all_parts_required) == ({"answer": CASE.answer.text}, "write", True)


def test_at_most_three_questions_are_read_and_whether_the_answer_commits_to_nothing() -> None:
    many = said(questions=["a?", "", "b?", "c?", "d?"], noncommittal=False)
    assert parse_written(many.raw) == WrittenQuestions(("a?", "b?", "c?"), False)
    assert parse_written(said(questions=[], noncommittal=True).raw) == WrittenQuestions((), True)
    assert parse_written("no questions") is None
