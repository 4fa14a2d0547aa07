"""Optional features (extras) as the core reaches them, without importing any.

Each says in one :class:`Extra` what it does for the core; ``CONCORD_EXTRAS`` names those an installation has. A hook
that nobody has is left out by whoever would call it, and what was asked for expressly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.module_loading import import_string

from evaluation.core.errors import Refused
from evaluation.embedding.similarity import Embedder, EmbeddingChoice, TokenChoice, TokenModel
from evaluation.models import JudgeBatch, JudgeVersion, Run, User

if TYPE_CHECKING:
    from prometheus_client.core import Metric

OFF = "feature_off"


@dataclass(frozen=True, slots=True)
class BatchesOut:
    """The open batches of a run together: since when the first is out, how many calls stand in them, and how many of
    these the providers said to have done or failed when they were last asked. ``next_at`` is when the next one is asked
    about."""

    batches: int
    since: datetime
    lines: int
    done: int
    failed: int
    next_at: datetime | None

    @property
    def seconds_to_next(self) -> float:
        """How long nothing needs to be done about them."""
        return max(0.0, (self.next_at - timezone.now()).total_seconds()) if self.next_at else 0.0


@dataclass(frozen=True, slots=True)
class BatchHooks:
    """Handing calls over in batches that are answered later. ``open`` are the batches of which something is still to
    come, ``has_due`` whether one of a run's judge has to be seen to now; ``work`` is a worker's turn at the units of
    judges that share an endpoint and a model (how many ended), ``out`` what is out of a run, ``troubles`` why others of
    it ended badly, the newest first."""

    open: Callable[[], QuerySet[JudgeBatch]]
    has_due: Callable[[Run, JudgeVersion], bool]
    work: Callable[[JudgeVersion, Mapping[str, Any]], int]
    out: Callable[[Run], BatchesOut | None]
    troubles: Callable[[Run], Collection[str]]


@dataclass(frozen=True, slots=True)
class LocalModels:
    """Embeddings by a model of this machine. ``chosen`` and ``chosen_tokens`` are what a new run takes, none where
    there is no model; ``embedder`` and ``tokens`` open what a run was made with. All refuse what they cannot read."""

    chosen: Callable[[], EmbeddingChoice | None]
    chosen_tokens: Callable[[], TokenChoice | None]
    embedder: Callable[[EmbeddingChoice], Embedder]
    tokens: Callable[[TokenChoice], TokenModel]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for a person: ``count`` of ``what`` in the thing of that name, and the button that leads there."""

    count: int
    what: str
    name: str
    href: str
    action: str


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls as a ledger has them: ``work`` is what they are made for, ``replies`` are rows of a ``ReplyRow``."""

    work: str
    replies: QuerySet[Any]


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """What is asked for after the password. ``ask`` is the page to which somebody with the right one goes who wants to
    get to the address, none where they are in; ``admit`` an answer in place of that of a page to a session that may
    not go on. ``has`` is whether somebody has one, ``reset`` has it taken away by the second."""

    ask: Callable[[HttpRequest, User, str], HttpResponse | None]
    admit: Callable[[HttpRequest], HttpResponse | None]
    has: Callable[[User], bool]
    reset: Callable[[User, User], None]


@dataclass(frozen=True, slots=True)
class Extra:
    """What an optional feature does for the core; what it leaves out it has nothing to do with.

    ``urls`` and ``api_urls`` are modules of addresses. ``due_runs`` are runs to ring although no unit of theirs is
    claimable, ``problems`` says what is wrong with the background work. Over projects by id, ``gauges`` are figures for
    monitoring and ``calls`` those in other ledgers than that of runs. ``waiting`` is what waits for a person.
    ``demo`` adds to the demo's two runs what its reviewers and lead have done with them, once. ``second_factor`` is
    what a log-in asks for after the password.
    """

    name: str
    urls: str = ""
    api_urls: str = ""
    batches: BatchHooks | None = None
    local_models: LocalModels | None = None
    due_runs: Callable[[], QuerySet[Run]] | None = None
    problems: Callable[[], Iterable[str]] | None = None
    gauges: Callable[[Collection[int]], Iterable[Metric]] | None = None
    calls: Callable[[Collection[int]], Calls] | None = None
    waiting: Callable[[User], Iterable[Waiting]] | None = None
    demo: Callable[[Run, Run, list[User], User], None] | None = None
    second_factor: SecondFactor | None = None


def extras() -> list[Extra]:
    """The extras this installation has, in the order of the settings."""
    return [import_string(place) for place in settings.CONCORD_EXTRAS]


def has(name: str) -> bool:
    """Whether this installation has the extra."""
    return name in {extra.name for extra in extras()}


def require(name: str) -> None:
    """Go on only where the extra is there.

    :raises Refused: ``feature_off``.
    """
    if not has(name):
        raise Refused(OFF, feature=name)


def batch_hooks() -> BatchHooks | None:
    """Batches, where this installation has them."""
    return next((extra.batches for extra in extras() if extra.batches), None)


def local_models() -> LocalModels | None:
    """Local models, where this installation has them."""
    return next((extra.local_models for extra in extras() if extra.local_models), None)


def second_factor() -> SecondFactor | None:
    """Codes after the password, where this installation has them."""
    return next((extra.second_factor for extra in extras() if extra.second_factor), None)
