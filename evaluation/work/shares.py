"""Sharing an endpoint: its places and rates among all workers, on whatever host, and the rest it asked for.

Each worker has a row that it renews every second or so. Of places and rates it takes its fair part, yet never more than
the others have left over: who has to hand something over does so at his next renewal, and until then the newcomer
waits. So the endpoint's limits hold at every moment. A worker that was not seen for a while counts as gone.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from evaluation.judging.pacing import Allowance
from evaluation.models import Endpoint
from evaluation.models.work import EndpointShare

RENEW_SECONDS = 1.0
WAITING_SECONDS = 0.25  # between renewals while one has less than one's fair part
GONE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Granted:
    """What a worker may use now; ``rest_seconds`` is how long the endpoint wants to be left alone; ``complete`` where
    it is all that it will get while the same workers take part."""

    allowance: Allowance
    rest_seconds: float = 0.0
    complete: bool = True


class Share:
    """One worker's part of an endpoint, for a run or something else in a project. It begins with the first renewal and
    ends with ``leave``."""

    def __init__(self, endpoint: Endpoint, run_id: int | None, wanted: int, *, project_id: int | None = None) -> None:
        self._endpoint_id, self._run_id, self._project_id, self._wanted = endpoint.pk, run_id, project_id, wanted
        self._worker = uuid.uuid4()

    def renew(self, out: int = 0, limit: int = 0) -> Granted:
        """Take the fair part anew. ``out`` calls are out: their places cannot be handed over yet."""
        with transaction.atomic():
            endpoint = Endpoint.objects.select_for_update().annotate(now=Now()).get(pk=self._endpoint_id)
            shares = EndpointShare.objects.filter(endpoint=endpoint)
            shares.exclude(_seen_lately()).exclude(worker=self._worker).delete()
            rows = list(shares.order_by("id"))
            mine = next((row for row in rows if row.worker == self._worker), None)
            others = [row for row in rows if row.worker != self._worker]
            wants = [*(row.wanted for row in rows), *([] if mine else [self._wanted])]
            place = rows.index(mine) if mine else len(rows)
            fair = fair_parts(endpoint.max_concurrency, wants)[place]
            places = min(fair, max(0, endpoint.max_concurrency - sum(row.places for row in others)))
            fair_part = 1.0 / len(wants)
            part = max(0.0, min(fair_part, 1.0 - sum(row.part for row in others)))
            EndpointShare.objects.update_or_create(
                worker=self._worker,
                defaults={
                    "endpoint": endpoint,
                    "run_id": self._run_id,
                    "project_id": self._project_id,
                    "wanted": self._wanted,
                    "places": max(places, min(out, mine.places if mine else 0)),
                    "part": part,
                    "out": out,
                    "limit": min(limit, places) if limit else places,
                    "seen_at": Now(),
                },
            )
            now = endpoint.now
        rest = (endpoint.cooldown_until - now).total_seconds() if endpoint.cooldown_until else 0.0
        allowance = Allowance(
            places, _part_of(endpoint.requests_per_minute, part), _part_of(endpoint.tokens_per_minute, part)
        )
        complete = places == fair and part > fair_part * 0.99
        return Granted(allowance, max(0.0, rest), complete)

    def rest(self, seconds: float) -> None:
        """Have every worker leave the endpoint alone for so long; a longer rest that was asked for before stays."""
        until = Now() + timedelta(seconds=seconds)
        shorter = Q(cooldown_until__isnull=True) | Q(cooldown_until__lt=until)
        Endpoint.objects.filter(shorter, pk=self._endpoint_id).update(cooldown_until=until)

    def leave(self) -> None:
        """Hand everything over."""
        EndpointShare.objects.filter(worker=self._worker).delete()


def live_shares() -> QuerySet[EndpointShare]:
    """The shares of the workers that were seen lately."""
    return EndpointShare.objects.filter(_seen_lately())


def _seen_lately() -> Q:
    """Not long ago; nor in the future, as the rows of a dead worker are after the clock was set back."""
    slack = timedelta(seconds=GONE_SECONDS)
    return Q(seen_at__gt=Now() - slack, seen_at__lt=Now() + slack)


def _part_of(rate: int | None, part: float) -> float | None:
    return None if rate is None else rate * part


def fair_parts(whole: int, wants: Sequence[int]) -> list[int]:
    """Whole places for each want: nobody gets more than he wants, what one does not want goes to the others, and the
    parts of those who want more differ by one at most, the earlier getting the larger."""
    parts = [0] * len(wants)
    left = min(whole, sum(wants))
    while left > 0:
        hungry = [i for i, want in enumerate(wants) if parts[i] < want]
        each = max(1, left // len(hungry))
        for i in hungry:
            more = min(each, wants[i] - parts[i], left)
            parts[i] += more
            left -= more
    return parts
