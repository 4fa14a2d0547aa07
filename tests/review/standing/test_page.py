"""Page and REST endpoint of the standing score."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Run
from tests.factories import make_user
from tests.pages.markup import compact
from tests.review.clients import Caller
from tests.review.standing.releases import QUESTIONS, Releases

pytestmark = pytest.mark.django_db
EVERY_OTHER = range(0, QUESTIONS, 2)


@pytest.fixture
def releases() -> Releases:
    return Releases(make_user())


def page_of(client: Client, run: Run, role: Role = Role.VIEWER) -> str:
    client.force_login(make_user(role, run.project))
    return compact(client.get(reverse("run-standing", args=[run.pk])).content.decode())


def rate_release(releases: Releases, changed: range = range(0)) -> Run:
    """Rate every other answer of the first release, and the changed ones of the second."""
    releases.rate(releases.release(), {at: 2.0 + at % 3 for at in EVERY_OTHER})
    return releases.release(changed=changed)


def test_first_sentence_tells_score_and_cost(client: Client, releases: Releases) -> None:
    """Every answer is rated: 20 stand at 2 + at % 3, and 20 are rated 4 now."""
    run = rate_release(releases)
    releases.rate(run, {at: 4.0 for at in range(QUESTIONS) if at % 2}, 1.0)
    # 2, 4, 3, 2, 4, 3, ... sum to 20 x 3 - 1 = 59
    score = (59 + 80) / 40 / 5
    page = page_of(client, run)
    assert f"Experts would give rag v2 a score of {score:.2f} on these questions" in page
    assert "Experts rated 20 answers for this. 20 answers are the same as in earlier releases" in page


def test_release_without_a_sample_says_so(client: Client, releases: Releases) -> None:
    page = page_of(client, rate_release(releases))
    assert "rag v2 has no standing score yet: experts have rated 20 of its 40 answers in earlier releases" in page
    assert "Have 10 answers with earlier ratings rated again" in page
    assert "Request recheck" not in page


def test_lead_can_request_a_recheck(client: Client, releases: Releases) -> None:
    run = rate_release(releases)
    assert f'href="{reverse("queue-new")}?run={run.pk}&amp;strategy=recheck"' in page_of(client, run, Role.LEAD)


def test_tuning_is_explained(client: Client, releases: Releases) -> None:
    run = rate_release(releases, EVERY_OTHER)
    releases.rate(run, {at: 5.0 if at % 2 == 0 else 2.0 + at % 4 - 1 for at in range(QUESTIONS)}, 1.0)
    page = page_of(client, run)
    assert "Rated answers were changed more often (100%) than others with the same judge score (0%)" in page
    assert "the questions that nobody had rated before give 0.60" in page
    assert "p &lt; 0.001" in page


def test_drift_is_shown_with_its_consequence(client: Client, releases: Releases) -> None:
    run = rate_release(releases)
    releases.recheck(run, {at: 1.0 + at % 3 - (at == 2) * 0.5 for at in list(EVERY_OTHER)[:10]})
    page = page_of(client, run)
    assert "Experts rate differently today. Gates that use earlier ratings are undecided." in page


def test_unfinished_run_has_no_release(client: Client, releases: Releases) -> None:
    run = releases.release()
    Run.objects.filter(pk=run.pk).update(state=Run.State.INCOMPLETE)
    assert "No run over these answers has finished with this profile yet." in page_of(client, run)


def test_run_page_links_to_it(client: Client, releases: Releases) -> None:
    run = releases.release()
    client.force_login(make_user(Role.VIEWER, run.project))
    assert reverse("run-standing", args=[run.pk]) in client.get(reverse("run", args=[run.pk])).content.decode()


def test_rest_gives_the_same(releases: Releases) -> None:
    run = rate_release(releases, EVERY_OTHER)
    releases.rate(run, {at: 5.0 if at % 2 == 0 else 2.0 + at % 4 - 1 for at in range(QUESTIONS)}, 1.0)
    document: Any = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/standing/").json()
    first, second = document["releases"]
    assert (first["tuning"], first["changed"], first["rated"]) == (None, None, 20)
    assert (second["run_id"], second["rated"], second["standing"], second["changed"]) == (run.pk, 40, 0, 20)
    assert (second["score"]["value"], second["similar_questions"]["value"]) == (0.8, 0.6)
    assert (second["tuning"]["rated_changed"], second["tuning"]["fired"]) == (20, True)
    assert document["drift"] == {}
    assert document["sentence"].startswith("Experts would give rag v2 a score of 0.80")


def test_rest_names_the_drift(releases: Releases) -> None:
    run = rate_release(releases)
    releases.recheck(run, {at: 1.0 + at % 3 - (at == 2) * 0.5 for at in list(EVERY_OTHER)[:10]})
    document: Any = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/standing/").json()
    drift = document["drift"]["correctness"]
    assert (drift["value"], drift["rechecked"], drift["shown"]) == (-1.05, 10, True)
