"""The figures of each page of the documentation, computed by the product. See ``tests/docs/figures.py``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.environment import KNOWN
from contrib.corpora import chunk_mapping, connector, documents
from contrib.corpora import ranking as searching
from contrib.corpora.documents import read_documents
from contrib.corpora.importing import ID_LENGTH
from contrib.corpora.ranking import Retriever, WordIndex, rank_passages
from contrib.corpora.splitting import Splitting, split
from contrib.generation import filters, runner
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftQuestion
from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec
from evaluation.core.scales import Scale
from evaluation.datasets import question_checks
from evaluation.formats.reading import read_questions
from evaluation.metrics.depth_curves import CURVES, means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking
from evaluation.scoring import recorded_calls
from review.statistics.acceptance import mean_difference, significance_level, squared_losses
from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.agreement.pair import best_constant_guess, compare
from review.statistics.agreement.variance import Observation, VarianceSource, variance_split
from review.statistics.correction.corrected import ComponentFit, corrected_component, corrected_overall, fit_component
from review.statistics.correction.frame import Component, EarlierRound, ReviewState
from review.statistics.correction.outcome import Estimate
from review.statistics.correction.strata_estimates import unseen_rate
from review.statistics.paired_tests.gate import fail_under, gate_confidence, labels_to_decide, questions_to_decide
from review.statistics.paired_tests.paired import paired_difference
from review.statistics.precision import (
    PlannedStratum,
    SpendOption,
    labels_for_difference,
    labels_for_width,
    spending_advice,
)
from review.statistics.release_difference import PairedPart, release_difference
from review.statistics.retrieval_truth import draw, estimates
from review.statistics.retrieval_truth.pool import Pool, RetrievalMetric
from review.statistics.sampling.draw import STANDING, allocate
from tests.docs.figures import ROOT, Computed, Value, table
from tests.review.statistics.correction.frames import FrameAnswer, frame_of
from tools.bench import retrieval as bench

DEMO = ROOT / "review/management/demo/en"
DEPTHS = (1, 3, 5, 10)


def row(*values: object) -> str:
    return f"| {' | '.join(map(str, values))} |"


def estimate(outcome: object) -> Estimate:
    assert isinstance(outcome, Estimate)
    return outcome


def agreement(text: str) -> Computed:
    """Two examples with their data in the page: levels 1 to 5, and yes or no."""
    experts, judge = ([float(cell) for cell in line[1:]] for line in table(text, "data: levels"))
    scale = Scale.parse("1..5")
    levels = compare(judge, experts, scale)
    assert levels.confusion is not None
    guess = best_constant_guess(experts, scale)
    assert guess is not None
    assert guess.agreement.statistics["cohen_kappa"].value == 0
    pairs = [
        (float(judge), float(expert))
        for expert, line in enumerate(table(text, "data: yes_no"))
        for judge, count in enumerate(line[1:])
        for _ in range(int(count))
    ]
    return {
        "levels": levels.to_dict(),
        "matrix_levels": [row(level, *map(int, counts)) for level, counts in enumerate(levels.confusion, 1)],
        "guess": guess.value,
        "guess_exact": guess.agreement.statistics["exact"].value,
        "yes_no": compare(*map(list, zip(*pairs, strict=True)), Scale.parse("bool")).to_dict(),
        "exact_10": clopper_pearson(1.0, 10)[0],
    }


def correction(text: str) -> Computed:
    """Examples of corrected scores, plans, comparisons and variances."""
    settled = labels_to_decide(60, 400, 400, 0.04, 0.05, 0.035)
    assert settled is not None
    stratified = sample(text, "stratified")
    inline = {
        "stratified": {name: stratified[name] for name in ("corrected", "low", "high")},
        "skewed": skewed(),
        "partly": partly(text),
        "standing": standing(text),
        "plan": plan(text),
        "compared": compared(text),
        "varying": varying(text),
        "release": release(text),
    }
    return {
        "regression": sample(text, "regression"),
        "rounds": rounds(text),
        **{f"{example}_{name}": value for example, figures in inline.items() for name, value in figures.items()},
        "exact_30": clopper_pearson(1.0, 30)[0],
        "bound_60": 1 - 0.05 ** (1 / 60),
        "ppi_lambda": 0.6 * 20 / 40,
        "settled_by_labels": settled.needed,
        **{f"verdict_{limit}": str(fail_under(0.68, 0.76, limit / 100)) for limit in (65, 70, 80)},
    }


def example_answers(text: str, example: str) -> list[FrameAnswer]:
    """The answers of an example, drawn with equal probability, or by the judge's verdict where it is stratified."""
    rows = [
        (judge, rating)
        for judge, *counts in table(text, f"data: {example}")
        for rating, count in zip((0.0, 1.0, None), counts, strict=True)
        for _ in range(int(count))
    ]
    rated_share = sum(rating is not None for _, rating in rows) / len(rows)
    return [
        FrameAnswer(
            index,
            float(judge),
            rating,
            ReviewState.NOT_SAMPLED if rating is None else ReviewState.RATED,
            rated_share,
            judge if example == "stratified" else "",
        )
        for index, (judge, rating) in enumerate(rows)
    ]


