"""Gold sets, maps and cards over public data: three judges of open questions, 33 judges of passages, experts of
summaries."""

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


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def brought(rows: Sequence[tuple[str, float, dict[str, Any]]], scale: str) -> Run:
    """A run over answers of a group, a label and what each judge said of it, all rated and imported."""
    run = run_over(answers_to(["a"] * len(rows), [group for group, _, _ in rows]), judged=False)
    lines = []
    for at, (_, label, judges) in enumerate(rows, start=1):
        about = {"question_id": f"q{at}", "metric": "quality"}
        lines.append(about | {"value": label, "rater": "human", "author": "e1"})
        told = [(name, said) for name, said in judges.items() if said is not None]
        lines += [about | {"value": said, "rater": "judge", "author": name} for name, said in told]
    data = "".join(json.dumps(one) + "\n" for one in lines).encode()
    import_ratings(run, data, "r.jsonl", [f"quality={scale}"], "all")
    return run


def map_of(
    rows: Sequence[tuple[str, float, dict[str, Any]]], judge: str, levels: Sequence[int]
) -> MapEvaluation | None:
    """What a map of the judge's scores gains where it was not fitted."""
    kept = [(group, label, of[judge]) for group, label, of in rows if of[judge] is not None]
    said, labels = (np.array([one[at] for one in kept], dtype=np.float64) for at in (2, 1))
    return cross_validate_map(said, labels, np.ones(len(kept)), [group for group, _, _ in kept], levels)


def open_questions(folder: Path) -> list[tuple[str, float, dict[str, Any]]]:
    found = []
    for row in read(folder / "openqa_nq301" / "items.jsonl"):
        judges = {name: of["verdict"] for name, of in row["judges"].items()} | {
            "bem-prob": row["judges"]["bem"]["prob"]
        }
        found.append((row["question_id"], row["human"]["acceptable"], judges))
    return found


def test_the_card_of_an_imported_judge_tells_how_far_it_agrees(sample_data: Path) -> None:
    rows = [
        (group, label, {"gpt-4": of["gpt-4"], "bem": of["bem"]}) for group, label, of in open_questions(sample_data)
    ]
    run = brought(rows, "bool")
    (one,) = imported_card(run, "gpt-4").agreement
    gold = overview(freeze(run, "nq301", by=None))
    (metric,) = gold.metrics
    assert sum(part.answers for part in metric.parts.values()) == len(rows)
    assert (metric.lacks_groups, metric.lacks_answers) == (0, 0)
    (open_form,) = imported_card(run, "gpt-4").agreement
    assert open_form.n < one.n
    right = [label == of["gpt-4"] for _, label, of in rows if of["gpt-4"] is not None]
    assert (one.metric, one.n) == ("quality", len(right))
    assert one.value is not None
    assert one.interval is not None
    assert one.interval[0] < one.value < one.interval[1]
    assert one.value == pytest.approx(0.694, abs=5e-4)
    assert one.bias_by_length is not None
    out = StringIO()
    call_command("judge_card", "gpt-4", "--run", str(run.pk), stdout=out)
    assert out.getvalue().startswith("# gpt-4\n")
    assert "| quality | cohen_kappa_quadratic |" in out.getvalue()
    with pytest.raises(UnknownName, match="gpt-5"):
        imported_card(run, "gpt-5")


@pytest.mark.slow
def test_twelve_queries_are_too_few_for_a_look(sample_data: Path) -> None:
    rows = [(row["query_id"], row["human"], {}) for row in read(sample_data / "llmjudge_dl23" / "judgements.jsonl")]
    (metric,) = overview(freeze(brought(rows, "0..3"), "dl23", by=None)).metrics
    assert (metric.lacks_groups, metric.lacks_answers) == (24, 0)


def test_maps_tell_their_gain_where_they_were_not_fitted(sample_data: Path) -> None:
    rows = open_questions(sample_data)
    # nearer by more than chance, and only because scores are pulled together: such maps are refused
    found = map_of(rows, "bem-prob", ())
    assert found is not None
    assert (found.n, found.reduces_error, found.is_useful) == (737, True, False)
    assert (found.gain, found.low, found.high) == pytest.approx((0.0156, 0.0018, 0.0295), abs=5e-5)
    of_passages = [
        (row["query_id"], row["human"], row["judges"])
        for row in read(sample_data / "llmjudge_dl23" / "judgements.jsonl")
    ]
    assert map_of(of_passages, "Olz-gpt4o", range(4)) is None  # twelve queries
    # one expert in the place of a judge, the mean of the other two as the label
    summaries = [
        (row["doc_id"], float(np.mean(row["human"]["coherence"][1:])), {"e0": row["human"]["coherence"][0]})
        for row in read(sample_data / "summeval_human" / "items.jsonl")
    ]
    found = map_of(summaries, "e0", range(1, 6))
    assert found is not None
    assert (found.n, found.reduces_error, found.is_useful) == (800, True, False)
    assert (found.gain, found.low, found.high) == pytest.approx((0.3700, 0.2651, 0.4749), abs=5e-5)
