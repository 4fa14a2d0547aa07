"""Provenance of a report's figures: versions, hashes, model ids, draws with seeds, cost and dates.

It also lists doubts about the judge: an unexpected model, the same model family as the system, or scores that grow with
length. Doubts change no figure."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Q
from django.db.models.functions import Length

from evaluation.core.canonical import content_hash
from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.core.samples import Status
from evaluation.judging.calls import is_other_model, model_families
from evaluation.judging.embedding.similarity import EmbeddingChoice
from evaluation.judging.formulas import LengthBias, length_bias
from evaluation.models import Endpoint, MetricDefinition, Preflight, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.runs.progress import Spending, spending_by_rubric, total_spending
from evaluation.scoring.scores import counting_scores
from evaluation.storage.versions import product_version
from evaluation.worker.lifecycle import RunConfig
from review.models import Draw


@dataclass(frozen=True, slots=True)
class Versioned:
    """Name, version and content hash of a versioned object."""

    name: str
    version: int
    content_hash: str

    @classmethod
    def of(cls, row: Any, name: str = "") -> Versioned:
        """Read a row of versions. ``name`` replaces the row's own."""
        return cls(name or row.name, row.version, row.content_hash)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model id from a server's replies, with the number of usable ``replies``."""

    model: str
    replies: int

    def __str__(self) -> str:
        return f"{self.model} ({self.replies})"


@dataclass(frozen=True, slots=True)
class JudgeUsed:
    """A judge of the run.

    ``models_returned`` are the model ids in its replies. ``served`` are those behind its values; values of several
    models do not form one series. ``baseline`` marks the offline baseline. ``method`` is how values were obtained,
    ``standing`` the approval status of the rubric when the run was created (``evaluation.models.runs.RunJudge``)."""

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
    """Embedding model of the run: an endpoint by name, or a local model by the hash of its files."""

    model: str
    endpoint: str
    sha256: str
    models_returned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenModelUsed:
    """Local model of BERTScore by the hash of its files, with the layer of the compared token embeddings."""

    sha256: str
    layer: int
    baseline: float | None


@dataclass(frozen=True, slots=True)
class DrawUsed:
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
    """Properties of a judge that the preflight fixed for the whole run.

    ``usage`` and ``logprobs`` tell whether replies have token counts and log probabilities; ``None`` if unknown.
    ``judge_hash`` covers judge version, response format and model."""

    judge: str
    judge_id: int
    response_format: str
    model_returned: str
    usage: bool | None
    logprobs: bool | None
    calls: int
    judge_hash: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Data needed to reproduce a report. ``imported_judges`` maps metrics to imported judges, ``packages`` own metrics
    to the name, version and source hash of their packages. ``cost_by_rubric`` splits the cost."""

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
    packages: Mapping[str, str]
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
    """Collect the provenance of a run loaded by ``with_relations``. ``imported`` maps metrics to imported judges.

    Five queries, two more if an endpoint embeds."""
    config = RunConfig.model_validate(run.config)
    answers, profile = run.answer_set, run.profile_version
    question_set, system = answers.question_set, answers.system_version
    costs = spending_by_rubric(run)
    return Provenance(
        product_version=product_version(),
        run_id=run.pk,
        config_hash=run.config_hash,
        seed=run.seed,
        k=config.k,
        evaluation_type=config.evaluation_type,
        question_set=Versioned.of(question_set),
        system=Versioned.of(system, system.system.name),
        answers_hash=answers.content_hash or "",
        answers_source=answers.source,
        profile=Versioned.of(profile),
        metrics=tuple(map(Versioned.of, sorted(metrics, key=lambda m: m.name))),
        packages=config.packages,
        judges=_judges(run),
        imported_judges=imported,
        preflights=_pinned_judges(run),
        embeddings=_embeddings(run, config.embedding),
        token_model=TokenModelUsed(**dict(config.tokens)) if config.tokens else None,
        draws=_draws(run),
        cost=total_spending(costs.values()),
        cost_by_rubric=costs,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def with_relations(run: Run) -> Run:
    """Reload the run with the relations that header and provenance use. One query."""
    rows = Run.objects.select_related(
        "profile_version", "answer_set__question_set", "answer_set__system_version__system"
    )
    return rows.get(pk=run.pk)


def _judges(run: Run) -> tuple[JudgeUsed, ...]:
    """Judges of the run, primary ones first. Two queries."""
    models_by_judge: defaultdict[int, list[ServedModel]] = defaultdict(list)
    judged = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.JUDGE)
    replies = judged.exclude(model_returned="").order_by("model_returned")
    good = Count("id", filter=Q(outcome__in=[Outcome.OK, Outcome.CACHED]))
    by_model = replies.values_list("attempt__unit__run_judge_id", "model_returned").annotate(good=good)
    for judge_id, model, count in by_model:
        models_by_judge[judge_id or 0].append(ServedModel(model, count))
    judges = run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "id")
    return tuple(
        JudgeUsed(
            judge=Versioned.of(run_judge.judge_version),
            model=run_judge.judge_version.model,
            models_returned=tuple(served_model.model for served_model in models_by_judge[run_judge.pk]),
            served=tuple(served_model for served_model in models_by_judge[run_judge.pk] if served_model.replies),
            rubric=Versioned.of(run_judge.rubric_version, run_judge.rubric_version.family),
            language=run_judge.rubric_version.language,
            primary=run_judge.primary,
            baseline=run_judge.judge_version.is_baseline,
            repeats=run_judge.repeat_count,
            method=run_judge.method,
            standing=run_judge.standing,
        )
        for run_judge in judges
    )


def _pinned_judges(run: Run) -> tuple[PinnedJudge, ...]:
    rows = run.preflights.filter(outcome="ok").select_related("judge_version").order_by("id")
    return tuple(
        PinnedJudge(
            judge=str(preflight.judge_version),
            judge_id=preflight.judge_version_id,
            response_format=preflight.response_format,
            model_returned=preflight.model_returned,
            usage=preflight.usage,
            logprobs=preflight.logprobs,
            calls=preflight.calls,
            judge_hash=preflight.judge_hash,
        )
        for preflight in rows
    )


def _embeddings(run: Run, choice: EmbeddingChoice | None) -> EmbeddingUsed | None:
    if choice is None:
        return None
    if choice.endpoint is None:
        return EmbeddingUsed(choice.model, "", choice.sha256, ())
    replies = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.EMBED)
    models = replies.exclude(model_returned="").values_list("model_returned", flat=True).distinct()
    return EmbeddingUsed(
        model=choice.model,
        endpoint=Endpoint.objects.values_list("name", flat=True).get(pk=choice.endpoint),
        sha256="",
        models_returned=tuple(sorted(models)),
    )


def _draws(run: Run) -> tuple[DrawUsed, ...]:
    """All draws over the run's answer set, including those of other runs, because ratings belong to answers."""
    draws = (
        Draw.objects.filter(run__answer_set_id=run.answer_set_id)
        .select_related("queue")
        .annotate(sampled_count=Count("frame", filter=Q(frame__sampled=True)))
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
            sampled=draw.sampled_count,
            planned_after_looking=draw.planned_after_looking,
            drawn_at=draw.created_at,
        )
        for draw in draws
    )


