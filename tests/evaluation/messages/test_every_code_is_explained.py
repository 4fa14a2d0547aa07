"""Whatever code the product raises or stores as a literal has a sentence whose parameters it gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


def calls() -> Iterator[tuple[str, str, ast.Call, str]]:
    """Place, kind, call and literal code of each call with one."""
    for package in ("contrib", "evaluation", "review"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in SENTENCES:
                    for code in literals(node.args[0]):
                        yield f"{file.relative_to(ROOT)}:{node.lineno}", ast.unparse(node.func), node, code


def literals(argument: ast.expr) -> list[str]:
    """The codes a first argument may be: a literal, the literal head of a format string, both of a choice."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return [argument.value.partition(":")[0]]
    if isinstance(argument, ast.JoinedStr) and argument.values:
        return literals(argument.values[0])
    if isinstance(argument, ast.IfExp):
        return literals(argument.body) + literals(argument.orelse)
    return []


def test_every_literal_code_has_a_sentence() -> None:
    found = list(calls())
    assert len(found) > 50
    assert [f"{place} {kind}({code!r})" for place, kind, _, code in found if code not in SENTENCES[kind]] == []


def test_every_refusal_gives_the_parameters_of_its_sentence() -> None:
    lacking = []
    for place, kind, node, code in calls():
        given = {keyword.arg for keyword in node.keywords}
        if kind == "DomainError" and None not in given and code in REFUSALS:
            needed = set(_PARAMETER.findall(str(REFUSALS[code])))
            lacking += [f"{place} {code}: {sorted(needed - given)}"] if needed - given else []
    assert lacking == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [("f('a: b')", ["a"]), ("f(f'a: {b}')", ["a"]), ("f('a' if b else 'c')", ["a", "c"]), ("f(a)", [])],
)
def test_codes_are_found_in_every_form(source: str, expected: list[str]) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert literals(call.args[0]) == expected
