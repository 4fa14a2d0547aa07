"""Every literal code that the product raises or stores has a message with matching parameters."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from evaluation.messages import problems, reasons, system_settings
from evaluation.messages.explanations import REFUSALS

ROOT = Path(__file__).resolve().parents[3]
SENTENCES = {
    "DomainError": REFUSALS,
    "Problem": problems.PROBLEM_MESSAGES,
    "wrong": problems.CRITERIA,
    "AskFailed": reasons.REASON_MESSAGES,
    # The reason why a flag refuses a value is printed as it is: commands speak English.
    "PydanticCustomError": system_settings.PROBLEMS | {"option": "%(reason)s"},
    "Result.failed": reasons.REASON_MESSAGES,
    "Result.not_applicable": reasons.REASON_MESSAGES,
}
_PARAMETER = re.compile(r"%\((\w+)\)s")


@cache
def coded_calls() -> list[tuple[str, str, ast.Call, str]]:
    """Place, kind, call and literal code of each call."""
    calls = []
    for package in ("contrib", "evaluation", "review"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in SENTENCES:
                    for code in literal_codes(node.args[0]):
                        place = f"{file.relative_to(ROOT)}:{node.lineno}"
                        calls.append((place, ast.unparse(node.func), node, code))
    return calls


def literal_codes(argument: ast.expr) -> list[str]:
    """The codes that a first argument can have: a literal, the head of an f-string, or both branches of a
    conditional."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return [argument.value.partition(":")[0]]
    if isinstance(argument, ast.JoinedStr) and argument.values:
        return literal_codes(argument.values[0])
    if isinstance(argument, ast.IfExp):
        return literal_codes(argument.body) + literal_codes(argument.orelse)
    return []


def test_every_literal_code_has_a_message() -> None:
    found_calls = coded_calls()
    assert len(found_calls) > 50
    assert [f"{place} {kind}({code!r})" for place, kind, _, code in found_calls if code not in SENTENCES[kind]] == []


def test_every_refusal_passes_the_parameters_of_its_message() -> None:
    problems = []
    for place, kind, node, code in coded_calls():
        passed = {keyword.arg for keyword in node.keywords}
        if kind == "DomainError" and None not in passed and code in REFUSALS:
            needed = set(_PARAMETER.findall(str(REFUSALS[code])))
            problems += [f"{place} {code}: {sorted(needed - passed)}"] if needed - passed else []
    assert problems == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [("f('a: b')", ["a"]), ("f(f'a: {b}')", ["a"]), ("f('a' if b else 'c')", ["a", "c"]), ("f(a)", [])],
)
def test_codes_are_extracted_from_every_expression_form(source: str, expected: list[str]) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert literal_codes(call.args[0]) == expected