DAY = 24 * 3600
# Increase when the cached figures change.
CACHE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Doubt:
    """A code of ``evaluation/messages/reasons.py`` with the parameters of its sentence."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


def doubts_of(run: Run, provenance: Provenance) -> tuple[Doubt, ...]:
    """List doubts about the run's judges. The length bias of an ended run is cached for a day."""
    remote = list({judge.judge: judge for judge in provenance.judges if not judge.baseline}.values())
    doubts = [doubt for judge in remote for doubt in _model_doubts(judge)]
    if remote:
        doubts += _model_changes(run)
        doubts += _family_doubts(run, remote)
        doubts += [
            Doubt("no_usage", {"judge": preflight.judge}) for preflight in provenance.preflights if not preflight.usage
        ]
    if provenance.judges and run.state in Run.ENDED:
        doubts += _length_doubts(run)
    return tuple(doubts)


def _model_doubts(judge: JudgeUsed) -> Iterator[Doubt]:
    name = f"{judge.judge.name}@{judge.judge.version}"
    answered = ", ".join(judge.models_returned)
    if len(judge.served) > 1:
        yield Doubt("several_models", {"judge": name, "answered": ", ".join(map(str, judge.served))})
    elif any(is_other_model(judge.model, returned) for returned in judge.models_returned):
        yield Doubt("other_model", {"judge": name, "asked": judge.model, "answered": answered})


def _model_changes(run: Run) -> Iterator[Doubt]:
    """Judge versions that another model served in the previous run."""
    judges = run.judges.values("judge_version")
    rows = Preflight.objects.filter(judge_version__in=judges, outcome="ok", run_id__lte=run.pk)
    latest_model: dict[int, tuple[int, str]] = {}
    preflights = rows.exclude(model_returned="").select_related("judge_version").order_by("run_id", "id")
    for row in preflights:
        earlier = latest_model.get(row.judge_version_id)
        if row.run_id == run.pk and earlier and earlier[1] != row.model_returned:
            params = {"run": f"#{earlier[0]}", "earlier": earlier[1], "answered": row.model_returned}
            yield Doubt("changed_model", {"judge": str(row.judge_version), **params})
        latest_model[row.judge_version_id] = (row.run_id, row.model_returned)


def _family_doubts(run: Run, judges: list[JudgeUsed]) -> Iterator[Doubt]:
    """Model families that judge and system share, as far as the system's configuration or name shows its models."""
    system_version = run.answer_set.system_version
    model_names = [
        str(value)
        for key, value in system_version.config.items()
        if "model" in key.casefold() or "llm" in key.casefold()
    ]
    systems = model_families([*model_names, system_version.system.name])
    for family in sorted(systems & model_families(judge.model for judge in judges if judge.primary)):
        yield Doubt("same_family", {"family": family})


def _length_doubts(run: Run) -> Iterator[Doubt]:
    key = "length_bias:" + content_hash([CACHE_VERSION, str(run.start_token), str(run.finished_at)])
    biases: dict[str, LengthBias] | None = cache.get(key)
    if biases is None:
        biases = _length_biases(run)
        cache.set(key, biases, DAY)
    for metric, bias in biases.items():
        if bias.notable:
            figures = {"rho": f"{bias.rho:.2f}", "low": f"{bias.low:.2f}", "high": f"{bias.high:.2f}", "n": bias.n}
            yield Doubt("grows_with_length", {"metric": metric, **figures})


def _length_biases(run: Run) -> dict[str, LengthBias]:
    """Length bias by judged metric, if it can be computed. Answers decided by a rule are left out."""
    rows = counting_scores(run).filter(metric__kind__in=JUDGED_KINDS, status=Status.SCORED, value__isnull=False)
    pairs: dict[str, tuple[array[float], array[int]]] = defaultdict(lambda: (array("d"), array("q")))
    rows = rows.exclude(detail__has_key="gate").annotate(length=Length("answer__text"))
    for name, value, length in rows.values_list("metric__name", "value", "length").iterator(chunk_size=5000):
        if value is not None:
            pairs[name][0].append(value)
            pairs[name][1].append(length)
    biases = {name: length_bias(*columns) for name, columns in sorted(pairs.items())}
    return {name: bias for name, bias in biases.items() if bias is not None}
