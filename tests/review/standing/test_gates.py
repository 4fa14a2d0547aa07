"""Gates on a corrected score that keeps ratings of earlier releases."""

from __future__ import annotations

import pytest

from evaluation.models import Run
from review.comparisons.gates import run_gate
from review.reports.gate import GateCheck, GateRequest
from review.statistics.paired_tests.gate import GateVerdict
from tests.factories import make_user
from tests.review.standing.releases import QUESTIONS, Releases

pytestmark = pytest.mark.django_db
EVERY_OTHER = range(0, QUESTIONS, 2)


@pytest.fixture
def releases() -> Releases:
    """A first release, of which every other answer is rated 2, 3 or 4."""
    releases = Releases(make_user())
    releases.rate(releases.release(), {at: 2.0 + at % 3 for at in EVERY_OTHER})
    return releases


def check_of(run: Run, limit: float, **request: object) -> GateCheck:
    gate = run_gate(run, GateRequest(fail_under=limit, **request))
    assert gate is not None
    (check,) = gate.checks
    return check


def test_kept_ratings_decide(releases: Releases) -> None:
    """20 ratings stand, and the others are all rated 4."""
    run = releases.release()
    releases.rate(run, {at: 4.0 for at in range(QUESTIONS) if at % 2}, 1.0)
    check = check_of(run, 0.5)
    assert (check.verdict, check.reason) == (GateVerdict.PASSED, "")


def test_drift_leaves_the_gate_undecided(releases: Releases) -> None:
    """Ten standing answers are rated again, nine of them one level lower."""
    run = releases.release()
    releases.rate(run, {at: 4.0 for at in range(QUESTIONS) if at % 2}, 1.0)
    releases.recheck(run, {at: 1.0 + at % 3 + (at == 2) for at in list(EVERY_OTHER)[:10]})
    check = check_of(run, 0.5)
    assert (check.verdict, check.reason) == (GateVerdict.UNDECIDED, "drifted")
    assert check_of(run, 0.5, gate_on="judge_only").reason == ""


def test_tuned_release_is_gated_on_never_rated_questions(releases: Releases) -> None:
    """Rated answers were all replaced by ones that get a 5; the other questions get 2 or 4, 0.6 on average."""
    run = releases.release(changed=EVERY_OTHER)
    releases.rate(run, {at: 5.0 if at % 2 == 0 else 2.0 + at % 4 - 1 for at in range(QUESTIONS)}, 1.0)
    check = check_of(run, 0.75)
    assert (check.value, check.verdict) == (pytest.approx(0.6), GateVerdict.FAILED)


def test_tuned_release_with_few_new_questions_is_undecided(releases: Releases) -> None:
    run = releases.release(changed=EVERY_OTHER)
    releases.rate(run, {at: 4.0 + at % 2 for at in range(22)}, 22 / 40)
    check = check_of(run, 0.5)
    assert (check.verdict, check.reason) == (GateVerdict.UNDECIDED, "tuned")
