"""The worked numbers of docs/agreement.md and docs/correction.md are what the product computes, in both languages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.core.registry import Scale
from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.agreement.pair import best_constant_guess, compare, reliability_curve
from review.statistics.agreement.variance import Observation, variance_split
from review.statistics.correction.corrected import corrected, corrected_overall
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, Warn
from review.statistics.paired_tests.gate import fail_under, settle_by_labels, settle_by_questions
from review.statistics.paired_tests.paired import paired_difference
from review.statistics.precision import PlannedStratum, Spend, labels_for_difference, labels_for_width, what_next
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

DOCS = Path(__file__).parents[2] / "docs"
LANGUAGES = {"en": 0, "ko": 1}
SETTLED = settle_by_labels(60, 400, 400, 0.04, 0.05, 0.035)
VALUES: dict[str, float | None] = {
    "exact_10": clopper_pearson(1.0, 10)[0],
    "exact_30": clopper_pearson(1.0, 30)[0],
    "bound_60": 1 - 0.05 ** (1 / 60),
    "ppi_lambda": 0.6 * 20 / 40,
    "settled_by_labels": SETTLED.needed if SETTLED else None,
}


def part(page: str, language: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").split("\n# 한국어\n")[LANGUAGES[language]]


def table(text: str, marker: str) -> list[list[str]]:
    """The cells of the table under a marker, without its heading."""
    block = text.split(f"<!-- {marker} -->\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


def figures(text: str, example: str) -> dict[str, str]:
    return {row[0].strip("`"): row[1] for row in table(text, f"figures: {example}")}


def check(printed: dict[str, str], computed: dict[str, float | None]) -> None:
    assert printed
    for name, shown in printed.items():
        value = computed[name]
        assert value is not None, name
        digits = len(shown.partition(".")[2])
        assert f"{value:.{digits}f}" == shown, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_levels(language: str) -> None:
    text = part("agreement.md", language)
    experts, judge = ([float(cell) for cell in row[1:]] for row in table(text, "data: levels"))

    check(figures(text, "levels"), compare(judge, experts, Scale.parse("1..5")).to_dict())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pictures_of_the_example_of_levels(language: str) -> None:
    text = part("agreement.md", language)
    experts, judge = ([float(cell) for cell in row[1:]] for row in table(text, "data: levels"))
    scale = Scale.parse("1..5")

    matrix = compare(judge, experts, scale).confusion
    assert [tuple(map(float, row[1:])) for row in table(text, "matrix: levels")] == list(matrix or ())
    shown = [tuple(map(float, row)) for row in table(text, "curve: levels")]
    curve = [(p.judge, p.expert, p.n) for p in reliability_curve(judge, experts, scale)]
    assert [row[::2] for row in shown] == [row[::2] for row in curve]
    assert [row[1] for row in shown] == pytest.approx([row[1] for row in curve], abs=0.0051)  # two decimals
    guess = best_constant_guess(experts, scale)
    assert guess is not None
    assert dict(re.findall(r"<!-- value: (guess\w*) -->([\d.]*\d)", text)) == {
        "guess": f"{guess.value:g}",
        "guess_exact": f"{guess.agreement.statistics['exact'].value:.3f}",
    }
    assert guess.agreement.statistics["cohen_kappa"].value == 0.0


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_yes_and_no(language: str) -> None:
    text = part("agreement.md", language)
    cells = [
        (float(expert), float(judge))
        for expert, row in enumerate(table(text, "data: yes_no"))
        for judge, count in enumerate(row[1:])
        for _ in range(int(count))
    ]

    check(figures(text, "yes_no"), compare([j for _, j in cells], [e for e, _ in cells], Scale.parse("bool")).to_dict())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("example", "by_score"), [("regression", False), ("stratified", True)])
def test_the_examples_of_correction(language: str, example: str, by_score: bool) -> None:
    text = part("correction.md", language)
    rows = [(judge, expert) for judge, expert, count in table(text, f"data: {example}") for _ in range(int(count))]
    rated = [expert.isdigit() for _, expert in rows]
    answers = [
        FrameAnswer(
            at,
            float(judge),
            float(expert) if expert.isdigit() else None,
            ReviewState.RATED if expert.isdigit() else ReviewState.NOT_SAMPLED,
            sum(rated) / len(rows),
            judge if by_score else "",
        )
        for at, (judge, expert) in enumerate(rows)
    ]
    found = corrected(Component(example, frame_of(answers), 0.0, 1.0, yes_no=True))
    assert isinstance(found, Estimate)

    labels = [answer.rating for answer in answers if answer.rating is not None]
    computed = found.to_dict() | {
        "corrected": found.value,
        "judge_only": sum(float(judge) for judge, _ in rows) / len(rows),
        "mean_of_labels": sum(labels) / len(labels),
    }
    check(figures(text, example), computed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_a_skewed_scale(language: str) -> None:
    answers = [FrameAnswer(at, 4.0, 2.0 if at < 2 else 4.0, ReviewState.RATED, 1 / 16) for at in range(25)]
    answers += [FrameAnswer(at, 4.0, probability=1 / 16) for at in range(25, 400)]
    found = corrected(Component("skewed", frame_of(answers), 0.0, 4.0))
    assert isinstance(found, Estimate)
    assert Warn.UNSEEN_ANSWERS in found.warnings

    computed = found.to_dict() | {
        "corrected": found.value,
        # t with 24 degrees of freedom; s^2 = 2 x 23 / 25 x 2^2 / 24, of 25 among 400
        "symmetrical_low": 3.84 - 2.063899 * (2 * 23 / 25 * 4 / 24 / 25 * 15 / 16) ** 0.5,
    }
    check(figures(part("correction.md", language), "skewed"), computed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_a_partly_corrected_score(language: str) -> None:
    text = part("correction.md", language)
    rows = [(judge, expert) for judge, expert, count in table(text, "data: regression") for _ in range(int(count))]
    answers = [
        FrameAnswer(at, float(judge), float(expert), ReviewState.RATED, 0.5)
        if expert.isdigit()
        else FrameAnswer(at, float(judge), probability=0.5)
        for at, (judge, expert) in enumerate(rows)
    ]
    unrated = [FrameAnswer(at, float(judge)) for at, (judge, _) in enumerate(rows)]
    rated_part = Component("rated", frame_of(answers), 0.0, 1.0, weight=0.75, yes_no=True)
    partly, exact = (
        corrected_overall([rated_part, Component("unrated", frame_of(unrated), 0.0, 1.0, weight=0.25, judged=judged)])
        for judged in (True, False)
    )
    assert isinstance(partly, Estimate)
    assert isinstance(exact, Estimate)
    second = Component("unrated", frame_of(unrated), 0.0, 1.0, weight=0.25, judged=True)
    assumed = corrected_overall([replace(rated_part, judged=True), second], unrated_like_rated=True)
    assert isinstance(assumed, Estimate)
    assert dict(partly.unrated) == {"unrated": 0.25}
    computed = {
        "value": partly.value,
        "low": partly.low,
        "high": partly.high,
        "below": exact.low - partly.low,
        "above": partly.high - exact.high,
        "as_if_exact_low": exact.low,
        "as_if_exact_high": exact.high,
        "assumed_bias": assumed.assumed,
        "assumed_low": assumed.low,
        "assumed_high": assumed.high,
    }
    check(figures(text, "partly"), computed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_a_plan(language: str) -> None:
    text = part("correction.md", language)
    names = ("accepted", "rejected")
    strata = [
        PlannedStratum(name, int(size), float(deviation))
        for name, (_, size, deviation) in zip(names, table(text, "data: plan"), strict=True)
    ]
    plan = labels_for_width(strata, 0.05, seconds_per_item=50)
    computed: dict[str, float | None] = {
        "labels": plan.labels,
        **plan.by_stratum,
        "half_width": plan.half_width,
        "minutes": plan.minutes,
        "difference": plan.difference,
        "labels_for_difference": labels_for_difference(strata, 0.10).labels,
    }
    check(figures(text, "plan"), computed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_a_comparison(language: str) -> None:
    text = part("correction.md", language)
    old, new = (dict(enumerate(map(float, row[1:]))) for row in table(text, "data: compared"))
    found = paired_difference(new, old, limit=1.0)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    settling = settle_by_questions(found.groups, (found.high - found.low) / 2, found.value)
    assert settling is not None
    check(figures(text, "compared"), found.to_dict() | {"settled_by_questions": settling.needed})
    verdicts = re.findall(r"<!-- verdict: ([\d.]+) -->([a-z_]+)", text)
    assert len(verdicts) == 3
    assert [verdict for _, verdict in verdicts] == [str(fail_under(0.68, 0.76, float(limit))) for limit, _ in verdicts]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_of_what_varies(language: str) -> None:
    text = part("correction.md", language)
    rows = [list(map(float, row)) for row in table(text, "data: varying")]
    split = variance_split([Observation(row[0], f"r{at}", value) for row in rows for at, value in enumerate(row[1:])])
    shares = what_next(split).shares
    computed: dict[str, float | None] = {str(source): value for source, value in split.variances.items()}
    computed |= {"questions": shares[Spend.QUESTIONS], "ratings": shares[Spend.RATINGS]}
    computed["reviewers_share"] = shares[Spend.REVIEWERS]
    check(figures(text, "varying"), computed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_within_the_text(language: str) -> None:
    text = part("agreement.md", language) + part("correction.md", language)
    shown = dict(re.findall(r"<!-- value: (?!guess)(\w+) -->([\d.]*\d)", text))

    check(shown, VALUES)
    assert set(shown) == set(VALUES)
