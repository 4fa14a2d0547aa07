"""Questions that a judge generates from the answer: the request, and parsing without embeddings."""

from __future__ import annotations

from evaluation.core.metric_specs import RuleSettings
from evaluation.judging.families.asked_back import WrittenQuestions, parse_written
from tests.evaluation.judging.families.scripted import make_case, make_reply
from tests.evaluation.judging.samples import run_dialog

CASE = make_case("asked_back", settings=RuleSettings(embeds=True))


def test_write_step_shows_only_the_answer() -> None:
    (request,), results = run_dialog(CASE, make_reply(questions=["a?"], noncommittal=False))
    assert results == {}  # the questions wait for embeddings
    assert (dict(request.blocks), request.step, request.all_parts_required) == (
        {"answer": CASE.answer.text},
        "write",
        True,
    )


def test_reply_yields_at_most_three_questions_and_the_noncommittal_flag() -> None:
    reply = make_reply(questions=["a?", "", "b?", "c?", "d?"], noncommittal=False)
    assert parse_written(reply.raw) == WrittenQuestions(("a?", "b?", "c?"), False)
    assert parse_written(make_reply(questions=[], noncommittal=True).raw) == WrittenQuestions((), True)
    assert parse_written("no questions") is None
