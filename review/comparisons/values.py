"""Which runs are compared, the versions in which they differ, and their values by question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.metric_specs import JUDGED
from evaluation.models import Run
from evaluation.profiles.arithmetic import Passing, has_passing
from evaluation.profiles.spec import OVERALL, Part, ProfileSpec, Unit
from evaluation.runs.selectors import project_named, question_set_named
from review.evidence.answers import RunAnswer
from review.reports.gathering import Gathered, gather
from review.reports.lines import own_scores
from review.reports.profile_section import each_answer, flags_of
from review.reports.provenance import JudgeUsed
from review.reports.report import Report, report_of
from review.reports.scores import MetricValues, SideScore, score_side, summand

MOST = 50  # runs shown side by side


@dataclass(frozen=True, slots=True)
class Side:
    """A run in a comparison: its report, and what the report is made of."""

    basis: Gathered
    report: Report

    @property
    def run_id(self) -> int:
        """The run's primary key."""
        return self.report.header.run_id


def sides(runs: Sequence[Run]) -> list[Side]:
    """The runs, ready to be compared; about twenty queries each."""
    return [Side(basis, report_of(basis)) for basis in map(gather, runs)]


def compared_runs(project_name: str, questions: str) -> list[Run]:
    """The newest runs of a project, oldest first; of one version of a question set where it is named.

    :raises UnknownName: for a project or set that does not exist.
    :raises Refused: when several projects exist and none is named.
    """
    project = project_named(project_name)
    runs = Run.objects.filter(project=project).exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED])
    if questions:
        runs = runs.filter(answer_set__question_set=question_set_named(project, questions))
    return list(runs.order_by("-id")[:MOST])[::-1]


Differing = Mapping[str, list[str]]
SERVED = "served_model"


def differing_versions(reports: Sequence[Report]) -> dict[str, list[str]]:
    """What the runs do not have in common, by kind: question set, profile, judge, the model that answered under a
    judge's name, rubric, how a judge's value comes about, k, kind of evaluation, metrics with their versions; one text
    for each run."""
    kinds = {
        "question_set": [r.header.question_set for r in reports],
        "profile": [r.header.profile for r in reports],
        "judge": [", ".join(filter(None, [_primary(r, _judge), _imported(r)])) for r in reports],
        "rubric": [_primary(r, _rubric) for r in reports],
        "method": [_primary(r, lambda one: one.method) for r in reports],
        "k": [str(r.provenance.k) for r in reports],
        "evaluation_type": [r.provenance.evaluation_type for r in reports],
        "metrics": [", ".join(f"{one.name} v{one.version}" for one in r.provenance.metrics) for r in reports],
    }
    found = {kind: values for kind, values in kinds.items() if len(set(values)) > 1}
    return found | ({SERVED: [_served(r) for r in reports]} if _several_served(reports) else {})


def metric_differs(ours: Side, baseline: Side, name: str, differing: Differing) -> tuple[str, ...]:
    """In what a metric of this name is not the same thing in two runs: its version, or who judged it by what."""
    one, other = (next((line for line in side.report.metrics if line.name == name), None) for side in (ours, baseline))
    found = ["metrics"] if one and other and one.metric_id != other.metric_id else []
    authors = [side.report.provenance.imported_judges.get(name) for side in (ours, baseline)]
    if authors[0] != authors[1]:
        return (*found, "judge")
    if one and one.kind in JUDGED and not authors[0]:
        found += [kind for kind in ("judge", "rubric", "method", SERVED) if kind in differing]
    return tuple(found)


def _imported(report: Report) -> str:
    """The imported judges that count, each with its metrics."""
    said: dict[str, list[str]] = {}
    for metric, author in report.provenance.imported_judges.items():
        said.setdefault(author, []).append(metric)
    return ", ".join(f"{author} ({', '.join(metrics)})" for author, metrics in said.items())


def _judge(one: JudgeUsed) -> str:
    return f"{one.judge.name}@{one.judge.version}"


def _rubric(one: JudgeUsed) -> str:
    return f"{one.rubric.name} v{one.rubric.version} ({one.language})"


def _several_served(reports: Sequence[Report]) -> bool:
    """Whether replies of several models stand behind one judge's values, in one run or over all: then they are not of
    one series. Judges whose servers name no model cannot be told."""
    models: dict[str, set[str]] = {}
    for report in reports:
        for one in _asked(report):
            models.setdefault(_judge(one), set()).update(served.model for served in one.served)
    return any(len(names) > 1 for names in models.values())


