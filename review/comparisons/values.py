"""Selection of compared runs, the versions by which they differ, and their values by question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.models import Run
from evaluation.profiles.arithmetic import PassVerdict, has_passing
from evaluation.profiles.spec import OVERALL, OverallUnit, ProfilePart, ProfileSpec
from evaluation.runs.selectors import get_project, get_question_set
from review.evidence.answers import RunAnswer
from review.reports.inputs import ReportInputs, load_inputs
from review.reports.lines import answer_scores
from review.reports.profile_section import answer_verdicts, flags_of
from review.reports.provenance import JudgeUsed
from review.reports.report import Report, build_report
from review.reports.scores import MetricValues, SideScore, score_side, summand

# Most runs in one comparison.
MAX_RUNS = 50


@dataclass(frozen=True, slots=True)
class Side:
    """A run in a comparison: its report and the report's inputs."""

    basis: ReportInputs
    report: Report

    @property
    def run_id(self) -> int:
        return self.report.header.run_id


def load_sides(runs: Sequence[Run]) -> list[Side]:
    """Load the runs for a comparison; about twenty queries each."""
    return [Side(basis, build_report(basis)) for basis in map(load_inputs, runs)]


def runs_to_compare(project_name: str, questions: str) -> list[Run]:
    """Return the newest runs of a project, oldest first, optionally of one question set version.

    :raises UnknownName: for a project or set that does not exist.
    :raises DomainError: if there are several projects and none is named."""
    project = get_project(project_name)
    runs = Run.objects.filter(project=project).exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED])
    if questions:
        runs = runs.filter(answer_set__question_set=get_question_set(project, questions))
    return list(runs.order_by("-id")[:MAX_RUNS])[::-1]


DifferingVersions = Mapping[str, list[str]]
SERVED_MODEL = "served_model"


def differing_versions(reports: Sequence[Report]) -> dict[str, list[str]]:
    """Return the versions and settings that differ between runs, by kind, with one text for each run.

    Kinds are question set, profile, judge, served model, rubric, method, k, evaluation type and metric versions."""
    kinds = {
        "question_set": [r.header.question_set for r in reports],
        "profile": [r.header.profile for r in reports],
        "judge": [
            ", ".join(filter(None, [_describe_primary(r, _judge_name), _describe_imported_judges(r)])) for r in reports
        ],
        "rubric": [_describe_primary(r, _rubric_name) for r in reports],
        "method": [_describe_primary(r, lambda used: used.method) for r in reports],
        "k": [str(r.provenance.k) for r in reports],
        "evaluation_type": [r.provenance.evaluation_type for r in reports],
        "metrics": [", ".join(_describe_metrics(r)) for r in reports],
    }
    differing = {kind: values for kind, values in kinds.items() if len(set(values)) > 1}
    return differing | ({SERVED_MODEL: [_served_models(r) for r in reports]} if _has_several_models(reports) else {})


def metric_differences(current: Side, baseline: Side, name: str, differing: DifferingVersions) -> tuple[str, ...]:
    """Return the kinds of versions by which a metric differs between two runs."""
    current_line, baseline_line = (
        next((line for line in side.report.metrics if line.name == name), None) for side in (current, baseline)
    )
    packages = [side.report.provenance.packages.get(name) for side in (current, baseline)]
    differences = (
        ["metrics"]
        if current_line
        and baseline_line
        and (current_line.metric_id != baseline_line.metric_id or packages[0] != packages[1])
        else []
    )
    authors = [side.report.provenance.imported_judges.get(name) for side in (current, baseline)]
    if authors[0] != authors[1]:
        return (*differences, "judge")
    if current_line and current_line.kind in JUDGED_KINDS and not authors[0]:
        differences += [kind for kind in ("judge", "rubric", "method", SERVED_MODEL) if kind in differing]
    return tuple(differences)


def _describe_metrics(report: Report) -> Iterator[str]:
    """Metrics with their versions, own metrics also with their packages."""
    for metric in report.provenance.metrics:
        package = report.provenance.packages.get(metric.name)
        yield f"{metric.name} v{metric.version}" + (f" ({package})" if package else "")


def _describe_imported_judges(report: Report) -> str:
    """Describe the imported judges that count, each with its metrics."""
    metrics_by_author: dict[str, list[str]] = {}
    for metric, author in report.provenance.imported_judges.items():
        metrics_by_author.setdefault(author, []).append(metric)
    return ", ".join(f"{author} ({', '.join(metrics)})" for author, metrics in metrics_by_author.items())


def _judge_name(used: JudgeUsed) -> str:
    return f"{used.judge.name}@{used.judge.version}"


def _rubric_name(used: JudgeUsed) -> str:
    return f"{used.rubric.name} v{used.rubric.version} ({used.language})"


