"""How far does the offline baseline agree with people on hallucinations? RAGTruth, question answering (Niu et al.,
2024).

    CONCORD_TEST_DATA=FOLDER python -m tools.studies.ragtruth

Prints the table of ``docs/baseline.md``. Folder ``ragtruth_qa``: 306 answers of six models to 54 questions with three
passages each; people marked the spans that the passages do not support. An answer without a marked span counts as
grounded. Answers to one question are drawn together for the intervals."""

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
SHOWN_STATISTICS = ("exact", "balanced_accuracy", "tpr", "tnr", "cohen_kappa")
RESAMPLES, SEED = 2000, 1


@dataclass(frozen=True, slots=True)
class JudgedDataset:
    """Answers with the labels of people and the values of the baseline: 1 is grounded; ``None`` if the answer makes no
    claim."""

    grounded: tuple[float, ...]
    values: Mapping[str, tuple[float | None, ...]]
    sources: tuple[str, ...]


def load_dataset(folder: Path) -> JudgedDataset:
    """Load the data and compute the baseline's values."""
    items = [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]
    return JudgedDataset(
        grounded=tuple(float(not item["human"]["hallucinated"]) for item in items),
        values={metric: tuple(baseline_value(item, metric) for item in items) for metric in METRICS},
        sources=tuple(item["source_id"] for item in items),
    )


def baseline_value(item: Mapping[str, Any], metric: str) -> float | None:
    """The baseline's value of a metric for an answer."""
    family = family_named(METRICS[metric])
    question = QuestionSpec(id=item["source_id"], category="qa", text=item["question"])
    answer = AnswerSpec(item["answer"], tuple(ContextSpec(text) for text in item["contexts"]))
    case = JudgeCase(shipped_rubric(family.name, "en"), question, answer, family.metrics)
    dialog = JudgeDialog(family.judge(case))
    while dialog.request is not None:
        call = judge_call(case.rubric, question, answer, dialog.request, model="baseline", parameters={})
        dialog.advance(parse_reply(judge_offline(call), dialog.request))
    return dialog.results[metric].value


def at_threshold(dataset: JudgedDataset, metric: str, threshold: float) -> PairAgreement:
    """Compare with the human labels: grounded if the value reaches the threshold."""
    verdicts = [None if value is None else float(value >= threshold - 1e-9) for value in dataset.values[metric]]
    return _compare(verdicts, dataset, YES_NO)


def as_number(dataset: JudgedDataset, metric: str) -> PairAgreement:
    """The figure itself against the people's yes or no."""
    return _compare(list(dataset.values[metric]), dataset, UNIT)


def constant(dataset: JudgedDataset) -> PairAgreement:
    """The best constant guess: everything is grounded."""
    return _compare([1.0] * len(dataset.grounded), dataset, YES_NO)


def _compare(judge_values: Sequence[float | None], dataset: JudgedDataset, scale: Scale) -> PairAgreement:
    resampling = Resampling(RESAMPLES, SEED, groups=dataset.sources)
    return compare(judge_values, list(dataset.grounded), scale, resampling=resampling)


def table(dataset: JudgedDataset) -> Iterator[str]:
    """The rows of the page."""
    yield "| judge | n | " + " | ".join(f"`{name}`" for name in SHOWN_STATISTICS) + " |"
    yield "|---|---|" + "---|" * len(SHOWN_STATISTICS)
    yield _row("everything is grounded", constant(dataset))
    for metric in METRICS:
        for threshold in THRESHOLDS:
            yield _row(f"`{metric}` ≥ {threshold:g}", at_threshold(dataset, metric, threshold))


def correlations(dataset: JudgedDataset) -> Iterator[str]:
    """The rows of the second table."""
    yield "| judge | n | `pearson` | `spearman` |"
    yield "|---|---|---|---|"
    for metric in METRICS:
        agreement = as_number(dataset, metric)
        yield f"| `{metric}` | {agreement.n} | {_cell(agreement, 'pearson')} | {_cell(agreement, 'spearman')} |"


def _row(name: str, agreement: PairAgreement) -> str:
    return (
        f"| {name} | {agreement.n} | "
        + " | ".join(_cell(agreement, statistic) for statistic in SHOWN_STATISTICS)
        + " |"
    )


def _cell(agreement: PairAgreement, name: str) -> str:
    value = agreement.statistics[name].value
    if value is None:
        return "–"
    text = f"{value:.3f}"
    if name in agreement.intervals:
        low, high = agreement.intervals[name]
        text += f" ({low:.3f} to {high:.3f})"
    return text


TABLES: Mapping[str, Callable[[JudgedDataset], Iterator[str]]] = {"agreement": table, "correlation": correlations}

if __name__ == "__main__":
    dataset = load_dataset(Path(os.environ["CONCORD_TEST_DATA"]) / "ragtruth_qa")
    for name, rows in TABLES.items():
        print(f"\n{name}\n" + "\n".join(rows(dataset)))
