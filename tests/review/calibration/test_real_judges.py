"""Gold sets, maps and cards on public data: open questions, retrieved passages and summaries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from evaluation.core.errors import UnknownName
from evaluation.models import Run
from review.calibration.overview import overview
from review.calibration.versions import freeze
from review.judges.card import imported_card
from review.ratings.import_files import import_ratings
from review.statistics.score_maps import MapEvaluation, cross_validate_map
from tests.review.builders import answers_to, run_over

pytestmark = pytest.mark.django_db


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def imported_run(rows: Sequence[tuple[str, float, dict[str, Any]]], scale: str) -> Run:
    """Create a run from (group, label, verdict per judge) rows and import all of them."""
    run = run_over(answers_to(["a"] * len(rows), [group for group, _, _ in rows]), judged=False)
    lines = []
    for number, (_, label, judges) in enumerate(rows, start=1):
        question_fields = {"question_id": f"q{number}", "metric": "quality"}
        lines.append(question_fields | {"value": label, "rater": "human", "author": "e1"})
        verdicts = [(name, verdict) for name, verdict in judges.items() if verdict is not None]
        lines += [question_fields | {"value": verdict, "rater": "judge", "author": name} for name, verdict in verdicts]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    import_ratings(run, data, "r.jsonl", [f"quality={scale}"], "all")
    return run


def evaluate_map(
    rows: Sequence[tuple[str, float, dict[str, Any]]], judge: str, levels: Sequence[int]
) -> MapEvaluation | None:
    """Cross-validated gain of a map fitted to the judge's scores."""
    triples = [(group, label, verdicts[judge]) for group, label, verdicts in rows if verdicts[judge] is not None]
    scores, labels = (np.array([triple[column] for triple in triples], dtype=np.float64) for column in (2, 1))
    return cross_validate_map(scores, labels, np.ones(len(triples)), [group for group, _, _ in triples], levels)


def open_questions(folder: Path) -> list[tuple[str, float, dict[str, Any]]]:
    rows = []
    for row in read_jsonl(folder / "openqa_nq301" / "items.jsonl"):
        judges = {name: verdict["verdict"] for name, verdict in row["judges"].items()} | {
            "bem-prob": row["judges"]["bem"]["prob"]
        }
        rows.append((row["question_id"], row["human"]["acceptable"], judges))
    return rows


@pytest.mark.slow
def test_imported_judge_card_shows_its_agreement(sample_data: Path) -> None:
    rows = [
        (group, label, {"gpt-4": verdicts["gpt-4"], "bem": verdicts["bem"]})
        for group, label, verdicts in open_questions(sample_data)
    ]
    run = imported_run(rows, "bool")
    (full_agreement,) = imported_card(run, "gpt-4").agreement
    gold = overview(freeze(run, "nq301", by=None))
    (metric,) = gold.metrics
    assert sum(split.answers for split in metric.parts.values()) == len(rows)
    assert (metric.lacks_groups, metric.lacks_answers) == (0, 0)
    (open_form,) = imported_card(run, "gpt-4").agreement
    assert open_form.n < full_agreement.n
    matches = [label == verdicts["gpt-4"] for _, label, verdicts in rows if verdicts["gpt-4"] is not None]
    assert (full_agreement.metric, full_agreement.n) == ("quality", len(matches))
    assert full_agreement.value is not None
    assert full_agreement.interval is not None
    assert full_agreement.interval[0] < full_agreement.value < full_agreement.interval[1]
    assert full_agreement.value == pytest.approx(0.694, abs=5e-4)
    assert full_agreement.bias_by_length is not None
    out = StringIO()
    call_command("judge_card", "gpt-4", "--run", str(run.pk), stdout=out)
    assert out.getvalue().startswith("# gpt-4\n")
    assert "| quality | cohen_kappa_quadratic |" in out.getvalue()
    with pytest.raises(UnknownName, match="gpt-5"):
        imported_card(run, "gpt-5")


@pytest.mark.slow
def test_twelve_queries_are_too_few_for_a_holdout_test(sample_data: Path) -> None:
    rows = [
        (row["query_id"], row["human"], {}) for row in read_jsonl(sample_data / "llmjudge_dl23" / "judgements.jsonl")
    ]
    (metric,) = overview(freeze(imported_run(rows, "0..3"), "dl23", by=None)).metrics
    assert (metric.lacks_groups, metric.lacks_answers) == (24, 0)


def test_maps_report_their_cross_validated_gain(sample_data: Path) -> None:
    rows = open_questions(sample_data)
    # nearer by more than chance, and only because scores are pulled together: such maps are refused
    evaluation = evaluate_map(rows, "bem-prob", ())
    assert evaluation is not None
    assert (evaluation.n, evaluation.reduces_error, evaluation.is_useful) == (737, True, False)
    assert (evaluation.gain, evaluation.low, evaluation.high) == pytest.approx((0.0156, 0.0018, 0.0295), abs=5e-5)
    passages = [
        (row["query_id"], row["human"], row["judges"])
        for row in read_jsonl(sample_data / "llmjudge_dl23" / "judgements.jsonl")
    ]
    assert evaluate_map(passages, "Olz-gpt4o", range(4)) is None  # twelve queries
    # one expert in the place of a judge, the mean of the other two as the label
    summaries = [
        (row["doc_id"], float(np.mean(row["human"]["coherence"][1:])), {"e0": row["human"]["coherence"][0]})
        for row in read_jsonl(sample_data / "summeval_human" / "items.jsonl")
    ]
    evaluation = evaluate_map(summaries, "e0", range(1, 6))
    assert evaluation is not None
    assert (evaluation.n, evaluation.reduces_error, evaluation.is_useful) == (800, True, False)
    assert (evaluation.gain, evaluation.low, evaluation.high) == pytest.approx((0.3700, 0.2651, 0.4749), abs=5e-5)
