"""How often are equal systems called different, how often is a difference found, and what does a gate find that looks
after every commit?

    CONCORD_TEST_DATA=... python -m tools.simulations.comparisons [--draws 1000]

SummEval has sixteen answers to each of fifty questions, with what experts said of them on four metrics. Equal systems
are made by dealing out each question's answers at random: questions keep their difficulty, and metrics hang together.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from review.statistics.agreement.statistic import Array, Indices
from review.statistics.correction.outcome import Deviation, group_freedom, t_quantile
from review.statistics.paired_tests.family import difference_family
from review.statistics.paired_tests.gate import gate_confidence
from review.statistics.paired_tests.gatekeeping import Branch, BranchTests, gatekeep

METRICS = ("coherence", "consistency", "fluency", "relevance")
RUNS = (1, 2, 5)
RESAMPLES = 500
QUESTIONS = (50, 100)
LEAST_FOUND = 0.55
NOTHING = np.zeros(len(METRICS))
DIFFERENCES = {
    "one metric": np.array([0.4, 0.0, 0.0, 0.0]),
    "two metrics, a little": np.array([0.1, 0.1, 0.0, 0.0]),
    "two metrics, the opposite way": np.array([0.2, -0.2, 0.0, 0.0]),
}
LOOKS = (1, 10, 50)
DROPS = (0.05, 0.10)
GROUP = 4  # questions about one text


def answers(folder: Path) -> Array:
    """What experts said, as shares of the scale: question x answer x metric."""
    rows = [json.loads(line) for line in (folder / "summeval_human/items.jsonl").read_text("utf-8").splitlines()]
    by_question: dict[str, list[list[float]]] = {}
    for row in rows:
        values = [(float(np.mean(row["human"][name])) - 1.0) / 4.0 for name in METRICS]
        by_question.setdefault(row["doc_id"], []).append(values)
    return np.array(list(by_question.values()))


def deal(pool: Array, asked: Indices, times: int, random: np.random.Generator) -> Array:
    """``times`` equal systems over the questions ``asked``: system x question x metric."""
    return np.asarray(pool[asked, random.integers(0, pool.shape[1], (times, len(asked)))])


def deviation(difference: Array) -> Deviation | None:
    """As ``paired_difference`` has it where every question is its own group."""
    size, value = len(difference), float(difference.mean())
    share = (difference - value) / size
    variance = float(np.square(share).sum()) * size / (size - 1)
    sums = dict(enumerate(share.tolist()))
    return Deviation(value, variance**0.5, size - 1.0, sums) if variance > 1e-18 else None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The share of comparisons with any false verdict: where overall scores and metrics are each tested alone, all in
    one family, and overall scores first; and the share of runs whose overall score differs of which that is found by
    one family and by overall scores first."""

    alone: float
    one_family: float
    ordered: float
    found_by_family: float
    found: float


def verdicts(pool: Array, questions: int, shifts: Sequence[Array], draws: int) -> Verdicts:
    """Runs against a first one, each with the true difference of its metrics (``shifts``)."""
    random, false, found = np.random.default_rng(0), np.zeros(3), np.zeros(2)
    differing = [bool(shift.mean()) for shift in shifts]
    for seed in range(draws):
        values = deal(pool, random.integers(0, len(pool), questions), len(shifts) + 1, random)
        branches = [_branch(values[at + 1] - values[0] + shift) for at, shift in enumerate(shifts)]
        level = 0.05 / len(shifts)
        opened = [one if one.overall and one.overall.p_value <= level else Branch(one.overall, {}) for one in branches]
        tests = gatekeep(opened, resamples=RESAMPLES, seed=seed)[1]  # closed branches test no metric: none is resampled
        every = [one for branch in branches for one in (branch.overall, *branch.metrics.values()) if one]
        level = difference_family(every, resamples=RESAMPLES, seed=seed).level
        false += [
            _any_false(branches, shifts, 0.05),
            _any_false(branches, shifts, level),
            any(
                _false(branch, shift, *_called(test))
                for branch, shift, test in zip(branches, shifts, tests, strict=True)
            ),
        ]
        for branch, test, differs in zip(branches, tests, differing, strict=True):
            if differs and branch.overall and branch.overall.value > 0:
                found += [branch.overall.p_value <= level, (test.overall_p or 1.0) <= 0.05]
    runs = max(1, sum(differing))
    return Verdicts(*(false / draws).tolist(), *(found / draws / runs).tolist())


def _branch(apart: Array) -> Branch:
    """The difference of a run's mean over metrics, and of each metric."""
    metrics = {name: one for name, metric in zip(METRICS, apart.T, strict=True) if (one := deviation(metric))}
    return Branch(deviation(apart.mean(axis=1)), metrics)


def _called(test: BranchTests) -> tuple[bool, set[str]]:
    """Whether the overall score is called better or worse, and which metrics are."""
    return (test.overall_p or 1.0) <= 0.05, {name for name, p in test.metric_p.items() if p <= 0.05}


def _any_false(branches: Sequence[Branch], shifts: Sequence[Array], level: float) -> bool:
    """Whether any verdict is false where each difference is tested at one level."""
    return any(
        _false(
            branch,
            shift,
            branch.overall is not None and branch.overall.p_value <= level,
            {name for name, one in branch.metrics.items() if one.p_value <= level},
        )
        for branch, shift in zip(branches, shifts, strict=True)
    )


