"""Where a report's figures come from: versions, hashes, model ids, draws with their seeds, cost, dates; collected from
the ledger and the versions a run is pinned to.

Beside it the doubts about its judge: another model than was asked for, one family with the system, scores that grow
with length. They change no figure; a person has to know them."""

from __future__ import annotations

import functools
import tomllib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Q
from django.db.models.functions import Length

from evaluation.core.canonical import content_hash
from evaluation.core.metric_specs import JUDGED
from evaluation.core.samples import Status
from evaluation.judging.calls import families_in, is_other_model
from evaluation.judging.embedding.similarity import EmbeddingChoice
from evaluation.judging.formulas import LengthBias, length_bias
from evaluation.models import Endpoint, MetricDefinition, Preflight, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.runs.progress import Spending, altogether, spending_by_rubric
from evaluation.scoring.writing import counting
from evaluation.worker.lifecycle import RunConfig
from review.models import Draw


@dataclass(frozen=True, slots=True)
class Versioned:
    """A thing with its version and content hash."""

    name: str
    version: int
    content_hash: str

    @classmethod
    def of(cls, row: Any, name: str = "") -> Versioned:
        """A row of versions, by its own name where no other is given."""
        return cls(name or row.name, row.version, row.content_hash)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model id that a server named, with the number of ``replies`` under it that held what was asked for."""

    model: str
    replies: int

    def __str__(self) -> str:
        return f"{self.model} ({self.replies})"


@dataclass(frozen=True, slots=True)
class JudgeUsed:
    """A judge of the run. ``models_returned`` are the model ids the server named in its replies, ``served`` those whose
    replies its values rest on: values of several models are not one series. ``baseline`` tells
    the offline baseline, which every page calls so. ``method`` is how its values come about
    and ``standing`` how the rubric stood for it when the run was made (``evaluation.models.runs.RunJudge``)."""

    judge: Versioned
    model: str
    models_returned: tuple[str, ...]
    served: tuple[ServedModel, ...]
    rubric: Versioned
    language: str
    primary: bool
    baseline: bool
    repeats: int
    method: str
    standing: str


@dataclass(frozen=True, slots=True)
class EmbeddingUsed:
    """What the run's texts were embedded with: an endpoint by its name, or without one a local model by the hash of
    its files. ``models_returned`` are the model ids the server named."""

    model: str
    endpoint: str
    sha256: str
    models_returned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenModelUsed:
    """The local model of BERTScore by the hash of its files, with the layer whose token embeddings were compared."""

    sha256: str
    layer: int
    baseline: float | None


@dataclass(frozen=True, slots=True)
class DrawUsed:
    """A draw for review over answers of the run."""

    draw_id: int
    queue: str
    example: bool
    strategy: str
    seed: int
    frame: int
    sampled: int
    planned_after_looking: bool
    drawn_at: datetime


@dataclass(frozen=True, slots=True)
class PinnedJudge:
    """What the preflight found out about a judge, and holds for the whole run: how it is asked (``rung``), which model
    answered, whether it tells tokens and log probabilities (``None``: not found out). ``judge_hash`` covers judge
    version, rung and model."""

    judge: str
    judge_id: int
    rung: str
    model_returned: str
    usage: bool | None
    logprobs: bool | None
    calls: int
    judge_hash: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that another person needs to make the same report again. ``imported_judges`` are those that count, by
    metric; ``cost_by_rubric`` splits the cost."""

    product_version: str
    run_id: int
    config_hash: str
    seed: int
    k: int
    evaluation_type: str
    question_set: Versioned
    system: Versioned
    answers_hash: str
    answers_source: str
    profile: Versioned
    metrics: tuple[Versioned, ...]
    judges: tuple[JudgeUsed, ...]
    imported_judges: Mapping[str, str]
    preflights: tuple[PinnedJudge, ...]
    embeddings: EmbeddingUsed | None
    token_model: TokenModelUsed | None
    draws: tuple[DrawUsed, ...]
    cost: Spending
    cost_by_rubric: Mapping[str, Spending]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def provenance_of(run: Run, metrics: Iterable[MetricDefinition], imported: Mapping[str, str]) -> Provenance:
    """Everything the run's figures come from; ``imported``: the imported judges by metric. Five queries, two more where
    an endpoint embeds; the run comes with its relations (``with_relations``)."""
    config = RunConfig.model_validate(run.config)
    answers, profile = run.answer_set, run.profile_version
    asked, system = answers.question_set, answers.system_version
    costs = spending_by_rubric(run)
    return Provenance(
        product_version=product_version(),
        run_id=run.pk,
        config_hash=run.config_hash,
        seed=run.seed,
        k=config.k,
        evaluation_type=config.evaluation_type,
        question_set=Versioned.of(asked),
        system=Versioned.of(system, system.system.name),
        answers_hash=answers.content_hash or "",
        answers_source=answers.source,
        profile=Versioned.of(profile),
        metrics=tuple(map(Versioned.of, sorted(metrics, key=lambda m: m.name))),
        judges=_judges(run),
        imported_judges=imported,
        preflights=_pinned(run),
        embeddings=_embeddings(run, config.embedding),
        token_model=TokenModelUsed(**dict(config.tokens)) if config.tokens else None,
        draws=_draws(run),
        cost=altogether(costs.values()),
        cost_by_rubric=costs,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


@functools.cache
def product_version() -> str:
    """The product's version: that of the checkout it runs from, else of the installed package."""
    checkout = settings.BASE_DIR / "pyproject.toml"
    if checkout.is_file():
        return str(tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]["version"])
    return version("concord-eval")


