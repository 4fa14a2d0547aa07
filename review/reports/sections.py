"""Declares the content of a report, once for all output formats, as a tree of sections with entries.

An entry without outputs appears in all of :data:`EVERYWHERE`. JSON keeps the names of the ``graphrag`` source, whatever
titles readers see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.json_types import object_type
from evaluation.runs.progress import Spending
from review.agreement.json_types import Agreement
from review.calibration.approvals import RunApproval
from review.charts.forest import Shape
from review.evidence.carried import RatingOrigin
from review.evidence.effective import EffectiveValue
from review.reports.entries import Entry, Output, Section, only
from review.reports.estimates import CarriedFrom, carried_in_words, weights_in_words
from review.reports.figure import Figure
from review.reports.formula import Formula, formula_in_words, other_profiles_in_words
from review.reports.json_types import (
    SOURCE_FIGURES,
    Cost,
    GateResult,
    HopsFigures,
    MissingPartValue,
    NextReview,
    ProfileFigures,
    ProvenanceValue,
    RemovedAnswer,
    VerdictValue,
)
from review.reports.lines import AnswerLine, CategoryLine, Coverage, Latency, MetricLine
from review.reports.profile_section import section_json
from review.reports.provenance import Doubt
from review.reports.report import Report
from review.reports.retrieval import CorrectedRetrieval, retrieval_in_words
from review.reports.verdict import verdict_of
from review.statistics.correction.outcome import Target

PAGE, HTML, MARKDOWN, TERMINAL = Output.PAGE, Output.HTML, Output.MARKDOWN, Output.TERMINAL
CSV, XLSX, JUNIT = Output.CSV, Output.XLSX, Output.JUNIT
JSON = only(Output.JSON)
TABLES = only(CSV, XLSX)
# Outputs for people.
READABLE = only(PAGE, HTML, MARKDOWN, TERMINAL)
FIGURES = READABLE | {Output.JSON, XLSX}
HEAD = only(Output.JSON, HTML, JUNIT, TERMINAL)
CategoryMetric = tuple[CategoryLine, str]


def judges_in_words(report: Report) -> str:
    """Judges by name and version, marking the offline baseline."""
    judges = ", ".join(report.header.judges) or gettext("none")
    return f"{judges} ({gettext('offline baseline')})" if report.header.baseline_judged else judges


def _cost_in_words(report: Report) -> str:
    cost = report.provenance.cost
    spent = f"{cost.known:.4f} USD"
    return gettext("at least %(cost)s") % {"cost": spent} if cost.at_least else spent


def spending_json(cost: Spending) -> dict[str, Any]:
    """Cost of calls, with whether it is a lower bound."""
    return asdict(cost) | {"at_least": cost.at_least}


def _provenance(report: Report) -> dict[str, Any]:
    source = report.provenance
    by_rubric = {name: spending_json(part) for name, part in source.cost_by_rubric.items()}
    document = asdict(source) | {"cost": spending_json(source.cost) | {"currency": "USD", "by_rubric": by_rubric}}
    # The cost contains it.
    del document["cost_by_rubric"]
    return document


def _whole_report(report: Report) -> Iterator[tuple[str, Report]]:
    yield "", report


def _metrics(report: Report) -> Iterator[tuple[str, MetricLine]]:
    return ((line.name, line) for line in report.metrics)


RUN: Section[Report, Report] = Section(
    "run",
    _whole_report,
    [
        Entry("id", lambda r: r.header.run_id, "number of the run", only(Output.JSON, HTML), _("run"), type=int),
        Entry("name", lambda r: r.header.name, "name of the run", JSON, type=str),
        Entry("status", lambda r: r.header.state, "completed, incomplete, running, …", JSON, type=str),
        Entry("reason", lambda r: r.header.reason, "code of why there is no headline", JSON, type=str),
        Entry("system", lambda r: r.header.system, "system with its version", HEAD, _("system"), type=str),
        Entry(
            "question_set",
            lambda r: r.header.question_set,
            "question set with its version",
            HEAD,
            _("questions"),
            type=str,
        ),
        Entry("profile", lambda r: r.header.profile, "profile with its version", HEAD, _("profile"), type=str),
        Entry(
            "judges",
            lambda r: r.header.judges,
            "judges with their versions",
            only(Output.JSON, JUNIT),
            _("judge"),
            type=list[str],
        ),
        Entry("judge", judges_in_words, "the same for readers", only(HTML, TERMINAL), _("judge")),
        Entry("answers", lambda r: r.header.answers, "answers that count", HEAD, _("answers"), type=int),
        Entry(
            "reviewed_answers",
            lambda r: r.overall.reviewed_answers,
            "answers with a value by a person",
            only(HTML),
            _("reviewed by experts"),
        ),
        Entry("cost", _cost_in_words, "what the calls cost", only(TERMINAL), _("cost")),
        Entry("why", lambda r: r.header.reason, "that code again", only(TERMINAL), _("reason"), if_any=True),
    ],
    single=True,
)

OVERALL: Section[Report, Report] = Section(
    "overall",
    _whole_report,
    [
        Entry("label", lambda r: str(r.overall.label), "what the score may be called", JSON, type=str),
        Entry("weight", lambda r: r.overall.weight, "share of the profile's weight it has, 0 to 1", JSON, type=float),
        Entry(
            "missing_parts",
            lambda r: [{"metric": m.metric, "weight": m.weight, "why": str(m.gap)} for m in r.overall.missing],
            "parts of the profile that are not in the score",
            JSON,
            type=list[MissingPartValue],
        ),
        Entry(
            "weights",
            lambda r: r.overall.weights or None,
            "weights of the parts in use",
            JSON,
            if_any=True,
            type=dict[str, float],
        ),
        Entry(
            "reweighted_answers", lambda r: r.overall.reweighted, "answers some part does not apply to", JSON, type=int
        ),
        Entry(
            "judge_only",
            lambda r: r.overall.judge_only,
            "the profile's arithmetic over what judge and rules said, with variation over questions",
            FIGURES | {JUNIT},
            _("judge only"),
            mark=Shape.JUDGE,
        ),
        Entry(
            "reviewed",
            lambda r: r.overall.reviewed,
            "the same with people's values where there are any",
            FIGURES | {JUNIT},
            _("reviewed"),
            mark=Shape.EXPERT,
        ),
        Entry(
            "corrected",
            lambda r: r.overall.corrected,
            "what experts would have said of all answers, with the interval for questions like these",
            FIGURES | {JUNIT},
            _("corrected"),
            mark=Shape.CORRECTED,
        ),
        Entry(
            "corrected_this_run",
            lambda r: r.overall.corrected_this_run,
            "the same value with the interval for this run",
            only(Output.JSON, XLSX, JUNIT),
        ),
        Entry(
            "part_only",
            lambda r: r.overall.part_only,
            "the figure of those parts that were computed, where it is no overall score",
            only(Output.JSON, XLSX, PAGE, HTML, TERMINAL),
            _("partial"),
            page_title=_("Parts only"),
            mark=Shape.PLAIN,
            if_any=True,
        ),
        Entry(
            "formula",
            lambda r: r.formula,
            "weights of the profile, scores under other shipped profiles",
            JSON,
            type=Formula | None,
        ),
        Entry(
            "formula",
            lambda r: formula_in_words(r.formula, r.metrics),
            "in words",
            READABLE,
            _("formula"),
            if_any=True,
        ),
        Entry(
            "other_profiles",
            lambda r: other_profiles_in_words(r.formula),
            "judge-only scores under other shipped profiles",
            READABLE,
            _("judge-only score, other profiles"),
            if_any=True,
        ),
        Entry(
            "scaled_weights",
            lambda r: weights_in_words(r.overall, r.metrics),
            "which weights were scaled up, and why",
            READABLE,
            _("weights"),
            if_any=True,
        ),
        Entry(
            "carried",
            lambda r: r.overall.carried or None,
            "runs of equal answers that were rated",
            JSON,
            if_any=True,
            type=list[CarriedFrom],
        ),
        Entry(
            "carried",
            lambda r: carried_in_words(r.overall),
            "in words",
            READABLE,
            _("ratings of identical answers"),
            if_any=True,
        ),
        Entry(
            "retrieval",
            lambda r: retrieval_in_words(r.retrieval),
            "in words",
            READABLE - {PAGE, HTML},
            _("retrieval, corrected"),
            if_any=True,
        ),
        Entry("answers", lambda r: r.overall.answers, "answers that count", JSON, type=int),
        Entry(
            "reviewed_answers", lambda r: r.overall.reviewed_answers, "answers with a person's value", JSON, type=int
        ),
        Entry(
            "overrides", lambda r: r.overall.overrides, "values decided by a lead or assigned expert", JSON, type=int
        ),
        Entry("unresolved", lambda r: r.overall.unresolved, "values on which the experts are tied", JSON, type=int),
        Entry(
            "mean_shift_initial_to_final",
            lambda r: r.overall.mean_shift,
            "shift from first to last rating",
            JSON,
            type=float | None,
        ),
        Entry(
            "example_ratings", lambda r: r.overall.examples, "whether some ratings were made for show", JSON, type=bool
        ),
    ],
    single=True,
)

METRICS: Section[Report, MetricLine] = Section(
    "metrics",
    _metrics,
    [
        Entry("report_name", lambda m: m.report_name, "the name in the profile's source", JSON, type=str),
        Entry("version", lambda m: m.version, "version of the metric's definition", JSON, type=int),
        Entry("kind", lambda m: m.kind, "who gives it: rule, judge, imported, …", JSON, type=str),
        Entry("scale", lambda m: str(m.scale), "its scale, on which all its means stand", JSON, type=str),
        Entry("weight", lambda m: m.weight, "its weight in the profile, 0 where it is only reported", JSON, type=float),
        Entry("weight", lambda m: m.weight or None, "the same for readers", only(PAGE, HTML), _("Weight")),
        Entry(
            "judge_only",
            lambda m: m.judge_only,
            "mean of what the judge or rule said, with variation over questions",
            FIGURES | {JUNIT},
            _("judge only"),
            page_title=_("unadjusted"),
            mark=Shape.JUDGE,
        ),
        Entry(
            "reviewed",
            lambda m: m.reviewed,
            "the same with people's values where there are any",
            FIGURES,
            _("reviewed"),
            mark=Shape.EXPERT,
        ),
        Entry(
            "corrected",
            lambda m: m.corrected,
            "what experts would have said of all answers",
            FIGURES,
            _("corrected"),
            mark=Shape.CORRECTED,
        ),
        Entry("rated", lambda m: m.rated, "answers with an expert's value", JSON, type=int),
        Entry(
            "carried", lambda m: m.carried or None, "of those, by ratings of equal answers", JSON, if_any=True, type=int
        ),
        Entry("overridden", lambda m: m.overridden, "answers with a decision", JSON, type=int),
        Entry("unresolved", lambda m: m.unresolved, "answers on which experts are tied", JSON, type=int),
        Entry(
            "shares",
            lambda m: m.shares or None,
            "share of each label of a class metric",
            JSON,
            if_any=True,
            type=dict[str, float],
        ),
        Entry(
            "latency",
            lambda m: m.latency,
            "mean, median and 95th percentile in seconds",
            JSON,
            if_any=True,
            type=Latency,
        ),
    ],
)

COVERAGE: Section[Report, MetricLine] = Section(
    "coverage",
    _metrics,
    [
        Entry("scored", lambda m: m.coverage.scored, "answers with a value", READABLE | JSON, _("scored"), type=int),
        Entry(
            "failed",
            lambda m: m.coverage.failed,
            "answers that failed",
            READABLE | JSON,
            _("failed"),
            bad=True,
            type=int,
        ),
        Entry(
            "not_applicable",
            lambda m: m.coverage.not_applicable,
            "answers that the metric does not apply to",
            only(Output.JSON, PAGE, HTML, TERMINAL),
            _("not applicable"),
            type=int,
        ),
        Entry(
            "pending", lambda m: m.coverage.pending, "without a result yet", JSON | {TERMINAL}, _("pending"), type=int
        ),
    ],
)

CATEGORY_METRICS: Section[CategoryLine, CategoryMetric] = Section(
    "metrics",
    lambda category: ((name, (category, name)) for name in category.metrics),
    [
        Entry("judge_only", lambda pair: pair[0].metrics[pair[1]][0], "mean as it came", JSON, _("unadjusted")),
        Entry("reviewed", lambda pair: pair[0].metrics[pair[1]][1], "with people's values", JSON, _("reviewed")),
        Entry(
            "corrected", lambda pair: pair[0].corrected[pair[1]], "what experts would have said", JSON, _("corrected")
        ),
    ],
)

BY_CATEGORY: Section[Report, CategoryLine] = Section(
    "by_category",
    lambda report: ((line.name, line) for line in report.categories),
    [
        Entry(
            "answers",
            lambda c: c.answers,
            "answers to questions of the category",
            only(Output.JSON, PAGE, HTML, TERMINAL),
            _("answers"),
            page_title="n",
            type=int,
        ),
        Entry("judge_only", lambda c: c.judge_only, "overall score", only(Output.JSON, TERMINAL), _("overall")),
        Entry("reviewed", lambda c: c.reviewed, "the same with people's values", JSON),
        Entry("corrected", lambda c: c.corrected_overall, "what experts would have said of all", JSON),
        CATEGORY_METRICS,
        Entry("coverage", lambda c: c.coverage, "answers by status, metric by metric", JSON, type=dict[str, Coverage]),
        Entry("latency", lambda c: c.latency, "mean, median and 95th percentile in seconds", JSON, type=Latency | None),
        Entry(
            "latency",
            lambda c: c.mean_latency,
            "the mean for readers",
            only(PAGE, HTML),
            _("mean latency, s"),
            digits=2,
        ),
    ],
)

# Outputs that list single answers for programs.
DETAILS = only(Output.JSON, Output.JSONL)


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """An answer of an export: its text, its fields in the source's terms, and the cost of its calls."""

    line: AnswerLine
    text: str = ""
    fields: Mapping[str, Any] | None = None
    cost: Spending | None = None


