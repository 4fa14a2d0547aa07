"""The adapters of Ragas and DeepEval metrics, with stand-ins for both libraries, which are not installed here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.metric_packages.discovery import PackageSource
from evaluation.metric_packages.loading import load_package

FILE = Path(__file__).resolve().parents[1] / "examples/peer_metrics.py"
QUESTION = QuestionSpec(id="q1", category="single_hop", text="When?", references=("at five", "at nine"))


class NonLLMStringSimilarity:
    async def ascore(self, *, reference: str, response: str) -> Any:
        equal = sum(a == b for a, b in zip(reference, response, strict=False))
        return SimpleNamespace(value=equal / max(len(reference), len(response)))


class ExactMatchMetric:
    reason = ""

    def measure(self, case: Any, *, _show_indicator: bool) -> float:
        self.reason = f"compared with {case.expected_output}"
        return float(case.expected_output == case.actual_output)


def LLMTestCase(**fields: str) -> SimpleNamespace:
    return SimpleNamespace(**fields)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {
        "ragas": {},
        "ragas.metrics": {},
        "ragas.metrics.collections": {"NonLLMStringSimilarity": NonLLMStringSimilarity},
        "deepeval": {},
        "deepeval.metrics": {"ExactMatchMetric": ExactMatchMetric},
        "deepeval.test_case": {"LLMTestCase": LLMTestCase},
    }
    for name, attributes in content.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)


def compute(name: str, question: QuestionSpec, text: str) -> Result:
    package = load_package(PackageSource(str(FILE), FILE.name))
    return package.rule_metrics[name](question, AnswerSpec(text), RuleSettings())


@pytest.mark.usefixtures("peers")
def test_best_reference_counts() -> None:
    # "at nine" has 7 characters: all are equal to the second reference.
    assert compute("ragas_string_similarity", QUESTION, "at nine").value == 1.0
    # "at n" has 3 characters in common with "at five" and 4 with "at nine", of 7.
    assert compute("ragas_string_similarity", QUESTION, "at n").value == pytest.approx(4 / 7)
    result = compute("deepeval_token_f1", QUESTION, "at nine")
    assert (result.value, result.reason) == (1.0, "compared with at nine")


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize("name", ["ragas_string_similarity", "deepeval_token_f1"])
def test_question_without_expected_answer_is_not_applicable(name: str) -> None:
    assert compute(name, QUESTION.model_copy(update={"references": ()}), "at nine").reason == "no_reference"


def test_libraries_are_not_imported_with_the_package() -> None:
    assert not {"ragas", "deepeval"} & sys.modules.keys()
    assert len(load_package(PackageSource(str(FILE), FILE.name)).specs) == 2
    assert not {"ragas", "deepeval"} & sys.modules.keys()