def _has_several_models(reports: Sequence[Report]) -> bool:
    """Return whether several models stand behind one judge's values, in one run or across runs.

    Their values are then not one series. Judges whose servers name no model are ignored."""
    models: dict[str, set[str]] = {}
    for report in reports:
        for used in _judges_used(report):
            models.setdefault(_judge_name(used), set()).update(served.model for served in used.served)
    return any(len(names) > 1 for names in models.values())


def _judges_used(report: Report) -> list[JudgeUsed]:
    """Return the judges behind the run's values: the primary ones, or the members of a jury."""
    judges = report.provenance.judges
    primary = [used for used in judges if used.primary]
    return primary if any(used.served for used in primary) else list(judges)


def _served_models(report: Report) -> str:
    """Describe each served model with its number of replies over all rubrics."""
    counts: dict[str, int] = {}
    for used in _judges_used(report):
        for served in used.served:
            counts[served.model] = counts.get(served.model, 0) + served.replies
    return ", ".join(f"{model} ({count})" for model, count in sorted(counts.items()))


def _describe_primary(report: Report, describe: Callable[[JudgeUsed], str]) -> str:
    return ", ".join(dict.fromkeys(describe(used) for used in report.provenance.judges if used.primary))


Values = Mapping[str, float]


def by_question(values: Iterable[tuple[RunAnswer, float]]) -> dict[str, float]:
    """Return the mean over answers by question id."""
    by_id: dict[str, list[float]] = {}
    for answer, value in values:
        by_id.setdefault(answer.question_id, []).append(value)
    return {question: math.fsum(question_values) / len(question_values) for question, question_values in by_id.items()}


def question_groups(side: Side) -> dict[str, str]:
    """Return the group of dependent questions by question id."""
    return {answer.question_id: answer.group for answer in side.basis.evidence.answers.values()}


def machine_score(side: Side, profile: ProfileSpec) -> SideScore:
    """Score the run's judge and rule values under any profile."""
    return side.basis.machine if profile == side.basis.profile else score_side(profile, side.basis.sides.machine)


def part_values(side: Side, profile: ProfileSpec) -> dict[str, dict[str, float]]:
    """Return judge-only values on the profile's unit scale, by part and question.

    A per-answer profile has one part, the answer's own score."""
    if profile.unit is OverallUnit.PER_ANSWER:
        scores = answer_scores(profile, side.basis.sides.machine, machine_score(side, profile))
        return {OVERALL: by_question(_known_scores(side, scores))}
    metrics = side.basis.sides.machine.metrics
    parts = {
        part.metric: _unit_values(profile, part, metrics[part.metric])
        for part in profile.parts
        if part.metric in metrics
    }
    return {name: values for name, values in parts.items() if values}


def part_weights(profile: ProfileSpec, names: Iterable[str]) -> dict[str, float]:
    """Return the weights of the compared parts, scaled to sum to 1 with the constant, as for missing parts."""
    if profile.unit is OverallUnit.PER_ANSWER:
        return {OVERALL: 1.0}
    chosen = set(names)
    weights = {part.metric: part.weight for part in profile.parts if part.metric in chosen}
    total = sum(weights.values())
    return {name: weight / total * (1.0 - profile.constant) for name, weight in weights.items()}


def compared_weight(profile: ProfileSpec, names: Iterable[str]) -> float:
    """Return the compared parts' share of the profile's weight, from 0 to 1."""
    if profile.unit is OverallUnit.PER_ANSWER:
        return 1.0
    chosen = set(names)
    return sum(part.weight for part in profile.parts if part.metric in chosen) + profile.constant


def question_scores(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Return the judge-only score by question, from 0 to 1 over the parts that apply."""
    return by_question(
        _known_scores(side, answer_scores(profile, side.basis.sides.machine, machine_score(side, profile)))
    )


def passing_shares(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Return the share of passing answers by question, without answers whose result is unknown.

    Empty for a profile without a pass rule or without scores of single answers."""
    scores = machine_score(side, profile).answers
    if not has_passing(profile) or not scores:
        return {}
    machine = side.basis.sides.machine
    outcomes = answer_verdicts(profile, machine, scores, flags_of(side.basis.run, profile))
    return by_question(
        (answer, float(outcome.verdict is PassVerdict.PASSED))
        for answer, outcome in zip(machine.answers, outcomes, strict=True)
        if outcome is not None and outcome.verdict is not PassVerdict.UNKNOWN
    )


def _unit_values(profile: ProfileSpec, part: ProfilePart, metric: MetricValues) -> dict[str, float]:
    if metric.scale.labels:
        return {}
    contribution = summand(profile, part, metric, part.weight)
    answers = (metric.answers[index] for index in contribution.places.tolist())
    return by_question(zip(answers, contribution.values.tolist(), strict=True))


def _known_scores(side: Side, scores: Iterable[float | None]) -> list[tuple[RunAnswer, float]]:
    answers = side.basis.sides.machine.answers
    return [(answer, score) for answer, score in zip(answers, scores, strict=True) if score is not None]