def with_relations(run: Run) -> Run:
    """The run with everything its header and provenance name, in one query."""
    rows = Run.objects.select_related(
        "profile_version", "answer_set__question_set", "answer_set__system_version__system"
    )
    return rows.get(pk=run.pk)


def _judges(run: Run) -> tuple[JudgeUsed, ...]:
    """The judges, primary ones first, with the model ids their servers named. Two queries."""
    named: defaultdict[int, list[ServedModel]] = defaultdict(list)
    judged = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.JUDGE)
    replies = judged.exclude(model_returned="").order_by("model_returned")
    good = Count("id", filter=Q(outcome__in=[Outcome.OK, Outcome.CACHED]))
    by_model = replies.values_list("attempt__unit__run_judge_id", "model_returned").annotate(good=good)
    for judge_id, model, count in by_model:
        named[judge_id or 0].append(ServedModel(model, count))
    judges = run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "id")
    return tuple(
        JudgeUsed(
            judge=Versioned.of(one.judge_version),
            model=one.judge_version.model,
            models_returned=tuple(of.model for of in named[one.pk]),
            served=tuple(of for of in named[one.pk] if of.replies),
            rubric=Versioned.of(one.rubric_version, one.rubric_version.family),
            language=one.rubric_version.language,
            primary=one.primary,
            baseline=one.judge_version.is_baseline,
            repeats=one.repeat_count,
            method=one.method,
            standing=one.standing,
        )
        for one in judges
    )


def _pinned(run: Run) -> tuple[PinnedJudge, ...]:
    """What the preflight pinned. One query."""
    rows = run.preflights.filter(outcome="ok").select_related("judge_version").order_by("id")
    return tuple(
        PinnedJudge(
            judge=str(one.judge_version),
            judge_id=one.judge_version_id,
            rung=one.rung,
            model_returned=one.model_returned,
            usage=one.usage,
            logprobs=one.logprobs,
            calls=one.calls,
            judge_hash=one.judge_hash,
        )
        for one in rows
    )


def _embeddings(run: Run, chosen: EmbeddingChoice | None) -> EmbeddingUsed | None:
    if chosen is None:
        return None
    if chosen.endpoint is None:
        return EmbeddingUsed(chosen.model, "", chosen.sha256, ())
    embedded = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.EMBED)
    named = embedded.exclude(model_returned="").values_list("model_returned", flat=True).distinct()
    return EmbeddingUsed(
        model=chosen.model,
        endpoint=Endpoint.objects.values_list("name", flat=True).get(pk=chosen.endpoint),
        sha256="",
        models_returned=tuple(sorted(named)),
    )


def _draws(run: Run) -> tuple[DrawUsed, ...]:
    """All draws over answers of the run's answer set, whichever run steered them: ratings belong to answers."""
    draws = (
        Draw.objects.filter(run__answer_set_id=run.answer_set_id)
        .select_related("queue")
        .annotate(taken=Count("frame", filter=Q(frame__sampled=True)))
        .order_by("id")
    )
    return tuple(
        DrawUsed(
            draw_id=draw.pk,
            queue=draw.queue.name if draw.queue else "",
            example=bool(draw.queue and draw.queue.example),
            strategy=draw.strategy,
            seed=draw.seed,
            frame=draw.frame_size,
            sampled=draw.taken,
            planned_after_looking=draw.planned_after_looking,
            drawn_at=draw.created_at,
        )
        for draw in draws
    )


