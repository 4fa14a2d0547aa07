"""Registry through which optional features extend the core, which imports none of them.

The ``feature`` module of an app holds its :class:`Feature`. The app registers it when it is ready; it is imported on
first use, so that commands start quickly. ``INSTALLED_APPS`` determines the features of a site and their order. The
core registers its own background tasks in the same way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from evaluation.core.errors import DomainError

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from prometheus_client.core import Metric

    from evaluation.connectors.protocol import Connector
    from evaluation.judging.embedding.similarity import Embedder, EmbeddingChoice, TokenChoice, TokenModel
    from evaluation.models import JudgeVersion, Run, User
    from evaluation.worker.jobs import JobKind

FEATURE_OFF = "feature_off"


@dataclass(frozen=True, slots=True)
class OpenBatches:
    """Summary of a run's open batches.

    ``since``: when the first was submitted. ``lines``: number of calls; ``done``, ``failed``: as last reported by the
    providers. ``next_at``: time of the next poll."""

    batches: int
    since: datetime
    lines: int
    done: int
    failed: int
    next_at: datetime | None

    @property
    def seconds_to_next(self) -> float:
        """Seconds until the next poll."""
        return max(0.0, (self.next_at - timezone.now()).total_seconds()) if self.next_at else 0.0


@dataclass(frozen=True, slots=True)
class BatchHooks:
    """Calls sent to a provider in batches and answered later.

    ``open`` returns unfinished batches. ``has_due`` returns whether a batch of a run's judge is due for a poll.
    ``work`` gives the steps that process the units of judges with the same endpoint and model; their result is how many
    ended. ``run_batches`` returns all batches of a run, oldest first; ``summarize_open`` summarizes the open ones;
    ``failure_reasons`` are those of ended batches, newest first."""

    open: Callable[[], QuerySet[Any]]
    has_due: Callable[[Run, JudgeVersion], bool]
    work: Callable[[JudgeVersion, Mapping[str, Any]], Generator[float | None, None, int]]
    run_batches: Callable[[Run], list[Any]]
    summarize_open: Callable[[Run], OpenBatches | None]
    failure_reasons: Callable[[Run], Collection[str]]


@dataclass(frozen=True, slots=True)
class LocalModels:
    """Embeddings by a local model.

    ``choose_embedding`` and ``choose_token_model`` return the choice for a new run, ``None`` without a model.
    ``open_embedder`` and ``open_token_model`` open the model of an existing run. All raise ``DomainError`` for an
    unreadable model."""

    choose_embedding: Callable[[], EmbeddingChoice | None]
    choose_token_model: Callable[[], TokenChoice | None]
    open_embedder: Callable[[EmbeddingChoice], Embedder]
    open_token_model: Callable[[TokenChoice], TokenModel]


@dataclass(frozen=True, slots=True)
class TodoItem:
    """Entry of a user's to-do list: count, label, object name, and a link with its button text."""

    count: int
    label: str
    name: str
    href: str
    action: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Search result: text, location and URL."""

    text: str
    note: str
    href: str


@dataclass(frozen=True, slots=True)
class SearchHits:
    """Search results of one kind; ``empty`` is the message if there are none."""

    title: str
    rows: list[SearchHit]
    empty: str


@dataclass(frozen=True, slots=True)
class LedgerCalls:
    """Calls of a ledger: their ``purpose`` and ``replies``, rows of a ``ReplyRow``."""

    purpose: str
    replies: QuerySet[Any]


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """Second step of the login.

    ``ask`` returns the page for a user with a correct password who requested a URL, or ``None`` if no code is needed.
    ``admit`` returns a response that replaces the page if the session may not continue. ``has`` returns whether a user
    has set it up. ``reset`` removes the first user's second factor on behalf of the second user."""

    ask: Callable[[HttpRequest, User, str], HttpResponse | None]
    admit: Callable[[HttpRequest], HttpResponse | None]
    has: Callable[[User], bool]
    reset: Callable[[User, User], None]


@dataclass(frozen=True, slots=True)
class JudgeAttacks:
    """Robustness of a judge against attacks.

    ``template`` renders ``card`` on the judge's page. ``passed``: share of attacks without effect (``28/30``); empty
    without a check."""

    template: str
    card: object
    passed: str


@dataclass(frozen=True, slots=True)
class Feature:
    """Extensions of one app; all except the name are optional.

    ``urls``, ``api_urls``: URL modules. ``jobs``: kinds of background jobs. ``periodic``: functions called once a
    minute. ``after_drain``: functions called after work in a process without workers. ``due_runs``: runs to enqueue
    although none of their units is claimable. ``problems``: descriptions of problems of background work. ``gauges``,
    ``calls``: monitoring figures and calls of other ledgers, for projects by id. ``todo_items``: to-dos of a user.
    ``demo``: additions to the two demo runs, for their reviewers and lead. ``attacks``: robustness of a judge.
    ``connectors``: further kinds of systems. ``search``: a limited number of rows with given words for a user.
    ``passages``: texts of a project's passages by id. ``answer_source``: template of a card on the page of a new
    evaluation."""

    name: str
    urls: str = ""
    api_urls: str = ""
    jobs: tuple[JobKind, ...] = ()
    periodic: tuple[Callable[[], object], ...] = ()
    after_drain: tuple[Callable[[], object], ...] = ()
    batches: BatchHooks | None = None
    local_models: LocalModels | None = None
    due_runs: Callable[[], QuerySet[Run]] | None = None
    problems: Callable[[], Iterable[str]] | None = None
    gauges: Callable[[Collection[int]], Iterable[Metric]] | None = None
    calls: Callable[[Collection[int]], LedgerCalls] | None = None
    todo_items: Callable[[User], Iterable[TodoItem]] | None = None
    demo: Callable[[Run, Run, list[User], User], None] | None = None
    second_factor: SecondFactor | None = None
    attacks: Callable[[JudgeVersion], JudgeAttacks] | None = None
    connectors: tuple[Connector, ...] = ()
    search: Callable[[User, str, int], SearchHits] | None = None
    passages: Callable[[int, Sequence[str]], Mapping[str, str]] | None = None
    answer_source: str = ""


REGISTRY: dict[str, Callable[[], Feature]] = {}


def register(label: str, package: str) -> None:
    """Register the ``FEATURE`` of an app's ``feature`` module in ``AppConfig.ready()``; it is imported on first use."""
    REGISTRY[label] = partial(_load, f"{package}.feature")


def _load(module: str) -> Feature:
    feature: Feature = import_module(module).FEATURE
    return feature


def features() -> list[Feature]:
    """Registered features, in the order of ``INSTALLED_APPS``."""
    return [load() for load in REGISTRY.values()]


def is_installed(name: str) -> bool:
    """Return whether the feature is installed."""
    return name in REGISTRY


def require(name: str) -> None:
    """Refuse work that needs a missing feature.

    :raises DomainError: ``feature_off``."""
    if not is_installed(name):
        raise DomainError(FEATURE_OFF, feature=name)


def batch_hooks() -> BatchHooks | None:
    return next((feature.batches for feature in features() if feature.batches), None)


def local_models() -> LocalModels | None:
    return next((feature.local_models for feature in features() if feature.local_models), None)


def second_factor() -> SecondFactor | None:
    return next((feature.second_factor for feature in features() if feature.second_factor), None)
