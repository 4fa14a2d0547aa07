"""Files that ``compare`` writes: Markdown, JUnit XML and JSON, with gate verdicts."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluation.models import Run
from tests.factories import make_answer_set
from tests.review.builders import answers_to, run_over
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> tuple[Run, Run]:
    """The second is 1 level lower on every other of 40 questions: overall .05 x -.5 = -.025 with a deviation of
    .025 x sqrt(40/39), so that the half-width is 2.022691 x .025 / sqrt(39) = .0081: -.0331 to -.0169."""
    first = fill(run_over(answers_to(["a"] * 40)), [5, 3] * 20)
    judge = first.judges.get().judge_version
    system = "<b>new</b> | [x](http://y) @z"
    return first, fill(
        run_over(make_answer_set(first.answer_set.question_set, system=system, texts=["Another answer."]), judge=judge),
        [5, 2] * 20,
    )


def compare_to_file(pair: tuple[Run, ...], path: Path, *arguments: str) -> tuple[str, int]:
    """Run ``compare`` and return the file's text and the exit code."""
    code = 0
    try:
        runs = [str(run.pk) for run in pair]
        call_command("compare", *runs, "--output", str(path), *arguments, stdout=StringIO(), stderr=StringIO())
    except SystemExit as ending:
        code = int(ending.code or 0)
    return path.read_text(encoding="utf-8"), code


def parse_suites(text: str) -> dict[str, Element]:
    return {str(suite.get("name")): suite for suite in fromstring(text)}


@pytest.mark.parametrize(
    ("drop", "allowed", "tag", "sign", "verdict", "code"),
    [
        ("0.04", False, None, "✅", "passed", 0),
        ("0.01", False, "failure", "❌", "failed", 100),
        ("0.02", True, "skipped", "⚠️", "undecided, allowed", 0),
        ("0.02", False, "failure", "⚠️", "undecided, not passed", 100),
    ],
)
def test_files_report_the_gate_verdict_of_the_exit_code(
    pair: tuple[Run, Run], tmp_path: Path, drop: str, allowed: bool, tag: str | None, sign: str, verdict: str, code: int
) -> None:
    options = ["--max-drop", drop, *(["--allow-undecided"] if allowed else [])]
    text, exit_code = compare_to_file(pair, tmp_path / "c.md", *options)
    assert exit_code == code
    assert text.startswith(f"**{sign} run {pair[1].pk}, gate on the judge-only score: {verdict}**")
    assert "-0.025 (-0.033 to -0.017)" in text
    text, exit_code = compare_to_file(pair, tmp_path / "c.xml", *options)
    assert exit_code == code
    suites_by_name = parse_suites(text)
    assert list(suites_by_name) == [f"run-{pair[0].pk}", f"gate-{pair[1].pk}"]
    gate = suites_by_name[f"gate-{pair[1].pk}"]
    complete, drop_case = gate.findall("testcase")
    assert len(complete) == 0
    assert drop_case.get("name") == f"drop of at most {drop}0 against the baseline"
    assert [child.tag for child in drop_case] == ([tag] if tag else [])
    assert (gate.get("failures") == "1") is (code == 100)
    message = str(gate.findtext("system-out"))
    assert message.startswith(f"run {pair[1].pk}, gate on the judge-only score: {verdict}\n")
    assert f"Run {pair[1].pk} is worse by 0.017 to 0.033 on questions like these." in message


def test_markdown_has_scores_and_differences_and_escapes_markup(pair: tuple[Run, Run], tmp_path: Path) -> None:
    text, code = compare_to_file(pair, tmp_path / "c.md")
    assert code == 0
    assert text.startswith("### Comparison\n")
    assert f"| {pair[0].pk} |" in text
    # .75 + .05 x 4 and .75 + .05 x 3.5
    assert "| 0.950 |" in text
    assert "| 0.925 |" in text
    assert "| **overall** | -0.025 | -0.033 – -0.017 |" in text
    assert "| correctness | -0.500 | -0.662 – -0.338 |" in text
    assert not [markup for markup in ("<b>", "[x](", "@z") if markup in text]


def test_nothing_fails_without_a_gate_even_if_a_run_is_incomplete(pair: tuple[Run, Run], tmp_path: Path) -> None:
    Run.objects.filter(pk=pair[1].pk).update(state=Run.State.INCOMPLETE, reason="failed_share: correctness")
    text, code = compare_to_file(pair, tmp_path / "c.xml")
    first, second = parse_suites(text).values()
    assert code == 0
    assert (first.get("skipped"), second.get("skipped")) == ("0", "1")
    assert {suite.get("errors") for suite in (first, second)} == {"0"}
    text, code = compare_to_file(pair, tmp_path / "c.xml", "--max-drop", "0.04")
    assert code == 100
    assert parse_suites(text)[f"gate-{pair[1].pk}"].get("errors") == "1"


def test_single_run_has_its_gate_and_json_file_equals_stdout(pair: tuple[Run, Run], tmp_path: Path) -> None:
    text, code = compare_to_file(pair[:1], tmp_path / "c.md", "--fail-under", "0.97")
    assert (text.splitlines()[0], code) == (f"**❌ run {pair[0].pk}, gate on the judge-only score: failed**", 100)
    out, path = StringIO(), tmp_path / "c.json"
    runs = [str(run.pk) for run in pair]
    call_command("compare", *runs, "--max-drop", "0.04", "--format", "json", "--output", str(path), stdout=out)
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(out.getvalue())
    assert json.loads(out.getvalue())["gates"][runs[1]]["verdict"] == "pass"


def test_unknown_file_suffix_is_a_usage_error_and_nothing_is_written(pair: tuple[Run, Run], tmp_path: Path) -> None:
    good = tmp_path / "c.md"
    with pytest.raises(CommandError) as error_info:
        call_command("compare", str(pair[0].pk), "--output", str(good), "--output", str(tmp_path / "c.pdf"))
    assert error_info.value.returncode == 2
    assert list(tmp_path.iterdir()) == []