def sample(text: str, example: str) -> dict[str, Value]:
    answers = example_answers(text, example)
    result = estimate(corrected_component(Component(example, frame_of(answers), 0.0, 1.0, yes_no=True)))
    return result.to_dict() | {
        "corrected": result.value,
        "judge_only": sum(answer.judge or 0 for answer in answers) / len(answers),
    }


def rounds(text: str) -> dict[str, Value]:
    """Two planned rounds among 200 answers with one judge value."""
    frames, ratings = [], [[0.0] * int(no) + [1.0] * int(yes) for _, no, yes in table(text, "data: rounds")]
    first, second = ratings
    for known, new in (([], first), (first, second)):
        probability = len(new) / (200 - len(known))
        answers = [FrameAnswer(key, 1.0, value, ReviewState.RATED, 1.0, "certain") for key, value in enumerate(known)]
        answers += [
            FrameAnswer(len(known) + key, 1.0, value, ReviewState.RATED, probability) for key, value in enumerate(new)
        ]
        answers += [FrameAnswer(key, 1.0, probability=probability) for key in range(len(answers), 200)]
        frames.append(frame_of(answers))
    earlier = Component("rounds", frames[0], 0.0, 1.0, yes_no=True)
    composite = replace(earlier, frame=frames[1], earlier=(EarlierRound(frames[0]),))
    one_answers = [FrameAnswer(key, 1.0, value, ReviewState.RATED, 0.4) for key, value in enumerate(first + second)]
    one_answers += [FrameAnswer(key, 1.0, probability=0.4) for key in range(80, 200)]
    one_draw = replace(earlier, frame=frame_of(one_answers))
    result, at_gate = (estimate(corrected_component(composite, confidence=c)) for c in (0.95, gate_confidence(2)))
    deviations = [fitted_deviation(component) for component in (composite, one_draw)]
    return {
        "first": estimate(corrected_component(earlier)).value,
        "second": estimate(corrected_component(replace(composite, earlier=()))).value,
        "first_weight": result.rounds[0].weight,
        "corrected": result.value,
        "deviation": deviations[0],
        "one_draw": deviations[1],
        "low": result.low,
        "high": result.high,
        "gate_low": at_gate.low,
        "gate_high": at_gate.high,
    }


def fitted_deviation(component: Component) -> float:
    """Standard deviation for this run, without the allowance for unseen answers."""
    fit = fit_component(component)
    assert isinstance(fit, ComponentFit)
    return fit.influence.design_variance**0.5


def standing(text: str) -> dict[str, Value]:
    """40 answers with standing ratings, and a draw of the other 60 with the slope of earlier ratings; then the draw's
    ratings as those of a uniform draw of all 100 answers."""
    drawn = example_answers(text, "standing")
    kept = [FrameAnswer(100 + index, 1.0, float(index < 30), ReviewState.RATED, 1.0, STANDING) for index in range(40)]
    component = Component("standing", frame_of([*kept, *drawn]), 0.0, 1.0, yes_no=True, slope=0.6)
    result = estimate(corrected_component(component))
    fresh = [replace(answer, probability=0.2) for answer in drawn]
    unrated = [FrameAnswer(answer.key, 1.0, probability=0.2) for answer in kept]
    alone = estimate(corrected_component(Component("fresh", frame_of([*unrated, *fresh]), 0.0, 1.0, yes_no=True)))
    return {
        "score": result.value,
        "rest": (result.value - 0.4 * 0.75) / 0.6,
        "low": result.low,
        "high": result.high,
        "fresh_low": alone.low,
        "fresh_high": alone.high,
    }


