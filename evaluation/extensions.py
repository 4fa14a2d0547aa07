"""Registry by which optional features extend the core, which imports none of them.

The module ``feature`` of an app holds its :class:`Feature`, which the app registers when it is ready. It is loaded when
it is first needed, so that commands start quickly. ``INSTALLED_APPS`` decides which features a site has, and their
order. The core registers its own background tasks in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from evaluation.core.errors import Refused

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from prometheus_client.core import Metric

    from evaluation.connectors.protocol import Connector
    from evaluation.judging.embedding.similarity import Embedder, EmbeddingChoice, TokenChoice, TokenModel
    from evaluation.models import JudgeVersion, Run, User
    from evaluation.worker.jobs import JobKind

OFF = "feature_off"


@dataclass(frozen=True, slots=True)
class BatchesOut:
    """Open batches of a run together: since when the first is out, how many calls they hold, and how many of these the
    providers last reported as done or failed. ``next_at`` is when the next batch is polled."""

    batches: int
    since: datetime
    lines: int
    done: int
    failed: int
    next_at: datetime | None

    @property
    def seconds_to_next(self) -> float:
        """Seconds until the next batch is polled."""
        return max(0.0, (self.next_at - timezone.now()).total_seconds()) if self.next_at else 0.0


@dataclass(frozen=True, slots=True)
class BatchHooks:
    """Calls handed to a provider in batches that are answered later.

    ``open`` are the batches that are not finished, ``has_due`` tells whether one of a run's judge has to be polled
    now. ``work`` processes the units of judges that share an endpoint and a model, and returns how many ended.
    ``of_run`` are all batches of a run, oldest first; ``out`` sums up its open ones; ``troubles`` are the reasons why
    others ended badly, newest first.
    """

    open: Callable[[], QuerySet[Any]]
    has_due: Callable[[Run, JudgeVersion], bool]
    work: Callable[[JudgeVersion, Mapping[str, Any]], int]
    of_run: Callable[[Run], list[Any]]
    out: Callable[[Run], BatchesOut | None]
    troubles: Callable[[Run], Collection[str]]


@dataclass(frozen=True, slots=True)
class LocalModels:
    """Embeddings by a model on this machine. ``chosen`` and ``chosen_tokens`` are the choice for a new run, ``None``
    without a model; ``embedder`` and ``tokens`` open the model of an existing run. All raise ``Refused`` for a model
    that cannot be read."""

    chosen: Callable[[], EmbeddingChoice | None]
    chosen_tokens: Callable[[], TokenChoice | None]
    embedder: Callable[[EmbeddingChoice], Embedder]
    tokens: Callable[[TokenChoice], TokenModel]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A to-do of a person: ``count`` of ``what`` in the object ``name``, and the button that leads there."""

    count: int
    what: str
    name: str
    href: str
    action: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that the search page found: its text, where it stands, and the address of its page."""

    text: str
    note: str
    href: str


@dataclass(frozen=True, slots=True)
class Hits:
    """The rows of one kind that the search page found; ``empty`` is the sentence for none."""

    title: str
    rows: list[Hit]
    empty: str


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a ledger: ``work`` is their purpose, ``replies`` are rows of a ``ReplyRow``."""

    work: str
    replies: QuerySet[Any]


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """A second step of the log-in. ``ask`` returns the page for somebody who gave the right password and wants to get
    to the address, ``None`` where no code is needed; ``admit`` returns a response in place of a page where the session
    may not go on. ``has`` tells whether somebody has set it up, ``reset`` removes the first person's in the name of the
    second."""

    ask: Callable[[HttpRequest, User, str], HttpResponse | None]
    admit: Callable[[HttpRequest], HttpResponse | None]
    has: Callable[[User], bool]
    reset: Callable[[User, User], None]


@dataclass(frozen=True, slots=True)
class JudgeAttacks:
    """How a judge stood up to attacks: ``template`` renders ``card`` on the judge's page, ``passed`` is the share of
    attacks it passed (``28/30``), empty without a check."""

    template: str
    card: object
    passed: str


@dataclass(frozen=True, slots=True)
class Feature:
    """Extensions that one app brings; every part but the name is optional.

    ``urls`` and ``api_urls`` are modules of addresses. ``jobs`` are kinds of background work, ``periodic`` runs once a
    minute, ``after_drain`` after work in a process without workers. ``due_runs`` are runs to enqueue although no unit
    of theirs is claimable, ``problems`` describes what is wrong with the background work. Over projects by id,
    ``gauges`` are monitoring figures and ``calls`` are calls of other ledgers than that of runs. ``waiting`` are to-dos
    of a person. ``demo`` adds to the two runs of the demo, once, for its reviewers and lead. ``attacks`` shows how a
    judge stood up to attacks.
    ``connectors`` are further kinds of systems. ``search`` finds at most so many rows with the words for a person,
    ``passages`` returns the texts of a project's passages with these ids.
    ``answer_source`` is the template of a card on the page of a new evaluation.
    """

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
    calls: Callable[[Collection[int]], Calls] | None = None
    waiting: Callable[[User], Iterable[Waiting]] | None = None
    demo: Callable[[Run, Run, list[User], User], None] | None = None
    second_factor: SecondFactor | None = None
    attacks: Callable[[JudgeVersion], JudgeAttacks] | None = None
    connectors: tuple[Connector, ...] = ()
    search: Callable[[User, str, int], Hits] | None = None
    passages: Callable[[int, Sequence[str]], Mapping[str, str]] | None = None
    answer_source: str = ""


REGISTRY: dict[str, Callable[[], Feature]] = {}


def register(label: str, package: str) -> None:
    """Register the ``FEATURE`` of an app's module ``feature``, in ``AppConfig.ready()``; it is loaded when needed."""
    REGISTRY[label] = partial(_load, f"{package}.feature")


def _load(module: str) -> Feature:
    feature: Feature = import_module(module).FEATURE
    return feature


def features() -> list[Feature]:
    """Registered features, in the order of ``INSTALLED_APPS``."""
    return [load() for load in REGISTRY.values()]


def has(name: str) -> bool:
    """Whether the feature is installed."""
    return name in REGISTRY


def require(name: str) -> None:
    """Refuse work that needs a feature which is not installed.

    :raises Refused: ``feature_off``.
    """
    if not has(name):
        raise Refused(OFF, feature=name)


def batch_hooks() -> BatchHooks | None:
    """Hooks of batches, ``None`` where the feature is not installed."""
    return next((feature.batches for feature in features() if feature.batches), None)


def local_models() -> LocalModels | None:
    """Hooks of local models, ``None`` where the feature is not installed."""
    return next((feature.local_models for feature in features() if feature.local_models), None)


def second_factor() -> SecondFactor | None:
    """Hooks of the second factor, ``None`` where the feature is not installed."""
    return next((feature.second_factor for feature in features() if feature.second_factor), None)
