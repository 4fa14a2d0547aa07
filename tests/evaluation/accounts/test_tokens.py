"""API tokens act for one user and cannot rate for another."""

from __future__ import annotations

import pytest
from django.db import IntegrityError
from django.db.utils import InternalError
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import ApiToken, User
from review.decisions.overrides import override
from review.models import Override, Rating
from tests.evaluation.rest.clients import Caller
from tests.factories import make_queue, make_scored_run, make_user
from tests.pages.world import make_world

pytestmark = pytest.mark.django_db
VALUES = {"correctness": {"value": 3}, "faithfulness": {"value": 3}}


def rated_by_token(made_by: User | None = None) -> list[Rating]:
    """Ratings submitted with a reviewer's token; ``made_by`` is the user who created the token."""
    run = make_scored_run(values=[3])
    reviewer = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, reviewers=[reviewer])
    caller = Caller(None, run.project, user=reviewer)
    if made_by:
        ApiToken.objects.update(made_by=made_by)
    item = caller.post(f"review-queues/{queue.pk}/next/").json()["id"]
    caller.post(f"items/{item}/submit/", {"values": VALUES, "idempotency_key": "k"})
    return list(Rating.objects.order_by("pk"))


def test_own_token_rates_blind_and_is_recorded_on_the_rating() -> None:
    assert [(row.blind, row.token_id) for row in rated_by_token()] == [(True, ApiToken.objects.get().pk)] * 2


def test_token_created_by_another_user_never_rates_blind() -> None:
    assert [row.blind for row in rated_by_token(make_user(Role.ADMIN))] == [False, False]


def test_database_rejects_blind_rating_by_a_token_of_another_user() -> None:
    first = rated_by_token()[0]
    ApiToken.objects.update(made_by=make_user(Role.ADMIN))
    copy = Rating(**{f.attname: getattr(first, f.attname) for f in Rating._meta.concrete_fields if f.name != "id"})
    copy.idempotency_key, copy.seq = "other", 1
    with pytest.raises((IntegrityError, InternalError), match="by a token another made"):
        copy.save(force_insert=True)


def test_override_over_rest_records_its_token() -> None:
    run = make_scored_run(values=[3])
    lead = Caller(Role.LEAD, run.project)
    lead.user.token_id = ApiToken.objects.get().pk
    override(run.answer_set.answers.first(), run.scores.first().metric, value=2, reason="wrong", by=lead.user)
    assert Override.objects.get().token_id == ApiToken.objects.get().pk


def test_administrators_create_tokens_for_themselves_and_service_users_only() -> None:
    world = make_world()
    bot = make_user(Role.EVALUATOR, world.project, is_service=True)
    other_bot = make_user(Role.EVALUATOR, is_service=True)
    form = world.client("admin").get(reverse("admin:evaluation_apitoken_add")).context["adminform"].form
    choices = set(form.fields["user"].queryset)
    assert choices == {world.people["admin"], bot}
    assert other_bot not in choices


def test_a_service_user_cannot_log_in() -> None:
    make_user(username="bot", is_service=True)
    assert Client().post("/login/", {"username": "bot", "password": "a good password"}).status_code == 200


def test_users_create_and_revoke_their_own_tokens() -> None:
    world = make_world()
    client = world.client("viewer")
    fields = {"name": "notebook", "project": world.project.pk, "scope": "read", "days": 30}
    page = client.post(reverse("token-make"), fields).content.decode()
    text = "concord_" + page.partition("concord_")[2].partition("<")[0]
    runs = f"/api/v1/runs/{world.run.pk}/"
    assert Client().get(runs, headers={"Authorization": f"Bearer {text}"}).status_code == 200
    token = ApiToken.objects.get(name="notebook")
    assert (token.user, token.made_by) == (world.people["viewer"], world.people["viewer"])
    assert text not in client.get(reverse("account")).content.decode()
    client.post(reverse("token-revoke", args=[token.pk]))
    assert Client().get(runs, headers={"Authorization": f"Bearer {text}"}).status_code == 401


@pytest.mark.parametrize("wrong", [{"days": 366}, {"days": 0}, {"scope": "all"}, {"project": 0}])
def test_invalid_token_shows_the_error_at_its_field(wrong: dict[str, object]) -> None:
    world = make_world()
    fields = {"name": "n", "project": world.project.pk, "scope": "read", "days": 30} | wrong
    response = world.client("viewer").post(reverse("token-make"), fields)
    assert response.context["token_form"].errors.keys() == wrong.keys()
    assert not ApiToken.objects.filter(name="n").exists()