def release(text: str) -> dict[str, Value]:
    """100 questions of which 40 changed, and the same with equal differences."""
    answers = example_answers(text, "release")
    equal = [replace(answer, rating=None if answer.rating is None else 0.0) for answer in answers]
    result, bound = (
        estimate(release_difference([PairedPart(Component("x", frame_of(rows), -1.0, 1.0, judged=True), 100)], 100))
        for rows in (answers, equal)
    )
    ends = {"value": result.value, "low": result.low, "high": result.high}
    return {**ends, "unseen": unseen_rate(20, 0.95), "bound": bound.high}


def skewed() -> dict[str, Value]:
    """400 answers with one judge value; of 25 rated, two differ."""
    answers = [FrameAnswer(key, 4.0, 2.0 if key < 2 else 4.0, ReviewState.RATED, 1 / 16) for key in range(25)]
    answers += [FrameAnswer(key, 4.0, probability=1 / 16) for key in range(25, 400)]
    result = estimate(corrected_component(Component("skewed", frame_of(answers), 0.0, 4.0)))
    # t with 24 degrees of freedom; s^2 = 2 x 23 / 25 x 2^2 / 24, of 25 among 400
    low = 3.84 - 2.063899 * (2 * 23 / 25 * 4 / 24 / 25 * 15 / 16) ** 0.5
    return {"corrected": result.value, "low": result.low, "high": result.high, "symmetrical_low": low}


def partly(text: str) -> dict[str, Value]:
    """Compute the first example with weight 0.75, combined with an unrated component of weight 0.25."""
    answers = example_answers(text, "regression")
    unrated = [FrameAnswer(answer.key, answer.judge) for answer in answers]
    rated_component = Component("rated", frame_of(answers), 0.0, 1.0, weight=0.75, yes_no=True)
    unrated_component = Component("unrated", frame_of(unrated), 0.0, 1.0, weight=0.25, judged=True)
    result = estimate(corrected_overall([rated_component, unrated_component]))
    exact = estimate(corrected_overall([rated_component, replace(unrated_component, judged=False)]))
    assumed = estimate(
        corrected_overall([replace(rated_component, judged=True), unrated_component], unrated_like_rated=True)
    )
    return {
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "as_if_exact_low": exact.low,
        "as_if_exact_high": exact.high,
        "assumed_bias": assumed.assumed,
        "assumed_low": assumed.low,
        "assumed_high": assumed.high,
    }


def plan(text: str) -> dict[str, Value]:
    rows = zip(("accepted", "rejected"), table(text, "data: plan"), strict=True)
    strata = [PlannedStratum(name, int(size), float(deviation)) for name, (_, size, deviation) in rows]
    result = labels_for_width(strata, 0.05, seconds_per_item=50)
    return {
        "labels": result.labels,
        **allocate(
            {stratum.name: stratum.size for stratum in strata},
            result.labels,
            2,
            {stratum.name: stratum.deviation for stratum in strata},
        ),
        "minutes": result.minutes,
        "difference": result.difference,
        "labels_for_difference": labels_for_difference(strata, 0.10).labels,
    }


def compared(text: str) -> dict[str, Value]:
    old_scores, new_scores = (dict(enumerate(map(float, line[1:]))) for line in table(text, "data: compared"))
    result = paired_difference(new_scores, old_scores, limit=1.0)
    assert result is not None
    assert result.low is not None
    assert result.high is not None
    settled = questions_to_decide(result.groups, (result.high - result.low) / 2, result.value)
    assert settled is not None
    figures = {name: getattr(result, name) for name in ("value", "low", "high", "p_value", "detectable")}
    return figures | {"settled_by_questions": settled.needed}