def _values(detail: AnswerDetail) -> Iterator[tuple[str, EffectiveValue]]:
    return iter(detail.line.values.items())


def _value(effective: EffectiveValue) -> float | str | None:
    return effective.label if effective.value is None else effective.value


def _judged(effective: EffectiveValue) -> float | str | None:
    return effective.judged.value_or_label if effective.judged else None


VALUES: Section[AnswerDetail, EffectiveValue] = Section(
    "metrics",
    _values,
    [
        Entry("value", _value, "the value that counts", DETAILS | TABLES, column="", type=float | str | None),
        Entry("judge", _judged, "what the judge or rule said", TABLES),
        Entry("source", lambda v: str(v.source), "whose value counts", DETAILS | TABLES, type=str),
        Entry(
            "status", lambda v: str(v.status or "pending"), "scored, failed, not applicable, pending", DETAILS, type=str
        ),
        Entry("reason", lambda v: v.reason, "why there is no value", DETAILS | TABLES, if_any=True, type=str),
        Entry(
            "unresolved", lambda v: v.unresolved or None, "whether experts are tied", DETAILS, if_any=True, type=bool
        ),
        Entry("judge", _judged, "what the judge or rule said", DETAILS, type=float | str | None),
        Entry(
            "carried",
            lambda v: v.carried,
            "the equal answer whose ratings count",
            DETAILS,
            if_any=True,
            type=RatingOrigin,
        ),
    ],
)