DAY = 24 * 3600
FORM = 1  # rises when the figures change, so that nothing older is shown


@dataclass(frozen=True, slots=True)
class Doubt:
    """A code of ``evaluation/messages/reasons.py`` with what fills its sentence."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


def doubts_of(run: Run, provenance: Provenance) -> tuple[Doubt, ...]:
    """What is doubtful about the run's judges. A query for judges behind an endpoint, one for lengths that is kept for
    a day once the run has ended."""
    remote = list({one.judge: one for one in provenance.judges if not one.baseline}.values())
    found = [doubt for judge in remote for doubt in _about_models(judge)]
    if remote:
        found += _since_earlier(run)
        found += _about_families(run, remote)
        found += [Doubt("no_usage", {"judge": one.judge}) for one in provenance.preflights if not one.usage]
    if provenance.judges and run.state in Run.ENDED:
        found += _about_length(run)
    return tuple(found)


def _about_models(judge: JudgeUsed) -> Iterator[Doubt]:
    name = f"{judge.judge.name}@{judge.judge.version}"
    answered = ", ".join(judge.models_returned)
    if len(judge.served) > 1:
        yield Doubt("several_models", {"judge": name, "answered": ", ".join(map(str, judge.served))})
    elif any(is_other_model(judge.model, returned) for returned in judge.models_returned):
        yield Doubt("other_model", {"judge": name, "asked": judge.model, "answered": answered})


def _since_earlier(run: Run) -> Iterator[Doubt]:
    """A judge version that another model answered for in the run before this one."""
    judges = run.judges.values("judge_version")
    rows = Preflight.objects.filter(judge_version__in=judges, outcome="ok", run_id__lte=run.pk)
    seen: dict[int, tuple[int, str]] = {}
    told = rows.exclude(model_returned="").select_related("judge_version").order_by("run_id", "id")
    for row in told:
        before = seen.get(row.judge_version_id)
        if row.run_id == run.pk and before and before[1] != row.model_returned:
            params = {"run": f"#{before[0]}", "earlier": before[1], "answered": row.model_returned}
            yield Doubt("changed_model", {"judge": str(row.judge_version), **params})
        seen[row.judge_version_id] = (row.run_id, row.model_returned)


def _about_families(run: Run, judges: list[JudgeUsed]) -> Iterator[Doubt]:
    """Judge and system of one family, as far as the system's configuration or name tells its models."""
    version = run.answer_set.system_version
    named = [
        str(value) for key, value in version.config.items() if "model" in key.casefold() or "llm" in key.casefold()
    ]
    systems = families_in([*named, version.system.name])
    for family in sorted(systems & families_in(one.model for one in judges if one.primary)):
        yield Doubt("same_family", {"family": family})


def _about_length(run: Run) -> Iterator[Doubt]:
    key = "length_bias:" + content_hash([FORM, str(run.start_token), str(run.finished_at)])
    kept: dict[str, LengthBias] | None = cache.get(key)
    if kept is None:
        kept = _length_biases(run)
        cache.set(key, kept, DAY)
    for metric, found in kept.items():
        if found.worth_saying:
            figures = {"rho": f"{found.rho:.2f}", "low": f"{found.low:.2f}", "high": f"{found.high:.2f}", "n": found.n}
            yield Doubt("grows_with_length", {"metric": metric, **figures})


def _length_biases(run: Run) -> dict[str, LengthBias]:
    """By judged metric, for those of which one can be told. Answers decided by rule are left out."""
    rows = counting(run).filter(metric__kind__in=JUDGED, status=Status.SCORED, value__isnull=False)
    pairs: dict[str, tuple[array[float], array[int]]] = defaultdict(lambda: (array("d"), array("q")))
    rows = rows.exclude(detail__has_key="gate").annotate(length=Length("answer__text"))
    for name, value, length in rows.values_list("metric__name", "value", "length").iterator(chunk_size=5000):
        if value is not None:
            pairs[name][0].append(value)
            pairs[name][1].append(length)
    found = {name: length_bias(*some) for name, some in sorted(pairs.items())}
    return {name: one for name, one in found.items() if one is not None}
