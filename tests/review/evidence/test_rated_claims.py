"""Claims, nuggets and passages rated one by one: the value is the metric's formula, the parts are stored as rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import DatabaseError

from evaluation.core.errors import DomainError
from evaluation.core.samples import Nugget
from evaluation.models import Context, Finding, Score
from review.evidence.rating_input import PartVerdict, RatingInput, RatingUpdate, offered_parts
from review.models import Assignment, Rating, RatingPart
from review.ratings.card import card_claims
from review.ratings.leases import next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import stored_inputs, submit, undo
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, question_spec

pytestmark = pytest.mark.django_db
#: Place in the answer, text, the judge's verdict: not in the order of places, so that the order tells nothing.
CLAIMS = [(20, "Third, by its place.", "contradicted"), (0, "First.", "supported"), (9, "Second.", "unsupported")]


def open_item(metric: str = "claim_support", *, reveal_to: str = "never", claims: bool = True) -> Assignment:
    """Open an item whose answer has three claims, two passages and two nuggets."""
    nuggets = (Nugget(name="alpha", alternatives=("a",)), Nugget(name="beta"))
    answers = make_answer_set(make_question_set(specs=[question_spec(1, nuggets=nuggets)]), texts=["x" * 60])
    Context.objects.create(answer=answers.answers.get(), position=1, chunk_id="c2", text="Another.")
    run = make_scored_run(answers, values=[1 if metric == "context_precision" else 0.9], metrics=[metric])
    if claims:
        score = Score.objects.get(run=run)
        Finding.objects.bulk_create(
            Finding(score=score, kind="claim", position=i, text=text, verdict=verdict, start=position, end=position + 5,
                    quote="words", context=0, reason="zebra")
            for i, (position, text, verdict) in enumerate(CLAIMS)
        )  # fmt: skip
    queue = make_queue(run, metrics=[metric], reveal=reveal_to)
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment is not None
    return assignment


def parts_input(*verdicts: str, added: tuple[PartVerdict, ...] = ()) -> RatingInput:
    return RatingInput(
        parts=(*(PartVerdict(verdict, number) for number, verdict in enumerate(verdicts, start=1)), *added)
    )


def test_claims_are_shown_by_position_without_judge_verdict() -> None:
    item = open_item().item
    claims = card_claims(item, with_judge=False)
    assert [(claim.number, claim.text) for claim in claims] == [
        (1, "First."),
        (2, "Second."),
        (3, "Third, by its place."),
    ]
    assert "zebra" not in repr(claims)
    assert "contradicted" not in repr((claims, offered_parts(item, item.queue.metrics.get().metric)))
    judged_claims = card_claims(item, with_judge=True)
    assert [claim.judge.verdict for claim in judged_claims if claim.judge] == [
        "supported",
        "unsupported",
        "contradicted",
    ]


def test_claim_ratings_give_the_formula_value_and_are_stored_as_rows() -> None:
    assignment = open_item()
    missed_claim = PartVerdict("supported", 0, "A claim nobody found.")
    rating_input = parts_input("supported", "partial", "contradicted", added=(missed_claim,))
    submit(assignment, {"claim_support": rating_input}, idempotency_key="k", by=assignment.reviewer)
    rating = Rating.objects.get()
    assert rating.value == 0.5  # supported: 1 and the added one, of 4; partial support does not count
    rows = list(rating.rated_parts.values_list("position", "kind", "text", "verdict", "added"))
    assert rows == [
        (1, "claim", "First.", "supported", False),
        (2, "claim", "Second.", "partial", False),
        (3, "claim", "Third, by its place.", "contradicted", False),
        (4, "claim", "A claim nobody found.", "supported", True),
    ]


def test_repeated_submit_compares_the_verdicts_on_parts() -> None:
    assignment = open_item()
    missed_claim = PartVerdict("partial", 0, "A claim nobody found.")
    rating = parts_input("supported", "partial", "contradicted", added=(missed_claim,))
    submit(assignment, {"claim_support": rating}, idempotency_key="k", by=assignment.reviewer)
    same_input = replace(rating, parts=rating.parts[::-1])
    assert submit(assignment, {"claim_support": same_input}, idempotency_key="k", by=assignment.reviewer).repeated
    # The formula gives both ratings one value.
    other_rating = parts_input("supported", "contradicted", "partial", added=(missed_claim,))
    with pytest.raises(DomainError) as error:
        submit(assignment, {"claim_support": other_rating}, idempotency_key="k", by=assignment.reviewer)
    assert error.value.code == "key_reused"


def test_part_rows_are_append_only() -> None:
    assignment = open_item()
    submit(assignment, {"claim_support": parts_input(*["supported"] * 3)}, idempotency_key="k", by=assignment.reviewer)
    with pytest.raises(DatabaseError):
        RatingPart.objects.update(verdict="unsupported")


def test_undo_restores_the_verdicts_as_a_draft() -> None:
    assignment = open_item()
    rating = parts_input("supported", "partial", "unsupported", added=(PartVerdict("partial", 0, "One more."),))
    submit(assignment, {"claim_support": rating}, idempotency_key="k", by=assignment.reviewer)
    assert stored_inputs(assignment)["claim_support"].parts == rating.parts
    reopened = undo(assignment, by=assignment.reviewer)
    assert [part["verdict"] for part in reopened.draft.payload["values"]["claim_support"]["parts"]] == [
        "supported", "partial", "unsupported", "partial",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rating", "code"),
    [
        (parts_input("supported", "supported"), "parts_undecided"),
        (parts_input("supported", "supported", "splendid"), "unknown_verdict"),
        (parts_input("supported", "supported", "supported", "supported"), "unknown_part"),
        (
            parts_input("supported", "supported", "supported", added=(PartVerdict("supported", 0, " "),)),
            "too_many_parts",
        ),
        (RatingInput(value=0.9), "parts_needed"),
    ],
)
def test_rating_by_parts_is_complete_or_refused(rating: RatingInput, code: str) -> None:
    assignment = open_item()
    with pytest.raises(DomainError) as error_info:
        submit(assignment, {"claim_support": rating}, idempotency_key="k", by=assignment.reviewer)
    assert error_info.value.code == code
    assert not Rating.objects.exists()


def test_answer_without_claims_can_only_be_marked_as_not_judgeable() -> None:
    assignment = open_item(claims=False)
    with pytest.raises(DomainError) as error_info:
        submit(assignment, {"claim_support": RatingInput()}, idempotency_key="k", by=assignment.reviewer)
    assert error_info.value.code == "no_parts"
    rating = RatingInput(cannot_judge=True, reason_code="nothing_to_judge")
    submit(assignment, {"claim_support": rating}, idempotency_key="k", by=assignment.reviewer)
    assert Rating.objects.get().reason_code == "nothing_to_judge"


@pytest.mark.parametrize(
    ("metric", "verdicts", "figure"),
    [
        ("context_precision", ("relevant", "irrelevant"), 50.0),  # 1 of 2 x 100
        ("context_average_precision", ("irrelevant", "relevant"), 50.0),  # the one relevant at rank 2: 1/2 x 100
        ("nugget_support", ("supported", "partial"), 0.5),  # strict: 1 of 2
        ("nugget_coverage", ("present", "missing"), 0.5),
        ("citation_coverage", ("cited", "cited"), 1.0),
    ],
)
def test_each_form_has_its_own_verdicts_and_formula(metric: str, verdicts: tuple[str, ...], figure: float) -> None:
    assignment = open_item(metric, claims=False)
    submit(assignment, {metric: parts_input(*verdicts)}, idempotency_key="k", by=assignment.reviewer)
    assert Rating.objects.get().value == figure


def test_revision_after_the_reveal_is_made_by_parts_too() -> None:
    assignment = open_item(reveal_to="always")
    submit(assignment, {"claim_support": parts_input(*["supported"] * 3)}, idempotency_key="k", by=assignment.reviewer)
    revealed = reveal(assignment)
    assert dict(revealed[0].parts)["First."] == "supported"
    change = RatingUpdate(
        parts=parts_input("supported", "unsupported", "unsupported").parts, reason_code="judge_too_strict"
    )
    finalise(assignment, {"claim_support": change}, by=assignment.reviewer)
    final_rating = Rating.objects.get(phase="final")
    assert final_rating.value == pytest.approx(1 / 3)
    assert [part.verdict for part in final_rating.rated_parts.all()] == ["supported", "unsupported", "unsupported"]
    assert [part.verdict for part in Rating.objects.get(phase="initial").rated_parts.all()] == ["supported"] * 3
