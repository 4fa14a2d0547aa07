"""Particles of the closed list agree with the syllable before them."""

from __future__ import annotations

import pytest

from evaluation.metrics.normalise import Morpheme, is_particle_chain, without_particle


@pytest.mark.parametrize(
    ("before", "run"),
    [
        ("정", "은"),
        ("정", "으로부터"),
        ("자", "는"),
        ("생", "들에게는"),
        ("F", "입니다"),
        ("0", "은"),
        ("일", "로"),
        ("정", "에서만"),
    ],
)
def test_particles_are_recognised(before: str, run: str) -> None:
    assert is_particle_chain(before, run)


@pytest.mark.parametrize(
    ("tag", "noun"), [("NNG", True), ("SL", True), ("SN", True), ("XR", True), ("VV", False), ("SP", False)]
)
def test_foreign_words_numbers_and_roots_count_as_nouns(tag: str, noun: bool) -> None:
    assert Morpheme("etf", tag, 0, 3).is_noun == noun


@pytest.mark.parametrize(
    ("before", "run"), [("정", "는"), ("자", "은"), ("일", "으로"), ("정", "안"), ("리", "수거함"), ("정", "")]
)
def test_disagreeing_particles_and_other_words_are_not_recognised(before: str, run: str) -> None:
    assert is_particle_chain(before, run) is (run == "")


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("규정을", "규정"),
        ("투자자는", "투자자"),
        ("학교에서", "학교"),
        ("사과을", "사과을"),  # 을 stands behind a consonant only
        ("만족도", "만족도"),
        ("전문가", "전문가"),
        ("고양이", "고양이"),
        ("마을", "마을"),
    ],
)
def test_only_unambiguous_particles_are_removed_from_a_keyword(word: str, stem: str) -> None:
    assert without_particle(word) == stem
