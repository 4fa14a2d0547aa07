"""Selection of a rater's rows: independent of reading order, and each rater counts once."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from review.evidence.experts import ExpertRating, agreement_ratings, effective_ratings

BLANK = ExpertRating(
    pk=1,
    answer_id=1,
    metric_id=1,
    rater="",
    imported=False,
    phase="initial",
    blind=True,
    value=None,
    label=None,
    cannot_judge=False,
    sampling="",
    probability=None,
    occasion=1,
    assignment_id=1,
    queue_id=1,
    example=False,
    at=datetime(2026, 1, 1, tzinfo=UTC),
)


@st.composite
def rating_rows(draw: st.DrawFn) -> list[ExpertRating]:
    """Ratings as the tables allow them: keys increase with time, and a final rating is never blind."""
    ratings: list[ExpertRating] = []
    for pk in range(1, draw(st.integers(0, 12)) + 1):
        phase = draw(st.sampled_from(["initial", "final"]))
        cannot = draw(st.booleans())
        ratings.append(
            BLANK._replace(
                pk=pk,
                answer_id=draw(st.integers(1, 2)),
                rater=draw(st.sampled_from(["e1", "e2"])),
                phase=phase,
                blind=phase == "initial" and draw(st.booleans()),
                value=None if cannot else float(draw(st.integers(1, 5))),
                cannot_judge=cannot,
                assignment_id=(assignment := draw(st.integers(1, 3))),
                occasion=2 if assignment == 3 else 1,  # an assignment is of one item, which has one occasion
            )
        )
    return ratings


@given(rating_rows())
def test_rater_counts_at_most_once_per_answer(all_rows: list[ExpertRating]) -> None:
    for chosen in (effective_ratings(all_rows), agreement_ratings(all_rows)):
        for ratings in chosen.values():
            raters = [row.rater for row in ratings]
            assert len(raters) == len(set(raters))
            assert not any(row.cannot_judge for row in ratings)


@given(rating_rows())
def test_agreement_uses_blind_initial_ratings_of_first_occasions_only(all_rows: list[ExpertRating]) -> None:
    for ratings in agreement_ratings(all_rows).values():
        for row in ratings:
            same_rater = [r for r in all_rows if (r.key, r.rater, r.phase) == (row.key, row.rater, "initial")]
            assert row.blind
            assert row.phase == "initial"
            assert row.occasion == min(r.occasion for r in same_rater)
            assert row.pk == max(
                r.pk for r in same_rater if r.assignment_id == row.assignment_id and r.occasion == row.occasion
            )


@given(rating_rows(), st.randoms(use_true_random=False))
def test_reading_order_does_not_matter_for_agreement(all_rows: list[ExpertRating], shuffler: Random) -> None:
    shuffled = list(all_rows)
    shuffler.shuffle(shuffled)

    def chosen_keys(rows_in_order: list[ExpertRating]) -> set[int]:
        return {row.pk for ratings in agreement_ratings(rows_in_order).values() for row in ratings}

    assert chosen_keys(shuffled) == chosen_keys(all_rows)


@given(rating_rows())
def test_hidden_repeats_and_superseded_finals_never_count(all_rows: list[ExpertRating]) -> None:
    for ratings in effective_ratings(all_rows).values():
        for row in ratings:
            first = [r for r in all_rows if (r.key, r.rater) == (row.key, row.rater) and r.occasion == 1]
            finals = [r.pk for r in first if r.phase == "final"]
            assert row.pk == (max(finals) if finals else max(r.pk for r in first))
