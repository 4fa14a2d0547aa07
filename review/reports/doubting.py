"""Doubts about a run's judge: another model than was asked for, one family with the system, scores that grow with
length. They change no figure; a person has to know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache
from django.db.models.functions import Length

from evaluation.core.canonical import content_hash
from evaluation.core.registry import JUDGED
from evaluation.core.samples import Status
from evaluation.judging.length_bias import LengthBias, length_bias
from evaluation.judging.pricing import families_in, is_other_model
from evaluation.models import Preflight, Run
from evaluation.scoring.writing import counting
from review.reports.provenance import JudgeUsed, Provenance

DAY = 24 * 3600
FORM = 1  # rises when the figures change, so that nothing older is shown


@dataclass(frozen=True, slots=True)
class Doubt:
    """A code of ``evaluation/wording/reasons.py`` with what fills its sentence."""

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
    pairs: dict[str, list[tuple[float, int]]] = {}
    for name, value, length, detail in rows.annotate(length=Length("answer__text")).values_list(
        "metric__name", "value", "length", "detail"
    ):
        if value is not None and "gate" not in detail:
            pairs.setdefault(name, []).append((value, length))
    found = {name: length_bias([v for v, _ in some], [n for _, n in some]) for name, some in sorted(pairs.items())}
    return {name: one for name, one in found.items() if one is not None}
