"""KLUE-STS (``klue_sts_ko``): similarity of Korean pairs in a run, with embeddings from a scripted endpoint."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from scipy.stats import spearmanr

from evaluation.models import Run, Score
from tests.evaluation.scoring.embedded import drafted, drained, endpoint_of
from tests.judge_server import JudgeServer
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
Item = dict[str, Any]
SIZE = 4096


@pytest.fixture
def items(sample_data: Path) -> list[Item]:
    return [json.loads(line) for line in (sample_data / "klue_sts_ko" / "items.jsonl").read_text("utf-8").splitlines()]


def similarities(server: JudgeServer, settings: Any, items: list[Item]) -> list[float]:
    """The similarity of every pair: one sentence is the answer, the other the expected one."""
    settings.CONCORD_DISPATCHER = "local"
    endpoint_of(server, settings)
    run = drained(drafted([(item["sentence1"], item["sentence2"]) for item in items]))
    assert run.state == Run.State.COMPLETED
    assert {len(texts) for texts in server.embedded} > {64}
    values = Score.objects.filter(run=run).order_by("answer__question__position").values_list("value", flat=True)
    return [value for value in values if value is not None]


def test_an_endpoint_that_knows_the_ratings_gives_them_back(
    judge_server: JudgeServer, settings: Any, items: list[Item], sample_data: Path
) -> None:
    reference = json.loads((sample_data / "reference_values.json").read_text("utf-8"))["klue_sts_ko"]
    vectors: dict[str, list[float]] = {}
    for item in items:
        near = item["mean_label"] / 5
        vectors |= {item["sentence1"]: [1.0, 0.0], item["sentence2"]: [near, math.sqrt(1 - near * near)]}
    judge_server.vector_of = lambda text, _: vectors[text]
    found = similarities(judge_server, settings, items)
    assert found == pytest.approx([20 * item["mean_label"] for item in items], abs=1e-3)
    assert len(found) == reference["n_items"]
    # On a scale of 5 instead of 100 their mean is the mean rating of the reference values.
    assert sum(found) / len(found) / 20 == pytest.approx(reference["mean_of_item_means"], abs=1e-5)


def bigrams(text: str) -> Counter[int]:
    squeezed = "".join(text.split())
    return Counter(crc32(squeezed[i : i + 2].encode()) % SIZE for i in range(len(squeezed) - 1))


def test_an_endpoint_that_counts_pairs_of_syllables_ranks_the_sentences_as_they_are_counted_by_hand(
    judge_server: JudgeServer, settings: Any, items: list[Item]
) -> None:
    def vector(text: str, _: str) -> list[float]:
        counts = bigrams(text)
        return [float(counts[place]) for place in range(SIZE)]

    judge_server.vector_of = vector
    found = similarities(judge_server, settings, items)
    expected = []
    for item in items:
        one, other = bigrams(item["sentence1"]), bigrams(item["sentence2"])
        lengths = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
        expected.append(100 * sum(one[pair] * other[pair] for pair in one) / lengths)
    assert found == pytest.approx(expected, abs=1e-3)
    # What shares syllables is not what means the same: people's ratings go with it only in part.
    people = [item["mean_label"] for item in items]
    assert spearmanr(found, people).statistic == pytest.approx(0.2774, abs=0.001)
