"""Retrieval by depth, the curves of a run, as trec_eval has it at every k from 1 to 50."""

from __future__ import annotations

from random import Random

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.depth_curves import CURVES, means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking

DEPTH, QUESTIONS, CHUNKS = 50, 40, 120
MEASURES = dict(zip(CURVES, ("P", "recall", "success", "recip_rank", "ndcg_cut", "map_cut"), strict=True))


def retrieved(seed: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The relevant ids and the rankings of some questions: many and few relevant ones, long, short and empty rankings,
    good ones and such by chance."""
    random, ids = Random(seed), [f"c{number}" for number in range(CHUNKS)]
    relevant, rankings = {}, {}
    for number in range(QUESTIONS):
        name = f"q{number}"
        relevant[name] = random.sample(ids, random.choice((1, 2, 5, 60)))
        known, skill = set(relevant[name]), random.choice((0.0, 0.5, 2.0))
        order = sorted(ids, key=lambda one, known=known, skill=skill: random.random() - skill * (one in known))
        rankings[name] = order[: random.choice((0, 1, 7, 30, DEPTH, CHUNKS))]
    return relevant, rankings


@pytest.mark.parametrize("seed", range(5))
def test_every_point_of_the_curves_is_trec_evals(seed: int) -> None:
    trec = pytest.importorskip("pytrec_eval")
    relevant, rankings = retrieved(seed)
    told = []
    for name, ids in rankings.items():
        asked = QuestionSpec(id=name, category="", text="", ground_truth_chunk_ids=tuple(relevant[name]))
        one = ranking(asked, AnswerSpec("", None, tuple(ids)), RuleSettings(k=DEPTH))
        assert isinstance(one, Ranking)
        told.append(one)
    ours = means_by_depth(told, DEPTH)
    truth = {name: dict.fromkeys(ids, 1) for name, ids in relevant.items()}
    for k in range(1, DEPTH + 1):
        measures = {one if one == "recip_rank" else f"{one}.{k}" for one in MEASURES.values()}
        cut = {  # recip_rank knows no cut; trec_eval leaves out empty rankings, where every figure is 0
            name: {chunk: float(-place) for place, chunk in enumerate(ids[:k])} for name, ids in rankings.items() if ids
        }
        theirs = trec.RelevanceEvaluator(truth, measures).evaluate(cut)
        for name, measure in MEASURES.items():
            key = measure if measure == "recip_rank" else f"{measure}_{k}"
            mean = sum(one[key] for one in theirs.values()) / QUESTIONS
            assert ours[name][k - 1] == pytest.approx(mean, abs=1e-9), (name, k)