def _false(branch: Branch, shift: Array, overall: bool, metrics: Collection[str]) -> bool:
    """Whether something is called different that is equal, or the wrong way round."""
    wrong = overall and branch.overall is not None and branch.overall.value * shift.mean() <= 0
    return wrong or any(
        branch.metrics[name].value * true <= 0 for name, true in zip(METRICS, shift, strict=True) if name in metrics
    )


def gate_alarms(
    pool: Array, questions: int, looks: int, drop: float, draws: int, *, spent: bool
) -> tuple[float, float]:
    """``--max-drop 0`` against a baseline that stays, after every commit of a life of ``looks``: the share of lives
    with any failed gate, and of gates that fail at a look. ``drop`` is the true one, ``spent`` whether ``--looks`` is
    said. Questions come in groups of four about one text."""
    random, lives, single = np.random.default_rng(0), 0, 0
    groups = questions // GROUP
    member = np.repeat(np.arange(groups), GROUP)
    freedom = group_freedom(np.bincount(member))
    reach = t_quantile(0.5 + gate_confidence(looks if spent else 1) / 2.0, freedom)
    for _ in range(draws):
        asked = random.integers(0, len(pool), groups)[member]
        values = deal(pool, asked, looks + 1, random).mean(axis=2)
        apart = values[1:] - values[0] - drop
        mean = apart.mean(axis=1)
        sums = (apart - mean[:, None]).reshape(looks, groups, GROUP).sum(axis=2) / questions
        error = np.sqrt(np.square(sums).sum(axis=1) * groups / (groups - 1))
        failed = mean + reach * error < 0
        lives += bool(failed.any())
        single += int(failed.sum())
    return lives / draws, single / draws / looks


def verdict_table(pool: Array, draws: int) -> Iterator[str]:
    yield "| questions | runs against the first | each alone | one family | overall first |"
    yield "|---|---|---|---|---|"
    worst = 0.0
    for questions in QUESTIONS:
        for runs in RUNS:
            cell = verdicts(pool, questions, [NOTHING] * runs, draws)
            worst = max(worst, cell.ordered)
            shares = (cell.alone, cell.one_family, cell.ordered)
            yield f"| {questions} | {runs} | " + " | ".join(f"{100 * one:.1f}%" for one in shares) + " |"
    yield _goal(worst, draws)


def mixed_table(pool: Array, draws: int) -> Iterator[str]:
    """Some runs differ in one metric or in two that cancel out; all other metrics and runs are equal to the first."""
    yield "| questions | of five runs differ | in | each alone | one family | overall first |"
    yield "|---|---|---|---|---|---|"
    worst = 0.0
    for questions in (100,):
        for differing in (1, 3, 5):
            for name, shift in DIFFERENCES.items():
                cell = verdicts(pool, questions, [shift] * differing + [NOTHING] * (5 - differing), draws)
                worst = max(worst, cell.ordered)
                shares = " | ".join(f"{100 * one:.1f}%" for one in (cell.alone, cell.one_family, cell.ordered))
                yield f"| {questions} | {differing} | {name} | {shares} |"
    yield _goal(worst, draws)


def power_table(pool: Array, draws: int) -> Iterator[str]:
    """Every run is five points better than the first on every metric."""
    yield "| questions | runs against the first | found, one family | found, overall first |"
    yield "|---|---|---|---|"
    found = {}
    for questions in (100, 200):
        for runs in (1, 5):
            cell = verdicts(pool, questions, [np.full(len(METRICS), 0.05)] * runs, draws)
            found[questions, runs] = cell.found
            yield f"| {questions} | {runs} | {100 * cell.found_by_family:.0f}% | {100 * cell.found:.0f}% |"
    reached = "met" if found[100, 1] >= LEAST_FOUND else "missed"
    yield f"\nfive points over 100 questions: {100 * found[100, 1]:.1f}%; goal {100 * LEAST_FOUND:.0f}%: {reached}"


def _goal(worst: float, draws: int) -> str:
    """The goal is missed where the share of false verdicts is above 5% by more than the draws leave open (99%)."""
    reached = "met" if worst - 2.326 * (0.05 * 0.95 / draws) ** 0.5 <= 0.05 else "missed"
    return f"\nany false verdict, overall first: at most {100 * worst:.1f}%; goal 5%: {reached}"


def gate_table(pool: Array, draws: int) -> Iterator[str]:
    drops = " | ".join(f"finds {100 * drop:.0f} points" for drop in DROPS)
    yield f"| questions | looks | false alarm, every look at 95% | false alarm, `--looks` | {drops} |"
    yield "|---|---|---|---|---|---|"
    for questions in (100, 300):
        for looks in LOOKS:
            alarms = [gate_alarms(pool, questions, looks, 0.0, draws, spent=spent)[0] for spent in (False, True)]
            found = [gate_alarms(pool, questions, looks, drop, draws // 4, spent=True)[1] for drop in DROPS]
            yield f"| {questions} | {looks} | " + " | ".join(f"{100 * one:.1f}%" for one in (*alarms, *found)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    pool = answers(Path(folder))
    for title, table in (
        ("Any false verdict among equal systems", verdict_table),
        ("Any false verdict where some of five runs differ", mixed_table),
        ("Five points found", power_table),
        ("A gate after every commit", gate_table),
    ):
        print(f"\n{title}, {options.draws} draws\n")
        for line in table(pool, options.draws):
            print(line, flush=True)


if __name__ == "__main__":
    main()