def varying(text: str) -> dict[str, Value]:
    ratings = [
        Observation(answer, reviewer, float(value))
        for reviewer, *values in table(text, "data: varying")
        for answer, value in enumerate(values)
    ]
    split = variance_split(ratings)
    option_shares = spending_advice(split).shares
    return {name: split.variances[VarianceSource(name)] for name in ("answers", "reviewers", "taste")} | {
        "questions": option_shares[SpendOption.QUESTIONS],
        "ratings": option_shares[SpendOption.RATINGS],
        "reviewers_share": option_shares[SpendOption.REVIEWERS],
    }


def calibration(text: str) -> Computed:
    """The paired test of acceptance for the four answers of the example."""
    columns = zip(*(map(float, line[1:4]) for line in table(text, "table: acceptance")), strict=True)
    labels, active, candidate = (list(column) for column in columns)
    distances = [squared_losses(values, labels, 16.0) for values in (active, candidate)]
    differences = distances[1] - distances[0]
    result = mean_difference(differences, np.ones(len(labels)), np.arange(len(labels)))
    lines = zip(labels, active, candidate, *distances, differences, strict=True)
    return {
        "acceptance": [row(number, *(f"{value:g}" for value in line)) for number, line in enumerate(lines, 1)],
        "mean_difference": float(result.mean),
        "variance": float(result.standard_error) ** 2,
        "standard_error": float(result.standard_error),
        "t": float(result.mean / result.standard_error),
        "p": float(result.p_below),
        "level": significance_level(1),
    }


def corpora(text: str) -> Computed:
    """Retrieval by depth in the demo, an example of splitting, and limits."""
    from bm25s import BM25

    files = read_documents((DEMO / "corpus.jsonl").read_bytes(), "corpus.jsonl")
    passages = {p.id: document.text[p.start : p.end] for document in files for p in document.passages or ()}
    index, ids = WordIndex(list(passages.values())), list(passages)
    questions = read_questions((DEMO / "questions.yaml").read_bytes(), "questions.yaml").questions
    rankings = []
    for question in questions:
        hits = rank_passages(Retriever.WORDS, DEPTHS[-1], words=index, vectors=None, text=question.text, vector=None)
        answer = AnswerSpec("", None, tuple(ids[hit.index] for hit in hits))
        rankings.append(ranking(question, answer, RuleSettings(k=DEPTHS[-1])))
    ranked = [result for result in rankings if isinstance(result, Ranking)]
    means = means_by_depth(ranked, DEPTHS[-1])
    example = text.split("```text\n")[1].split("```")[0].strip()
    chunks = split(example, Splitting(characters=100))
    limits = {
        f"{name}_{end}": next(getattr(rule, end) for rule in field.metadata if hasattr(rule, end))
        for name, field in Splitting.model_fields.items()
        for end in ("ge", "le")
        if name in {"characters", "overlap"}
    }
    return {
        "depths": [row(name, *(f"{means[name][k - 1]:.3f}" for k in DEPTHS)) for name in CURVES],
        "ranked": len(ranked),
        "questions": len(questions),
        "first": means["hit_at_k"][0],
        "within": means["hit_at_k"][-1],
        "of_five": means["recall_at_k"][DEPTHS[2] - 1],
        "missed": 1 - means["recall_at_k"][DEPTHS[2] - 1],
        "documents": len(files),
        "chunks": len(passages),
        "example_chunks": len(chunks),
        "example_spans": ", ".join(starmap("{}–{}".format, chunks)),
        "characters": Splitting().characters,
        "overlap": Splitting().overlap,
        **limits,
        "pdf_seconds": documents._PDF_SECONDS,
        "pdf_gigabytes": documents._PDF_MEMORY / 1e9,
        "pdf_pages": documents._PDF_PAGES,
        "id_length": ID_LENGTH,
        "k1": BM25().k1,
        "b": BM25().b,
        "fused": searching._FUSION_CONSTANT,
        "depth": searching._FUSION_DEPTH,
        "least_share": chunk_mapping.MIN_SHARE,
        "quoted": connector._QUOTED_SENTENCES,
        "bench_chunks": bench.CHUNKS,
        "bench_length": bench.LENGTH,
        "bench_k": bench.K,
    }