ANSWERS: Section[Report, AnswerDetail] = Section(
    "details",
    lambda report: ((str(line.answer.answer_id), AnswerDetail(line)) for line in report.answers),
    [
        Entry(
            "id",
            lambda a: a.line.answer.question_id,
            "the question's id",
            DETAILS | TABLES,
            column="question_id",
            type=str,
        ),
        Entry("answer_id", lambda a: a.line.answer.answer_id, "number of the answer", DETAILS, type=int),
        Entry("sample", lambda a: a.line.answer.sample, "which of several answers, from 1", DETAILS | TABLES, type=int),
        Entry("category", lambda a: a.line.answer.category, "the question's category", DETAILS | TABLES, type=str),
        Entry(
            "difficulty", lambda a: a.line.answer.difficulty, "the question's difficulty", DETAILS | TABLES, type=str
        ),
        Entry("question", lambda a: a.line.answer.question, "the question's text", DETAILS | TABLES, type=str),
        Entry("response", lambda a: a.text, "the answer's text", DETAILS | TABLES, column="answer", type=str),
        Entry(
            "latency_seconds",
            lambda a: a.line.answer.latency_seconds,
            "seconds it took",
            DETAILS | TABLES,
            digits=1,
            type=float | None,
        ),
        Entry(
            "score",
            lambda a: a.line.score,
            "its share of the parts that apply to it, 0 to 1; for run-mean profiles it only ranks answers",
            DETAILS | TABLES | {HTML, PAGE, MARKDOWN},
            _("Score"),
            digits=2,
            type=float | None,
        ),
        VALUES,
        Entry(
            "cost",
            lambda a: spending_json(a.cost) if a.cost else None,
            "what its calls cost",
            DETAILS,
            if_any=True,
            type=Cost,
        ),
        Entry(
            "source",
            lambda a: a.fields,
            "its fields in the profile's source",
            DETAILS,
            if_any=True,
            type=dict[str, Any],
        ),
    ],
)

