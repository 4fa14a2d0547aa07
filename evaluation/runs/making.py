"""Making a run from names: profile, judge and metrics, the way the command, the API and the pages ask for it."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from evaluation.accounts.models import User
from evaluation.judges.models import JudgeVersion
from evaluation.judging.catalogue import family_named, family_of, judge_metrics
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.profiles.models import ProfileVersion
from evaluation.profiles.spec import ProfileSpec
from evaluation.runs.config import RunConfig
from evaluation.runs.lifecycle import make_run
from evaluation.runs.models import AnswerSet, Run
from evaluation.shipping import shipped_rubric_row

FULL_RAG = "full_rag"


def metrics_of(profile: ProfileVersion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The profile's rule metrics and its judge metrics, by name."""
    spec = ProfileSpec.model_validate(profile.spec)
    rules = {m.spec.name for m in RULE_METRICS}
    judged = {s.name for s in judge_metrics()}
    names = spec.metrics
    return tuple(n for n in names if n in rules), tuple(n for n in names if n in judged)


def prepare_run(
    answer_set: AnswerSet,
    profile: ProfileVersion,
    *,
    judge: JudgeVersion | None,
    name: str = "",
    by: User | None = None,
    budget: Decimal | None = None,
    repeat: int = 1,
    max_concurrency: int = 32,
    use_cache: bool = True,
    question_ids: tuple[str, ...] = (),
    start_token: UUID | None = None,
) -> Run:
    """A draft run of the profile's rule metrics and, with a judge, of its judge metrics; one unit per rubric family.
    Rule metrics that a family decides are left to the judge.

    A set of retrieved passages without answers has nothing to judge, so its runs have no judge.
    """
    rules, judged = metrics_of(profile)
    judge = judge if answer_set.evaluation_type == FULL_RAG else None
    families = sorted({family_of(n) for n in judged}) if judge else []
    decided = {metric.spec.name for family in families for metric in family_named(family).decides}
    config = RunConfig(
        evaluation_type=answer_set.evaluation_type,
        k=answer_set.k,
        rules=tuple(name for name in rules if name not in decided),
        repeat=repeat,
        max_concurrency=max_concurrency,
        use_cache=use_cache,
        question_ids=question_ids,
    )
    judges = [(judge, shipped_rubric_row(f, judge.language), True) for f in families] if judge else []
    return make_run(
        answer_set, profile, config, judges=judges, name=name, by=by, budget=budget, start_token=start_token
    )
