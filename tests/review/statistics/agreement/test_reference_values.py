"""Public data sets give the reference values: openqa_nq301, llmjudge_dl23, summeval_human and klue_sts_ko."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating

SIX_DIGITS = 1.01e-6
LOOSELY = 0.025  # intervals depend on the random stream
OUR_NAMES = {
    "kappa_unweighted": "cohen_kappa",
    "kappa_linear": "cohen_kappa_linear",
    "kappa_quadratic": "cohen_kappa_quadratic",
    "within_1": "within_one",
    "alpha_ordinal": "krippendorff_alpha_ordinal",
}
YES_NO, RELEVANCE = Scale.parse("bool"), Scale.parse("0..3")


@pytest.fixture(scope="module")
def reference(sample_data: Path) -> dict[str, Any]:
    return json.loads((sample_data / "reference_values.json").read_text())


def read_jsonl(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def assert_values(agreement: dict[str, Any], expected: dict[str, Any], interval: str = "") -> None:
    for name, figure in expected.items():
        our_name = OUR_NAMES.get(name, name)
        assert agreement[our_name] == pytest.approx(figure["value"], abs=SIX_DIGITS), name
        if interval and figure[interval][0] < figure[interval][1]:
            assert agreement["intervals"][our_name] == pytest.approx(figure[interval], abs=LOOSELY), name


@pytest.mark.parametrize("judge", ["gpt-4", "text-davinci-003", "bem"])
def test_openqa_judges_match_reference(sample_data: Path, reference: dict[str, Any], judge: str) -> None:
    items, expected = read_jsonl(sample_data, "openqa_nq301/items.jsonl"), reference["openqa_nq301"]["judges"][judge]
    agreement = compare(
        [item["judges"][judge]["verdict"] for item in items],
        [item["human"]["acceptable"] for item in items],
        YES_NO,
        resampling=Resampling(groups=[item["question_id"] for item in items]),
    ).to_dict()

    assert agreement["n"] == expected["n"]
    assert agreement["excluded"].get("no_judge_value", 0) == expected["unparsed"]
    assert agreement["confusion"] == expected["confusion"]["matrix"]
    assert_values(agreement, expected["metrics"], "ci_cluster")
    for level, alpha in expected["krippendorff_judge_vs_human_rounded"].items():
        assert_values(agreement, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    for name in ("precision", "recall", "f1", "balanced_accuracy"):
        assert agreement[name] == pytest.approx(expected["binary"][name], abs=SIX_DIGITS)


def test_openqa_gpt4_headline_values(sample_data: Path) -> None:
    items = read_jsonl(sample_data, "openqa_nq301/items.jsonl")
    agreement = compare(
        [item["judges"]["gpt-4"]["verdict"] for item in items], [item["human"]["acceptable"] for item in items], YES_NO
    )

    assert agreement.n == 730
    assert agreement.statistics["cohen_kappa"].value == pytest.approx(0.694113, abs=SIX_DIGITS)
    assert agreement.statistics["exact"].value == pytest.approx(0.847945, abs=SIX_DIGITS)


def test_openqa_annotators_with_gaps_match_reference(sample_data: Path, reference: dict[str, Any]) -> None:
    items, expected = read_jsonl(sample_data, "openqa_nq301/items.jsonl"), reference["openqa_nq301"]["inter_annotator"]
    ratings = [
        Rating(item["item_id"], f"a{i + 1}", value)
        for item in items
        for i, value in enumerate(item["human"]["annotators"])
        if value is not None
    ]
    agreement = compare_experts(ratings, YES_NO).to_dict()

    assert agreement["krippendorff_alpha_nominal"] == pytest.approx(
        expected["krippendorff_alpha"]["value"], abs=SIX_DIGITS
    )
    pair, expected_pair = agreement["pairs"]["a1-a2"], expected["annotator1_vs_2"]
    assert pair["n"] == expected_pair["n"]
    assert pair["exact"] == pytest.approx(expected_pair["exact"], abs=SIX_DIGITS)
    assert pair["cohen_kappa"] == pytest.approx(expected_pair["kappa"], abs=SIX_DIGITS)


def test_llmjudge_33_judges_with_off_scale_scores_match_reference(sample_data: Path, reference: dict[str, Any]) -> None:
    items = read_jsonl(sample_data, "llmjudge_dl23/judgements.jsonl")
    expected = reference["llmjudge_dl23"]["kappa_alpha_all_judges"]
    expert = [item["human"] for item in items]

    assert len(expected) == 33
    for judge, figures in expected.items():
        agreement = compare([item["judges"][judge] for item in items], expert, RELEVANCE).to_dict()
        assert agreement["excluded"].get("judge_off_scale", 0) == figures["out_of_range"], judge
        for name in ("kappa_unweighted", "kappa_quadratic", "alpha_ordinal", "mae", "bias"):
            assert agreement[OUR_NAMES.get(name, name)] == pytest.approx(figures[name], abs=SIX_DIGITS), (judge, name)


def test_llmjudge_single_judge_matches_reference_in_full(sample_data: Path, reference: dict[str, Any]) -> None:
    items = read_jsonl(sample_data, "llmjudge_dl23/judgements.jsonl")
    for judge, expected in reference["llmjudge_dl23"]["judges"].items():
        agreement = compare(
            [item["judges"][judge] for item in items],
            [item["human"] for item in items],
            RELEVANCE,
            resampling=Resampling(),
        ).to_dict()
        assert agreement["confusion"] == expected["confusion"]["matrix"]
        assert_values(agreement, expected["metrics"], "ci_iid")


@pytest.mark.parametrize("dimension", ["coherence", "consistency", "fluency", "relevance"])
def test_summeval_experts_match_reference(sample_data: Path, reference: dict[str, Any], dimension: str) -> None:
    items = read_jsonl(sample_data, "summeval_human/items.jsonl")
    expected = reference["summeval"]["inter_annotator"][dimension]
    ratings = [
        Rating(i, f"e{rater}", value)
        for i, item in enumerate(items)
        for rater, value in enumerate(item["human"][dimension])
    ]
    groups = {i: item["doc_id"] for i, item in enumerate(items)}
    agreement = compare_experts(ratings, Scale.parse("1..5"), groups=groups, resampling=Resampling(1000)).to_dict()

    for level, alpha in expected["krippendorff_alpha"].items():
        assert_values(agreement, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    assert agreement["fleiss_kappa"] == pytest.approx(expected["irrCAC"]["fleiss_kappa"], abs=SIX_DIGITS)
    assert agreement["gwet_ac1"] == pytest.approx(expected["irrCAC"]["gwet_ac1"], abs=SIX_DIGITS)
    assert agreement["gwet_ac2"] == pytest.approx(expected["irrCAC"]["gwet_ac2_quadratic"], abs=SIX_DIGITS)
    for pair, figures in expected["pairwise"].items():
        for name, value in figures.items():
            our_name = {"unweighted": "cohen_kappa", "within_1": "within_one"}.get(name, name)
            our_name = f"cohen_kappa_{name}" if name in {"linear", "quadratic"} else our_name
            assert agreement["pairs"][pair][our_name] == pytest.approx(value, abs=SIX_DIGITS), (pair, name)


@pytest.mark.slow
def test_klue_annotators_in_changing_groups_match_reference(sample_data: Path, reference: dict[str, Any]) -> None:
    items, expected = read_jsonl(sample_data, "klue_sts_ko/items.jsonl"), reference["klue_sts_ko"]
    ratings = [
        Rating(item["guid"], rater, value)
        for item in items
        for rater, value in zip(item["annotators"], item["annotations"], strict=True)
    ]
    agreement = compare_experts(ratings, Scale.parse("0..5"), resampling=Resampling(1000)).to_dict()

    assert (agreement["ratings"], len(agreement["raters"])) == (expected["ratings"], expected["annotators"])
    for level, alpha in expected["krippendorff_alpha"].items():
        assert_values(agreement, {f"krippendorff_alpha_{level}": alpha}, "ci_iid")
