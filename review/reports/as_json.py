"""A report as JSON: the contract's sections, with every figure a value or a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from evaluation.runs.costs import Spending
from review.evidence.effective import Effective
from review.reports.by_profile.as_json import section_json
from review.reports.report import CategoryLine, Latency, MetricLine, Report, RunHeader, ThreeScores

_NOTHING: Mapping[int, Any] = MappingProxyType({})
DIGITS = 12  # values are exact to here and stay readable: 0.762 instead of 0.7619999999999999


def report_json(
    report: Report,
    texts: Mapping[int, str],
    fields: Mapping[int, Any] = _NOTHING,
    costs: Mapping[int, Spending] = _NOTHING,
) -> dict[str, Any]:
    """The whole report with one entry of ``evaluation.details`` per answer; ``texts`` are the answers' texts by id,
    ``fields`` what they are in the terms of the profile's source, ``costs`` what their calls cost."""
    whole = summary_json(report)
    whole["evaluation"]["details"] = list(details(report, texts, fields, costs))
    return whole


def summary_json(report: Report) -> dict[str, Any]:
    """The report without its answers."""
    return {
        "run": _header(report.header),
        "evaluation": plain(report.evaluation),
        "by_profile": plain(section_json(report.by_profile)),
        "overall": _overall(report.overall),
        "metrics": {line.name: _metric(line) for line in report.metrics},
        "coverage": {line.name: asdict(line.coverage) for line in report.metrics},
        "by_category": {line.name: _category(line) for line in report.categories},
        "latency": _latency(report.latency),
        "agreement": plain(report.agreement),
        "gate": plain(report.gate),
        "next_review": None if report.next_review is None else dict(report.next_review),
        "removed": [
            {"id": one.question_id, "answer_id": one.answer_id, "sample": one.sample} for one in report.removed
        ],
        "doubts": [plain(asdict(one)) for one in report.doubts],
        "provenance": plain(_provenance(report)),
    }


def details(
    report: Report,
    texts: Mapping[int, str],
    fields: Mapping[int, Any] = _NOTHING,
    costs: Mapping[int, Spending] = _NOTHING,
) -> Iterator[dict[str, Any]]:
    """One entry per answer: the judge's (or rule's) value of each metric, and the effective one with its source."""
    for line in report.answers:
        answer = line.answer
        yield {
            "id": answer.question_id,
            "answer_id": answer.answer_id,
            "sample": answer.sample,
            "category": answer.category,
            "difficulty": answer.difficulty,
            "question": answer.question,
            "response": texts.get(answer.answer_id, ""),
            "latency_seconds": answer.latency_seconds,
            "score": None if line.score is None else round(line.score, DIGITS),
            "metrics": {name: _value(value) for name, value in line.values.items()},
            **({"cost": plain(_spending(costs[answer.answer_id]))} if answer.answer_id in costs else {}),
            **({"source": plain(fields[answer.answer_id])} if answer.answer_id in fields else {}),
        }


def _value(value: Effective) -> dict[str, Any]:
    said = value.judged
    return {
        "value": value.label if value.value is None else round(value.value, DIGITS),
        "source": str(value.source),
        "status": str(value.status) if value.status else "pending",
        **({"reason": value.reason} if value.reason else {}),
        **({"unresolved": True} if value.unresolved else {}),
        "judge": plain(said.answer) if said else None,
    }


def _header(header: RunHeader) -> dict[str, Any]:
    return {
        "id": header.run_id,
        "name": header.name,
        "status": header.state,
        "reason": header.reason,
        "system": header.system,
        "question_set": header.question_set,
        "profile": header.profile,
        "judges": list(header.judges),
        "answers": header.answers,
    }


def _overall(overall: ThreeScores) -> dict[str, Any]:
    part = {} if overall.part_only is None else {"part_only": plain(overall.part_only.to_dict())}
    return {
        "label": str(overall.label),
        "weight": round(overall.weight, DIGITS),
        "missing_parts": [{"metric": m.metric, "weight": m.weight, "why": str(m.gap)} for m in overall.missing],
        "judge_only": plain(overall.judge_only.to_dict()),
        "reviewed": plain(overall.reviewed.to_dict()),
        "corrected": plain(overall.corrected.to_dict()),
        "corrected_over_questions": plain(overall.corrected_over_questions.to_dict()),
        **part,
        "answers": overall.answers,
        "reviewed_answers": overall.reviewed_answers,
        "overrides": overall.overrides,
        "unresolved": overall.unresolved,
        "mean_shift_initial_to_final": plain(overall.mean_shift),
        "example_ratings": overall.examples,
    }


def _metric(line: MetricLine) -> dict[str, Any]:
    return {
        "report_name": line.report_name,
        "version": line.version,
        "kind": line.kind,
        "scale": str(line.scale),
        "weight": line.weight,
        "judge_only": plain(line.judge_only.to_dict()),
        "reviewed": plain(line.reviewed.to_dict()),
        "corrected": plain(line.corrected.to_dict()),
        "rated": line.rated,
        "overridden": line.overridden,
        "unresolved": line.unresolved,
        **({"shares": plain(line.shares)} if line.shares else {}),
        **({"latency": _latency(line.latency)} if line.latency else {}),
    }


def _category(line: CategoryLine) -> dict[str, Any]:
    return {
        "answers": line.answers,
        "judge_only": plain(line.judge_only.to_dict()),
        "reviewed": plain(line.reviewed.to_dict()),
        "corrected": plain(line.corrected_overall.to_dict()),
        "metrics": {
            name: {
                "judge_only": plain(ours.to_dict()),
                "reviewed": plain(theirs.to_dict()),
                "corrected": plain(line.corrected[name].to_dict()),
            }
            for name, (ours, theirs) in line.metrics.items()
        },
        "coverage": {name: asdict(coverage) for name, coverage in line.coverage.items()},
        "latency": _latency(line.latency),
    }


def _latency(latency: Latency | None) -> dict[str, Any] | None:
    return None if latency is None else plain(asdict(latency))


def _provenance(report: Report) -> dict[str, Any]:
    source = asdict(report.provenance) | {"cost": _cost(report)}
    del source["cost_by_rubric"]  # it stands within the cost
    return source


def _cost(report: Report) -> dict[str, Any]:
    source = report.provenance
    by_rubric = {name: _spending(part) for name, part in source.cost_by_rubric.items()}
    return _spending(source.cost) | {"currency": "USD", "by_rubric": by_rubric}


def _spending(cost: Spending) -> dict[str, Any]:
    return asdict(cost) | {"at_least": cost.at_least}


def plain(value: Any) -> Any:
    """JSON values: numbers rounded to 12 digits, moments in ISO 8601, money as text without loss."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