_ANSWER: Any = ANSWERS.json_type("ReportAnswer")
Evaluation = object_type("Evaluation", SOURCE_FIGURES | {"details": list[_ANSWER]}, is_open=True)

REPORT: Section[Report, Report] = Section(
    "report",
    _whole_report,
    [
        RUN,
        Entry(
            "evaluation",
            lambda r: r.evaluation,
            "rates and means under the names of source graphrag",
            JSON,
            type=Evaluation,
        ),
        Entry(
            "by_profile",
            lambda r: section_json(r.by_profile),
            "the profile's own part, as its source has it",
            JSON,
            type=ProfileFigures,
        ),
        OVERALL,
        METRICS,
        COVERAGE,
        BY_CATEGORY,
        Entry(
            "by_hops",
            lambda r: {str(line.hops): line.figures for line in r.hops},
            "by facts questions link",
            JSON,
            type=dict[str, HopsFigures],
        ),
        Entry(
            "latency",
            lambda r: r.latency,
            "response times in seconds: n, mean, median, 95th percentile",
            JSON,
            type=Latency | None,
        ),
        Entry(
            "agreement",
            lambda r: r.agreement,
            "judges and experts, as the agreement command prints them",
            JSON,
            type=Agreement,
        ),
        Entry("gate", lambda r: r.gate, "the gate that was asked for", JSON, type=GateResult | None),
        Entry(
            "next_review",
            lambda r: r.next_review,
            "the next review worth while",
            JSON,
            exact=True,
            type=NextReview | None,
        ),
        Entry(
            "removed",
            lambda r: [{"id": a.question_id, "answer_id": a.answer_id, "sample": a.sample} for a in r.removed],
            "answers that count nowhere, because a lead upheld a flag",
            JSON,
            type=list[RemovedAnswer],
        ),
        Entry(
            "verdict",
            lambda r: verdict_of(r).to_dict(),
            "what the run says first, in sentences",
            JSON,
            type=VerdictValue,
        ),
        Entry("doubts", lambda r: r.doubts, "what makes the judge less to be trusted", JSON, type=list[Doubt]),
        Entry(
            "approvals",
            lambda r: [approval.to_dict() for approval in r.approvals],
            "whether a hold-out test approves the prompts",
            JSON,
            type=list[RunApproval],
        ),
        Entry(
            "retrieval",
            lambda r: r.retrieval,
            "corrected for passages that nobody rated",
            JSON,
            if_any=True,
            type=CorrectedRetrieval,
        ),
        Entry("provenance", _provenance, "versions, hashes, models, draws, cost and dates", JSON, type=ProvenanceValue),
    ],
    single=True,
)


