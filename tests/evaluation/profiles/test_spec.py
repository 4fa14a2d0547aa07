"""Validation of profile files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.canonical import content_hash
from evaluation.core.samples import CheckPhrases
from evaluation.profiles.spec import (
    BilingualText,
    ProfilePart,
    ProfileSpec,
    load_profile,
    rule_settings,
    shipped_profiles,
)

TITLE = "title: {en: T, ko: T}\n"


def test_the_graphrag_profile_has_the_weights_of_its_source() -> None:
    profile = next(p for p in shipped_profiles() if p.name == "graphrag")
    assert {p.metric: (p.weight, p.top) for p in profile.parts} == {
        "keyword_hit": (0.15, 1),
        "keyword_coverage": (0.10, 1),
        "negative_detection": (0.15, 1),
        "correctness": (0.25, 5),
        "faithfulness": (0.20, 5),
        "completeness": (0.15, 5),
    }
    assert (profile.unit, profile.normalise, profile.constant) == ("run_means", "by_max", 0)
    assert profile.metrics[-1] == "latency"
    assert profile.report_name("overall") == "overall_score"
    assert profile.report_name("negative_detection") == "negative_detection_rate"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 0.5}]", "sum to 0.5, not 1"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 0.9}]\nconstant: 0.2", "sum to 1.1, not 1"),
        ("name: p\n" + TITLE + "constant: 0.2", "constant without parts"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 1}]\nconstant: -0.1", "constant\n.*greater than or equal"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 1}]\nconstant: 1.1", "constant\n.*less than or equal"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 0.5}, {metric: a, weight: 0.5}]", "named twice: a"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: .nan}]", "weight"),
        (
            "name: p\n" + TITLE + "parts: [{metric: a, weight: 1}]\nwhole_score: {metric: b, categories: []}",
            "categories",
        ),
        ("name: p\n" + TITLE + "thresholds: {b: 0.5}", "does not have: b"),
        ("name: p\n" + TITLE + "requires: [a]", "per-answer"),
        ("name: p\nunit: per_answer\n" + TITLE + "requires: [a]", "requires names what .* does not have: a"),
        ("name: p\n" + TITLE + "parts: [{metric: a, weight: 1, otherwise: b}]", "per-answer"),
        ("name: p\nunit: per_answer\n" + TITLE + "parts: [{metric: a, weight: 1, otherwise: b}]", "needs min_max"),
        ("name: p\n" + TITLE + "metric_bands: {a: []}", "metric_bands names .* does not have: a"),
        ("name: p\n" + TITLE + "report_factors: {a: 100}", "report_factors names .* does not have: a"),
        ("name: p\n" + TITLE + "caps: [{metric: a, flag: avoidance, at_most: 0}]", "caps names .*: a"),
        ("name: p\n" + TITLE + "caps: [{metric: a, flag: rudeness, at_most: 0}]", "flag"),
        ("name: p\n" + TITLE + "automatic_failures: [{flag: avoidance, " + TITLE.strip() + "}]", "hallucination_flags"),
        ("name: p\n" + TITLE + "colour: red", "colour"),
        ("name: p\nname: q\n" + TITLE, "line 2: the key 'name' is there twice"),
        ("name: &a p\n" + TITLE + "source: *a", "line 3: aliases"),
        ("- a", "not a YAML mapping"),
        ("a: [", "not YAML"),
        ("", "not a YAML mapping"),
    ],
)
def test_invalid_profile_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("(", r"\(")):
        load_profile(text)


def test_weights_may_miss_1_by_a_rounding_error() -> None:
    # 0.1 + 0.2 + 0.7 is 0.9999999999999999 in binary
    parts = tuple(ProfilePart(metric=f"m{i}", weight=w) for i, w in enumerate((0.1, 0.2, 0.7)))
    assert ProfileSpec(name="p", title=BilingualText(en="T", ko="T"), parts=parts).parts == parts


def test_rule_settings_have_checks_of_the_profile_and_k_of_the_run() -> None:
    profile = load_profile("name: p\n" + TITLE + "k: 7\nmatching: substring\nchecks: {c: {any_of: [x]}}")
    settings = rule_settings(profile)
    assert (settings.k, settings.matching, settings.checks) == (7, "substring", {"c": CheckPhrases(any_of=("x",))})
    assert rule_settings(profile, k=3).k == 3


def test_content_omits_version_and_defaults() -> None:
    profile = load_profile("name: p\n" + TITLE)
    with_defaults = load_profile("name: p\nversion: 4\n" + TITLE + "on_failure: exclude")
    assert content_hash(profile.content()) == content_hash(with_defaults.content())
    assert profile.content() == {"name": "p", "title": {"en": "T", "ko": "T"}}
    assert ProfileSpec.model_validate(profile.content()) == profile


@given(st.text(max_size=80))
def test_any_text_is_a_profile_or_a_value_error(text: str) -> None:
    try:
        load_profile(text)
    except ValueError:
        return
    pytest.fail("a random text became a profile")
