"""Reports for programs and pull requests: JUnit XML, Markdown, one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, fromstring

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec
from evaluation.formats.export import FORMATS
from evaluation.models import Run
from review.agreement.pages import render_agreement_plots
from review.comparisons.gates import run_gate
from review.queues.planning import next_review_json
from review.reports.exports import BRIEF, REPORT_EXPORTS, export
from review.reports.gate import GateRequest
from tests.examples import first_fast
from tests.factories import make_answer_set, make_project, make_question_set, make_user
from tests.review.builders import FAILED, answers_to, run_over
from tests.review.clients import Caller
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db
#: What the schema of the Ant task asks of a suite (windyroad's JUnit.xsd); Jenkins' own asks for less.
SUITE = {"id", "name", "package", "timestamp", "hostname", "tests", "failures", "errors", "time"}


@pytest.fixture
def run() -> Run:
    return fill(run_over(answers_to(["a"] * 40)), [5, 3] * 20)


def text_of(run: Run, form: str, **gate_options: Any) -> str:
    gate = run_gate(run, GateRequest(**gate_options))
    return b"".join(export(run, form, gate).chunks).decode()


def suites(run: Run, **gate_options: Any) -> dict[str, Element]:
    root = fromstring(text_of(run, "junit", **gate_options))
    assert (root.tag, root.attrib) == ("testsuites", {})
    return {str(suite.get("name")): suite for suite in root}


def test_every_suite_follows_the_schema_and_counts_correctly(run: Run) -> None:
    for number, suite in enumerate(suites(run, fail_under=0.97).values()):
        assert set(suite.attrib) >= SUITE
        assert suite.get("id") == str(number)
        assert [child.tag for child in suite if child.tag != "testcase"] == ["properties", "system-out", "system-err"]
        assert suite[0].tag == "properties"
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for outcome in ("failures", "errors", "skipped"):
            tag = outcome.removesuffix("s") if outcome != "skipped" else outcome
            assert suite.get(outcome) == str(sum(case.find(tag) is not None for case in cases))
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            assert all(child.get("type") for child in case if child.tag != "skipped")


@pytest.mark.parametrize(
    ("limit", "allowed", "tag"),
    [(0.93, False, None), (0.97, False, "failure"), (0.94, True, "skipped"), (0.94, False, "failure")],
)
def test_gate_rule_is_a_test_case(run: Run, limit: float, allowed: bool, tag: str | None) -> None:
    gate = suites(run, fail_under=limit, allow_undecided=allowed)["gate"]
    case = gate.findall("testcase")[1]
    assert case.get("name") == f"score of at least {limit:.3f}"
    assert [child.tag for child in case] == ([tag] if tag else [])
    assert "gate on the judge-only score" in str(gate.findtext("system-out"))


def test_an_incomplete_run_is_an_error_with_its_reason(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=Run.State.INCOMPLETE, reason="failed_share: correctness")
    (case,) = suites(run)["run"].findall("testcase")
    error = case.find("error")
    assert error is not None
    assert error.get("type") == "failed_share"


def test_metric_that_failed_everywhere_is_an_error() -> None:
    scored_run = fill(run_over(answers_to(["a"] * 3)), [FAILED] * 3)
    cases = {case.get("name"): case for case in suites(scored_run)["metrics"].findall("testcase")}
    assert cases["correctness"].find("error") is not None
    assert len(cases["faithfulness"]) == 0


def test_names_with_invalid_xml_characters_do_not_break_the_file(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(name="bad \x01 & <name> \x0b")
    Run.objects.filter(pk=run.pk).update(reason="odd \x08 reason", state=Run.State.INCOMPLETE)
    assert suites(run)


def test_markdown_starts_with_the_gate_and_escapes_markup() -> None:
    hostile = "What | is <script>alert(1)</script> [a](http://x) @someone?"
    questions = [QuestionSpec(id=f"q{n}", category="a", text=f"{hostile} {n}") for n in range(40)]
    run = fill(run_over(make_answer_set(make_question_set(make_project(), questions))), [5, 3] * 20)
    text = text_of(run, "md", fail_under=0.97)
    assert text.startswith("**❌ gate on the judge-only score: failed**")
    assert "| **judge only** | 0.950 | 0.934 – 0.966 |" in text
    assert "<script>" not in text
    assert "[a](http" not in text
    assert "@someone" not in text
    assert not text_of(run, "md").startswith("**")


def test_html_file_is_self_contained_and_escapes_answers() -> None:
    answers = make_answer_set(texts=["<img src=x onerror=alert(1)>"])
    scored_run = fill(run_over(answers), [5, 3] * 3)
    text = text_of(scored_run, "html", fail_under=0.2)
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text
    assert not [fragment for fragment in ("<script", "<link", "http://", "https://") if fragment in text]
    assert "gate on the judge-only score: passed" in text


def test_file_extension_chooses_the_format(run: Run, tmp_path: Path) -> None:
    endings = REPORT_EXPORTS.extensions
    assert endings["xml"] == "junit"
    files = [tmp_path / f"report.{ending}" for ending in endings]
    call_command("export_report", str(run.pk), *(argument for file in files for argument in ("--output", str(file))))
    assert all(file.stat().st_size for file in files)
    with pytest.raises(CommandError) as raised:
        call_command("export_report", str(run.pk), "--output", str(tmp_path / "report.pdf"))
    assert raised.value.returncode == 2


@pytest.mark.parametrize("form", REPORT_EXPORTS.names)
def test_rest_offers_every_format_as_a_download(run: Run, form: str) -> None:
    response = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/report/?format={form}")
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}.{FORMATS[form].extension}"'
    assert b"".join(response.streaming_content)


@pytest.mark.parametrize("form", first_fast(sorted(BRIEF), 2))
@pytest.mark.parametrize("gate_options", [{}, {"fail_under": 0.97}])
def test_cached_figures_give_the_same_report_file(run: Run, form: str, gate_options: dict[str, Any]) -> None:
    gathered = export(
        run, form, run_gate(run, GateRequest(**gate_options)), pictures=render_agreement_plots, planned=next_review_json
    )
    client = Caller(make_user(Role.VIEWER, run.project))
    response = client.get(f"runs/{run.pk}/report/?{urlencode({'format': form} | gate_options)}")
    assert b"".join(response.streaming_content) == b"".join(gathered.chunks)