def _asked(report: Report) -> list[JudgeUsed]:
    """The judges behind the run's values: the primary ones, or those beside it where it is a jury."""
    judges = report.provenance.judges
    primary = [one for one in judges if one.primary]
    return primary if any(one.served for one in primary) else list(judges)


def _served(report: Report) -> str:
    """Every model with its replies; several rubrics of a judge are taken together."""
    counts: dict[str, int] = {}
    for one in _asked(report):
        for served in one.served:
            counts[served.model] = counts.get(served.model, 0) + served.replies
    return ", ".join(f"{model} ({count})" for model, count in sorted(counts.items()))


def _primary(report: Report, say: Callable[[JudgeUsed], str]) -> str:
    return ", ".join(dict.fromkeys(say(one) for one in report.provenance.judges if one.primary))


Values = Mapping[str, float]


def by_question(values: Iterable[tuple[RunAnswer, float]]) -> dict[str, float]:
    """Question id -> mean over its answers."""
    found: dict[str, list[float]] = {}
    for answer, value in values:
        found.setdefault(answer.question_id, []).append(value)
    return {question: math.fsum(of) / len(of) for question, of in found.items()}


def groups_of(side: Side) -> dict[str, str]:
    """Question id -> group of questions that are not independent."""
    return {answer.question_id: answer.group for answer in side.basis.said.answers.values()}


def machine_score(side: Side, profile: ProfileSpec) -> SideScore:
    """What the judge and rules said of the run, scored under a profile that need not be the run's own."""
    return side.basis.machine if profile == side.basis.profile else score_side(profile, side.basis.sides.machine)


def part_values(side: Side, profile: ProfileSpec) -> dict[str, dict[str, float]]:
    """Part of the score -> question -> judge-only value on the profile's unit scale. A per-answer profile has a single
    part: each answer's own score."""
    if profile.unit is Unit.PER_ANSWER:
        scores = own_scores(profile, side.basis.sides.machine, machine_score(side, profile))
        return {OVERALL: by_question(_known(side, scores))}
    metrics = side.basis.sides.machine.metrics
    found = {
        part.metric: _on_unit(profile, part, metrics[part.metric]) for part in profile.parts if part.metric in metrics
    }
    return {name: values for name, values in found.items() if values}


def part_weights(profile: ProfileSpec, names: Iterable[str]) -> dict[str, float]:
    """The weights of the parts that are compared, scaled to sum to 1 with the constant as the profile does where a
    part is missing."""
    if profile.unit is Unit.PER_ANSWER:
        return {OVERALL: 1.0}
    chosen = set(names)
    weights = {part.metric: part.weight for part in profile.parts if part.metric in chosen}
    total = sum(weights.values())
    return {name: weight / total * (1.0 - profile.constant) for name, weight in weights.items()}


def weight_compared(profile: ProfileSpec, names: Iterable[str]) -> float:
    """The share of the profile's weight that the compared parts have (0 to 1)."""
    if profile.unit is Unit.PER_ANSWER:
        return 1.0
    chosen = set(names)
    return sum(part.weight for part in profile.parts if part.metric in chosen) + profile.constant


def question_scores(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Question -> its share of the parts that apply to it, 0 to 1, judge-only: it finds the questions that changed."""
    return by_question(_known(side, own_scores(profile, side.basis.sides.machine, machine_score(side, profile))))


def passing(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Question -> share of its answers that pass under the profile; answers of which that is unknown are left out.
    Empty for a profile that has no rule, or no score of single answers."""
    scores = machine_score(side, profile).answers
    if not has_passing(profile) or not scores:
        return {}
    machine = side.basis.sides.machine
    each = each_answer(profile, machine, scores, flags_of(side.basis.run, profile))
    return by_question(
        (answer, float(one.verdict is Passing.PASSED))
        for answer, one in zip(machine.answers, each, strict=True)
        if one is not None and one.verdict is not Passing.UNKNOWN
    )


def _on_unit(profile: ProfileSpec, part: Part, metric: MetricValues) -> dict[str, float]:
    if metric.scale.labels:
        return {}
    found = summand(profile, part, metric, part.weight)
    answers = (metric.answers[at] for at in found.places.tolist())
    return by_question(zip(answers, found.values.tolist(), strict=True))


def _known(side: Side, scores: Iterable[float | None]) -> list[tuple[RunAnswer, float]]:
    answers = side.basis.sides.machine.answers
    return [(answer, score) for answer, score in zip(answers, scores, strict=True) if score is not None]
