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
from tests.evaluation.scoring.embedded import complete_run, draft_similarity_run, make_endpoint
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
    make_endpoint(server, settings)
    run = complete_run(draft_similarity_run([(item["sentence1"], item["sentence2"]) for item in items]))
    assert run.state == Run.State.COMPLETED
    assert {len(texts) for texts in server.embedded} > {64}
    values = Score.objects.filter(run=run).order_by("answer__question__position").values_list("value", flat=True)
    return [value for value in values if value is not None]


def test_embeddings_built_from_ratings_reproduce_the_ratings(
    judge_server: JudgeServer, settings: Any, items: list[Item], sample_data: Path
) -> None:
    reference = json.loads((sample_data / "reference_values.json").read_text("utf-8"))["klue_sts_ko"]
    vectors: dict[str, list[float]] = {}
    for item in items:
        similarity = item["mean_label"] / 5
        vectors |= {
            item["sentence1"]: [1.0, 0.0],
            item["sentence2"]: [similarity, math.sqrt(1 - similarity * similarity)],
        }
    judge_server.vector_of = lambda text, _: vectors[text]
    scores = similarities(judge_server, settings, items)
    assert scores == pytest.approx([20 * item["mean_label"] for item in items], abs=1e-3)
    assert len(scores) == reference["n_items"]
    # On a scale of 5 instead of 100 their mean is the mean rating of the reference values.
    assert sum(scores) / len(scores) / 20 == pytest.approx(reference["mean_of_item_means"], abs=1e-5)


def bigrams(text: str) -> Counter[int]:
    squeezed = "".join(text.split())
    return Counter(crc32(squeezed[i : i + 2].encode()) % SIZE for i in range(len(squeezed) - 1))


def test_bigram_embeddings_give_the_cosine_computed_by_hand(
    judge_server: JudgeServer, settings: Any, items: list[Item]
) -> None:
    def vector(text: str, _: str) -> list[float]:
        counts = bigrams(text)
        return [float(counts[index]) for index in range(SIZE)]

    judge_server.vector_of = vector
    scores = similarities(judge_server, settings, items)
    expected = []
    for item in items:
        first, second = bigrams(item["sentence1"]), bigrams(item["sentence2"])
        lengths = math.sqrt(sum(n * n for n in first.values()) * sum(n * n for n in second.values()))
        expected.append(100 * sum(first[pair] * second[pair] for pair in first) / lengths)
    assert scores == pytest.approx(expected, abs=1e-3)
    # What shares syllables is not what means the same: people's ratings go with it only in part.
    human_ratings = [item["mean_label"] for item in items]
    assert spearmanr(scores, human_ratings).statistic == pytest.approx(0.2774, abs=0.001)
