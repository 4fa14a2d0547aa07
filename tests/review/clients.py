"""A caller of the review endpoints, and queues to call them about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework.test import APIClient

from evaluation.models import User
from review.models import ReviewQueue

API = "/api/v1"
GOOD = {"correctness": {"value": 3}, "faithfulness": {"value": 3}}


class Caller:
    """A person calling the API with JSON."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.client = APIClient()
        self.client.force_authenticate(user)

    def get(self, path: str) -> Any:
        return self.client.get(f"{API}/{path}")

    def post(self, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> Any:
        """A request, with an ``Idempotency-Key`` if one is given."""
        headers = {"idempotency-key": key} if key else {}
        return self.client.post(f"{API}/{path}", body or {}, format="json", headers=headers)

    def next(self, queue: ReviewQueue) -> dict[str, Any]:
        """The card of the next item."""
        response = self.post(f"review-queues/{queue.pk}/next/")
        assert response.status_code == 200, response.content
        return dict(response.json())

    def submit(self, item: int, key: str = "k", values: Mapping[str, Any] | None = None, **fields: Any) -> HttpResponse:
        """A rating of both metrics."""
        return self.post(f"items/{item}/submit/", {"values": values or GOOD, "idempotency_key": key, **fields})


def members(queue: ReviewQueue) -> list[Caller]:
    """The queue's reviewers, ready to call."""
    return [Caller(row.reviewer) for row in queue.members.select_related("reviewer").order_by("pk")]
