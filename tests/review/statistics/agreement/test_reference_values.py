"""Published data sets give the reference figures: openqa_nq301, llmjudge_dl23, summeval_human, klue_sts_ko."""

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


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def check(found: dict[str, Any], wanted: dict[str, Any], interval: str = "") -> None:
    for name, figure in wanted.items():
        ours = OUR_NAMES.get(name, name)
        assert found[ours] == pytest.approx(figure["value"], abs=SIX_DIGITS), name
        if interval and figure[interval][0] < figure[interval][1]:
            assert found["intervals"][ours] == pytest.approx(figure[interval], abs=LOOSELY), name


@pytest.mark.parametrize("judge", ["gpt-4", "text-davinci-003", "bem"])
def test_openqa_judges(sample_data: Path, reference: dict[str, Any], judge: str) -> None:
    items, wanted = rows(sample_data, "openqa_nq301/items.jsonl"), reference["openqa_nq301"]["judges"][judge]
    found = compare(
        [item["judges"][judge]["verdict"] for item in items],
        [item["human"]["acceptable"] for item in items],
        YES_NO,
        resampling=Resampling(groups=[item["question_id"] for item in items]),
    ).to_dict()

    assert found["n"] == wanted["n"]
    assert found["excluded"].get("no_judge_value", 0) == wanted["unparsed"]
    assert found["confusion"] == wanted["confusion"]["matrix"]
    check(found, wanted["metrics"], "ci_cluster")
    for level, alpha in wanted["krippendorff_judge_vs_human_rounded"].items():
        check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    for name in ("precision", "recall", "f1", "balanced_accuracy"):
        assert found[name] == pytest.approx(wanted["binary"][name], abs=SIX_DIGITS)


def test_openqa_gpt4_headline(sample_data: Path) -> None:
    items = rows(sample_data, "openqa_nq301/items.jsonl")
    found = compare(
        [item["judges"]["gpt-4"]["verdict"] for item in items], [item["human"]["acceptable"] for item in items], YES_NO
    )

    assert found.n == 730
    assert found.statistics["cohen_kappa"].value == pytest.approx(0.694113, abs=SIX_DIGITS)
    assert found.statistics["exact"].value == pytest.approx(0.847945, abs=SIX_DIGITS)


def test_openqa_annotators_with_gaps(sample_data: Path, reference: dict[str, Any]) -> None:
    items, wanted = rows(sample_data, "openqa_nq301/items.jsonl"), reference["openqa_nq301"]["inter_annotator"]
    given = [
        Rating(item["item_id"], f"a{at + 1}", value)
        for item in items
        for at, value in enumerate(item["human"]["annotators"])
        if value is not None
    ]
    found = compare_experts(given, YES_NO).to_dict()

    assert found["krippendorff_alpha_nominal"] == pytest.approx(wanted["krippendorff_alpha"]["value"], abs=SIX_DIGITS)
    pair, wanted_pair = found["pairs"]["a1-a2"], wanted["annotator1_vs_2"]
    assert pair["n"] == wanted_pair["n"]
    assert pair["exact"] == pytest.approx(wanted_pair["exact"], abs=SIX_DIGITS)
    assert pair["cohen_kappa"] == pytest.approx(wanted_pair["kappa"], abs=SIX_DIGITS)


def test_llmjudge_33_judges_and_scores_off_the_scale(sample_data: Path, reference: dict[str, Any]) -> None:
    items = rows(sample_data, "llmjudge_dl23/judgements.jsonl")
    wanted = reference["llmjudge_dl23"]["kappa_alpha_all_judges"]
    expert = [item["human"] for item in items]

    assert len(wanted) == 33
    for judge, figures in wanted.items():
        found = compare([item["judges"][judge] for item in items], expert, RELEVANCE).to_dict()
        assert found["excluded"].get("judge_off_scale", 0) == figures["out_of_range"], judge
        for name in ("kappa_unweighted", "kappa_quadratic", "alpha_ordinal", "mae", "bias"):
            assert found[OUR_NAMES.get(name, name)] == pytest.approx(figures[name], abs=SIX_DIGITS), (judge, name)


def test_llmjudge_one_judge_in_full(sample_data: Path, reference: dict[str, Any]) -> None:
    items = rows(sample_data, "llmjudge_dl23/judgements.jsonl")
    for judge, wanted in reference["llmjudge_dl23"]["judges"].items():
        found = compare(
            [item["judges"][judge] for item in items],
            [item["human"] for item in items],
            RELEVANCE,
            resampling=Resampling(),
        ).to_dict()
        assert found["confusion"] == wanted["confusion"]["matrix"]
        check(found, wanted["metrics"], "ci_iid")


@pytest.mark.parametrize("dimension", ["coherence", "consistency", "fluency", "relevance"])
def test_summeval_experts(sample_data: Path, reference: dict[str, Any], dimension: str) -> None:
    items = rows(sample_data, "summeval_human/items.jsonl")
    wanted = reference["summeval"]["inter_annotator"][dimension]
    given = [
        Rating(at, f"e{rater}", value)
        for at, item in enumerate(items)
        for rater, value in enumerate(item["human"][dimension])
    ]
    groups = {at: item["doc_id"] for at, item in enumerate(items)}
    found = compare_experts(given, Scale.parse("1..5"), groups=groups, resampling=Resampling(1000)).to_dict()

    for level, alpha in wanted["krippendorff_alpha"].items():
        check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    assert found["fleiss_kappa"] == pytest.approx(wanted["irrCAC"]["fleiss_kappa"], abs=SIX_DIGITS)
    assert found["gwet_ac1"] == pytest.approx(wanted["irrCAC"]["gwet_ac1"], abs=SIX_DIGITS)
    assert found["gwet_ac2"] == pytest.approx(wanted["irrCAC"]["gwet_ac2_quadratic"], abs=SIX_DIGITS)
    for pair, figures in wanted["pairwise"].items():
        for name, value in figures.items():
            ours = {"unweighted": "cohen_kappa", "within_1": "within_one"}.get(name, name)
            ours = f"cohen_kappa_{name}" if name in {"linear", "quadratic"} else ours
            assert found["pairs"][pair][ours] == pytest.approx(value, abs=SIX_DIGITS), (pair, name)


@pytest.mark.slow
def test_klue_annotators_in_changing_groups(sample_data: Path, reference: dict[str, Any]) -> None:
    items, wanted = rows(sample_data, "klue_sts_ko/items.jsonl"), reference["klue_sts_ko"]
    given = [
        Rating(item["guid"], rater, value)
        for item in items
        for rater, value in zip(item["annotators"], item["annotations"], strict=True)
    ]
    found = compare_experts(given, Scale.parse("0..5"), resampling=Resampling(1000)).to_dict()

    assert (found["ratings"], len(found["raters"])) == (wanted["ratings"], wanted["annotators"])
    for level, alpha in wanted["krippendorff_alpha"].items():
        check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_iid")
