"""Depth curves of a run equal trec_eval at every k from 1 to 50."""

from __future__ import annotations

from random import Random

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.depth_curves import CURVES, means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking

DEPTH, QUESTIONS, CHUNKS = 50, 40, 120
MEASURES = dict(zip(CURVES, ("P", "recall", "success", "recip_rank", "ndcg_cut", "map_cut"), strict=True))


def random_rankings(seed: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Relevant ids and rankings of random questions: few and many relevant ids, short and long rankings, good and
    random ones."""
    random, ids = Random(seed), [f"c{number}" for number in range(CHUNKS)]
    relevant, rankings = {}, {}
    for number in range(QUESTIONS):
        name = f"q{number}"
        relevant[name] = random.sample(ids, random.choice((1, 2, 5, 60)))
        relevant_ids, skill = set(relevant[name]), random.choice((0.0, 0.5, 2.0))
        order = sorted(
            ids,
            key=lambda chunk_id, relevant_ids=relevant_ids, skill=skill: (
                random.random() - skill * (chunk_id in relevant_ids)
            ),
        )
        rankings[name] = order[: random.choice((0, 1, 7, 30, DEPTH, CHUNKS))]
    return relevant, rankings


@pytest.mark.parametrize("seed", range(5))
def test_every_curve_point_equals_trec_eval(seed: int) -> None:
    trec = pytest.importorskip("pytrec_eval")
    relevant, rankings = random_rankings(seed)
    measured = []
    for name, ids in rankings.items():
        question = QuestionSpec(id=name, category="", text="", ground_truth_chunk_ids=tuple(relevant[name]))
        entry = ranking(question, AnswerSpec("", None, tuple(ids)), RuleSettings(k=DEPTH))
        assert isinstance(entry, Ranking)
        measured.append(entry)
    curves = means_by_depth(measured, DEPTH)
    truth = {name: dict.fromkeys(ids, 1) for name, ids in relevant.items()}
    for k in range(1, DEPTH + 1):
        measures = {entry if entry == "recip_rank" else f"{entry}.{k}" for entry in MEASURES.values()}
        cut = {  # recip_rank knows no cut; trec_eval leaves out empty rankings, where every figure is 0
            name: {chunk: float(-place) for place, chunk in enumerate(ids[:k])} for name, ids in rankings.items() if ids
        }
        expected = trec.RelevanceEvaluator(truth, measures).evaluate(cut)
        for name, measure in MEASURES.items():
            key = measure if measure == "recip_rank" else f"{measure}_{k}"
            mean = sum(entry[key] for entry in expected.values()) / QUESTIONS
            assert curves[name][k - 1] == pytest.approx(mean, abs=1e-9), (name, k)
