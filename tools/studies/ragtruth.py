"""How far the offline baseline agrees with people on hallucinations: RAGTruth, question answering (Niu et al., 2024).

    CONCORD_TEST_DATA=FOLDER python -m tools.studies.ragtruth

prints the table of ``docs/baseline.md``. Folder ``ragtruth_qa``: 306 answers of six models to 54 questions with three
passages each; people marked the spans that the passages do not support. An answer without a marked span counts as
grounded. Answers to one question are drawn together for the intervals.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.core.scales import Scale
from evaluation.judging.baseline import judge_offline
from evaluation.judging.calls import JudgeCase, JudgeDialog
from evaluation.judging.catalogue import family_named
from evaluation.judging.prompt import judge_call, parse_reply
from evaluation.judging.rubric import shipped_rubric
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.pair import PairAgreement, compare

YES_NO, UNIT = Scale.parse("bool"), Scale.parse("real 0..1")
METRICS = {"claim_support": "claims", "generation_faithfulness": "generation_faithfulness"}
THRESHOLDS = (0.5, 0.8, 1.0)
SHOWN = ("exact", "balanced_accuracy", "tpr", "tnr", "cohen_kappa")
RESAMPLES, SEED = 2000, 1


@dataclass(frozen=True, slots=True)
class Judged:
    """The answers with what people and the baseline said: 1 is grounded; ``None`` where the answer claims nothing."""

    grounded: tuple[float, ...]
    values: Mapping[str, tuple[float | None, ...]]
    sources: tuple[str, ...]


def read(folder: Path) -> Judged:
    """The data with the baseline's figures."""
    items = [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]
    return Judged(
        grounded=tuple(float(not item["human"]["hallucinated"]) for item in items),
        values={metric: tuple(figure(item, metric) for item in items) for metric in METRICS},
        sources=tuple(item["source_id"] for item in items),
    )


def figure(item: Mapping[str, Any], metric: str) -> float | None:
    """The baseline's value of a metric for an answer."""
    family = family_named(METRICS[metric])
    question = QuestionSpec(id=item["source_id"], category="qa", text=item["question"])
    answer = AnswerSpec(item["answer"], tuple(ContextSpec(text) for text in item["contexts"]))
    case = JudgeCase(shipped_rubric(family.name, "en"), question, answer, family.metrics)
    talk = JudgeDialog(family.judge(case))
    while talk.request is not None:
        call = judge_call(case.rubric, question, answer, talk.request, model="baseline", parameters={})
        talk.advance(parse_reply(judge_offline(call), talk.request))
    return talk.results[metric].value


def at_threshold(found: Judged, metric: str, threshold: float) -> PairAgreement:
    """Grounded where the figure reaches the threshold, against the people."""
    said = [None if value is None else float(value >= threshold - 1e-9) for value in found.values[metric]]
    return _compared(said, found, YES_NO)


def as_number(found: Judged, metric: str) -> PairAgreement:
    """The figure itself against the people's yes or no."""
    return _compared(list(found.values[metric]), found, UNIT)


def constant(found: Judged) -> PairAgreement:
    """The best constant guess: everything is grounded."""
    return _compared([1.0] * len(found.grounded), found, YES_NO)


def _compared(said: Sequence[float | None], found: Judged, scale: Scale) -> PairAgreement:
    resampling = Resampling(RESAMPLES, SEED, groups=found.sources)
    return compare(said, list(found.grounded), scale, resampling=resampling)


def table(found: Judged) -> Iterator[str]:
    """The rows of the page."""
    yield "| judge | n | " + " | ".join(f"`{name}`" for name in SHOWN) + " |"
    yield "|---|---|" + "---|" * len(SHOWN)
    yield _row("everything is grounded", constant(found))
    for metric in METRICS:
        for threshold in THRESHOLDS:
            yield _row(f"`{metric}` ≥ {threshold:g}", at_threshold(found, metric, threshold))


def correlations(found: Judged) -> Iterator[str]:
    """The rows of the second table."""
    yield "| judge | n | `pearson` | `spearman` |"
    yield "|---|---|---|---|"
    for metric in METRICS:
        pair = as_number(found, metric)
        yield f"| `{metric}` | {pair.n} | {_cell(pair, 'pearson')} | {_cell(pair, 'spearman')} |"


def _row(name: str, pair: PairAgreement) -> str:
    return f"| {name} | {pair.n} | " + " | ".join(_cell(pair, statistic) for statistic in SHOWN) + " |"


def _cell(pair: PairAgreement, name: str) -> str:
    value = pair.statistics[name].value
    if value is None:
        return "–"
    text = f"{value:.3f}"
    if name in pair.intervals:
        low, high = pair.intervals[name]
        text += f" ({low:.3f} to {high:.3f})"
    return text


TABLES: Mapping[str, Callable[[Judged], Iterator[str]]] = {"agreement": table, "correlation": correlations}

if __name__ == "__main__":
    data = read(Path(os.environ["CONCORD_TEST_DATA"]) / "ragtruth_qa")
    for name, rows in TABLES.items():
        print(f"\n{name}\n" + "\n".join(rows(data)))
