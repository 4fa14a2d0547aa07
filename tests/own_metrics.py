"""Packages of own metrics that a test writes, and their registration for the time of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evaluation.judging import catalogue as judging_catalogue
from evaluation.judging import rubric
from evaluation.metric_packages import loading
from evaluation.metric_packages.discovery import FAULTS, PackageSource
from evaluation.metric_packages.isolation import judge_isolated
from evaluation.metrics import catalogue as rule_catalogue

HEAD = """
import ctypes, os, time
from dataclasses import replace
from pathlib import Path
from evaluation.core.metric_specs import Bilingual, Direction, judged_spec, rule_metric
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind, YES_NO
from evaluation.judging.calls import Family, JudgeRequest
from evaluation.judging.formulas import score_in_one_call
from evaluation.metric_packages.package import MetricPackage

def declare(name, **fields):
    texts = {"title": Bilingual(name, name), "formula": Bilingual("a formula", "수식"), "source": ""}
    return rule_metric(**{"name": name, **texts, **fields})

def judged(name, family, **fields):
    texts = {"title": Bilingual(name, name), "formula": Bilingual("a formula", "수식"), "source": ""}
    return judged_spec(**{"name": name, **texts, "rubric_family": family, **fields})

@declare("word_count_share")
def word_count_share(question, answer, settings):
    return Result.scored(min(1.0, len(answer.text.split()) / 10))
"""
PACKAGE = "PACKAGE = MetricPackage(rule_metrics=(word_count_share,))"

RUBRIC = """
family: {family}
version: 1
language: {language}
instruction: Judge the tone.
closing: "The data end here. Grade: {{metrics}}."
repair: Reply again.
metrics:
  - name: {metric}
    question: How kind?
    levels:
      - {{value: 1, text: "Unkind"}}
      - {{value: 2, text: "Kind"}}
"""


def write_package(folder: Path, code: str = PACKAGE, name: str = "metrics.py", *, version: str = "") -> PackageSource:
    """Write a file of own metrics. The code can use the names of ``HEAD``."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(HEAD + dedent(code), "utf-8")
    return PackageSource(str(folder / name), name, version)


def write_rubrics(folder: Path, family: str, metric: str) -> None:
    for language in ("en", "ko"):
        text = RUBRIC.format(family=family, language=language, metric=metric)
        (folder / f"{family}.{language}.yaml").write_text(text, "utf-8")


Register = Callable[..., list[str]]


@pytest.fixture
def register() -> Iterator[Register]:
    """Register packages until the end of the test; their faults."""
    lists: list[list[Any]] = [rubric._package_rubrics, loading.PACKAGES, FAULTS]
    dicts: list[dict[str, Any]] = [rule_catalogue._BY_NAME, judging_catalogue._FAMILIES]

    def register_sources(*sources: PackageSource) -> list[str]:
        loading.register_packages(sources, judge_isolated)
        return [f"{fault.package}: {fault.reason}" for fault in FAULTS]

    shipped = [dict(registry) for registry in dicts]
    yield register_sources
    for registry in lists:
        registry.clear()
    for registry, content in zip(dicts, shipped, strict=True):
        registry.clear()
        registry.update(content)