def generation(text: str) -> Computed:
    """Kinds of questions, bounds of filters, and the example of an acceptance rate."""
    assert sorted(name.strip("`") for name, _ in table(text, "data: filters")) == sorted(DraftQuestion.Filter.values)
    low, high = clopper_pearson(9 / 11, 11)
    return {
        "kinds": {kind.name: kind.passages for kind in KINDS.values()},
        "copied_characters": question_checks.MIN_COPIED_LENGTH,
        "alike": question_checks.SIMILARITY_THRESHOLD,
        "trivial_ratio": filters.TRIVIAL_RATIO,
        "others": runner.DISTRACTORS,
        "most_calls": recorded_calls.MAX_TRIES,
        "rate": 9 / 11,
        "rate_low": low,
        "rate_high": high,
    }


def retrieval_truth(text: str) -> Computed:
    """Bounds of the draw and of the estimates, and the example for questions like these."""
    n, missing_guess = 40, np.full(40, np.nan)
    pool = Pool(np.arange(n), np.ones((1, n), dtype=int), missing_guess, missing_guess, 1)
    sampled = np.arange(n) < 20
    passage_draw = draw.PassageDraw(guess=np.full(n, 0.5), probability=np.full(n, 0.5), sampled=sampled)
    ratings = np.where(sampled, (np.arange(n) < 12).astype(float), np.nan)
    result = estimates.estimate_for_similar_questions(pool, passage_draw, ratings, range(n))[
        RetrievalMetric.PRECISION, 0, None
    ]
    assert isinstance(result, tuple)
    assert result[1] is not None
    return {
        "least_labels": draw.MIN_LABELS,
        "least_on_a_side": draw.MIN_LABELS_PER_CLASS,
        "caution_low": draw.GUESS_LIMITS[0],
        "caution_high": draw.GUESS_LIMITS[1],
        "uniform_share": draw.UNIFORM_SHARE,
        "importance_of_recall": draw.METRIC_WEIGHTS[RetrievalMetric.RECALL],
        "unseen": estimates.UNSEEN_SHARE,
        "least_rated": estimates.MIN_RATED,
        "most_unanswered": estimates.MAX_UNJUDGEABLE_SHARE,
        "half_width": result[1].half_width(0.95),
        "t": result[1].half_width(0.95) / result[1].error,
    }


def operations(text: str) -> Computed:
    """A row of each test that is marked ``survives``, by file."""
    rows = []
    for path in sorted(path for folder in ("contrib", "tests") for path in (ROOT / folder).rglob("test_*.py")):
        link = f"[`{path.stem}`](../{path.relative_to(ROOT)})"
        rows += [row(mark.fault, mark.happens, mark.see, link) for mark in survives_marks(path)]
    return {"survives": rows}


class Survives(NamedTuple):
    """Arguments of the mark ``survives``."""

    fault: str
    happens: str
    see: str


def survives_marks(path: Path) -> list[Survives]:
    """The marks ``survives`` of a test file, whose arguments are literals."""
    source = path.read_text(encoding="utf-8")
    if "pytest.mark.survives(" not in source:
        return []
    tests = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    calls = [call for test in tests for call in test.decorator_list if isinstance(call, ast.Call)]
    return [
        Survives(
            *map(ast.literal_eval, call.args),
            **{str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords},
        )
        for call in calls
        if ast.unparse(call.func) == "pytest.mark.survives"
    ]


def settings(text: str) -> Computed:
    """Every setting with its type, default and meaning."""

    def format_default(default: object) -> str:
        value = ",".join(default) if isinstance(default, list) else str(default)
        return "" if default in ("", [], {}) else f"`{value}`"

    return {
        "settings": [
            row(f"`{name}`", kind.__name__, format_default(default), meaning)
            for name, (kind, default, meaning) in KNOWN.items()
        ]
    }


PAGES: dict[str, Callable[[str], Computed]] = {
    "agreement.md": agreement,
    "calibration.md": calibration,
    "corpora.md": corpora,
    "correction.md": correction,
    "generation.md": generation,
    "operations.md": operations,
    "retrieval-truth.md": retrieval_truth,
    "settings.md": settings,
}
