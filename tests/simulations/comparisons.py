"""How often are equal systems called different, and what does a gate find that looks after every commit?

    CONCORD_TEST_DATA=... python -m tests.simulations.comparisons [--draws 1000]

SummEval has sixteen answers to each of fifty questions, with what experts said of them on four metrics. Equal systems
are made by dealing out each question's answers at random: questions keep their difficulty, and metrics hang together.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from review.statistics.agreement.statistic import Array, Indices
from review.statistics.correction.outcome import Deviation, group_freedom, t_quantile
from review.statistics.paired_tests.family import family_of
from review.statistics.paired_tests.gate import confidence_of

METRICS = ("coherence", "consistency", "fluency", "relevance")
RUNS = (1, 2, 5, 11)
QUESTIONS = (50, 100)
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


def false_verdicts(pool: Array, questions: int, runs: int, draws: int) -> tuple[float, float, float, float]:
    """The share of comparisons with any false "better" or "worse": of overall scores each alone, of scores and metrics
    each alone, of overall scores in the family, of all in the family."""
    random, hits = np.random.default_rng(0), np.zeros(4)
    for seed in range(draws):
        values = deal(pool, random.integers(0, len(pool), questions), runs + 1, random)
        apart = values[1:] - values[0]
        overall = [one for run in apart if (one := deviation(run.mean(axis=1)))]
        metrics = [one for run in apart for metric in run.T if (one := deviation(metric))]
        level = family_of([*overall, *metrics], resamples=2000, seed=seed).level
        least, of_any = (min(one.p_value for one in group) for group in (overall, [*overall, *metrics]))
        hits += [least <= 0.05, of_any <= 0.05, least <= level, of_any <= level]
    alone, of_all, held, held_all = (hits / draws).tolist()
    return alone, of_all, held, held_all


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
    reach = t_quantile(0.5 + confidence_of(looks if spent else 1) / 2.0, freedom)
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
    yield "| questions | runs against the first | scores alone | and metrics alone | scores, family | all, family |"
    yield "|---|---|---|---|---|---|"
    for questions in QUESTIONS:
        for runs in RUNS:
            found = false_verdicts(pool, questions, runs, draws)
            yield f"| {questions} | {runs} | " + " | ".join(f"{100 * one:.1f}%" for one in found) + " |"


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
        ("A gate after every commit", gate_table),
    ):
        print(f"\n{title}, {options.draws} draws\n")
        for line in table(pool, options.draws):
            print(line, flush=True)


if __name__ == "__main__":
    main()