def overall_figures(
    report: Report, output: Output, target: Target = Target.QUESTIONS_LIKE_THESE
) -> list[tuple[Entry[Report], Figure]]:
    """Overall figures of an output with intervals for one target, most trustworthy first, parts-only last.

    A score with unrated judged parts gets the title "partly corrected"."""
    order = (Shape.CORRECTED, Shape.EXPERT, Shape.JUDGE, Shape.PLAIN)
    figures = [
        (entry, _for_target(report, value, target))
        for entry in OVERALL.entries(output)
        if isinstance(value := entry.read(report), Figure)
    ]
    figures = [
        (entry.with_title(_("partly corrected")) if value.partly_corrected else entry, value)
        for entry, value in figures
    ]
    return sorted(figures, key=lambda pair: order.index(pair[0].mark or Shape.PLAIN))


def _for_target(report: Report, figure: Figure, target: Target) -> Figure:
    """The figure with the interval for a target. Only corrected figures have an interval for this run."""
    if figure is report.overall.corrected:
        return report.overall.corrected_this_run if target is Target.THIS_RUN else figure
    if target is Target.THIS_RUN and figure.low is not None:
        return replace(figure, low=None, high=None, target=str(target))
    return figure


def target_in_words(report: Report, target: Target) -> str:
    """The questions that intervals of overall scores refer to."""
    if target is Target.QUESTIONS_LIKE_THESE:
        return gettext("questions like these")
    count = report.overall.questions
    return ngettext("this %(count)d question", "these %(count)d questions", count) % {"count": count}


def section_facts(
    section: Section[Report, Report], report: Report, output: Output
) -> Iterator[tuple[Entry[Report], Any]]:
    """Entries of a section with their values. Figures of the overall score are omitted."""
    for entry in section.entries(output):
        value = entry.read(report)
        if not (section is OVERALL and isinstance(value, Figure)) and not entry.is_absent(value):
            yield entry, value
