"""Packages of own metrics are registered as a whole or, with every fault named, not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from evaluation.judging.catalogue import family_named
from evaluation.judging.rubric import shipped_rubric
from evaluation.metric_packages.declared import declared_metrics
from evaluation.metric_packages.discovery import PackageSource, find_sources
from evaluation.metric_packages.loading import RULE_INPUTS, changed_packages, load_package, stamps
from evaluation.metrics.catalogue import is_rule_metric, own_rule_metrics
from evaluation.runs.profile_choices import INPUT_LABELS
from tests.own_metrics import PACKAGE, Register, write_package, write_rubrics


def test_rule_metric_is_registered_with_the_shipped_ones(tmp_path: Path, register: Register) -> None:
    assert register(write_package(tmp_path)) == []
    assert own_rule_metrics() == ("word_count_share",)
    assert is_rule_metric("word_count_share")
    assert declared_metrics()["word_count_share"].title.ko == "word_count_share"
    assert list(stamps(["word_count_share", "keyword_hit"])) == ["word_count_share"]


def test_family_is_registered_with_its_rubrics(tmp_path: Path, register: Register) -> None:
    code = """
        SPEC = judged("kindness", "tone", scale=Scale.parse("1..2"))
        FAMILY = Family("tone", (SPEC,), score_in_one_call)
        PACKAGE = MetricPackage(families=(FAMILY,), rubrics=Path(__file__).parent)
    """
    source = write_package(tmp_path, code)
    write_rubrics(tmp_path, "tone", "kindness")
    assert register(source) == []
    assert family_named("tone").metrics[0].name == "kindness"
    assert shipped_rubric("tone", "ko").metric("kindness").values == (1, 2)


CONSTANT = "PACKAGE = MetricPackage(rule_metrics=(constant,))"
FAMILY = "PACKAGE = MetricPackage(families=(Family({}),), rubrics=Path(__file__).parent)"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def (:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("", "AttributeError"),
        ("PACKAGE = word_count_share", "is a function, not a MetricPackage"),
        ("PACKAGE = MetricPackage()", "the package has no metrics"),
        ("PACKAGE = MetricPackage(rule_metrics=5)", "TypeError"),
        ("PACKAGE = MetricPackage(rule_metrics=(len,))", "len is not a function declared with rule_metric"),
        ("constant = declare('keyword_hit')(lambda q, a, s: 1)\n" + CONSTANT, "the metric keyword_hit exists already"),
        ("constant = declare('correctness')(lambda q, a, s: 1)\n" + CONSTANT, "the metric correctness exists already"),
        ("constant = declare('Bad Name')(lambda q, a, s: 1)\n" + CONSTANT, "'Bad Name' is not a name"),
        (
            "constant = declare('c', scale=Scale(ScaleKind.REAL, 1, 0))(lambda q, a, s: 1)\n" + CONSTANT,
            "the scale of c",
        ),
        ("constant = declare('c', scale='0..1')(lambda q, a, s: 1)\n" + CONSTANT, "the scale of c"),
        ("constant = declare('c', scale=YES_NO)(lambda q, a, s: 1)\n" + CONSTANT, "use yes_no or none"),
        ("constant = declare('c', review_form=ReviewForm.CLAIMS)(lambda q, a, s: 1)\n" + CONSTANT, "use level or none"),
        ("constant = declare('c', inputs=('answer',))(lambda q, a, s: 1)\n" + CONSTANT, "unknown inputs of c: answer"),
        ("constant = declare('c', version=0)(lambda q, a, s: 1)\n" + CONSTANT, "the version of c"),
        ("constant = declare('c', title='C')(lambda q, a, s: 1)\n" + CONSTANT, "the title of c is not a Bilingual"),
        (
            "constant = declare('c', scale=Scale.parse('class a|b'))(lambda q, a, s: 1)\n" + CONSTANT,
            "classes have none",
        ),
        ("PACKAGE = MetricPackage(rule_metrics=(word_count_share, word_count_share))", "is declared twice"),
        (FAMILY.format("'tone', (), score_in_one_call"), "the family tone has no metrics"),
        (FAMILY.format("'claims', (judged('k', 'claims'),), score_in_one_call"), "claims.en.yaml"),
        (FAMILY.format("'tone', (judged('k', 'other'),), score_in_one_call"), "rubric_family of k is 'other'"),
    ],
)
def test_fault_keeps_the_package_out(tmp_path: Path, register: Register, code: str, reason: str) -> None:
    declared = set(declared_metrics())
    faults = register(write_package(tmp_path, code))
    assert any(fault.startswith("metrics.py: ") and reason in fault for fault in faults), faults
    assert set(declared_metrics()) == declared


@pytest.mark.parametrize(("floor", "reason"), [("lambda spec: 1 / 0", "ZeroDivisionError"), ("len", "TypeError")])
def test_floor_is_computed_once_and_checked(tmp_path: Path, register: Register, floor: str, reason: str) -> None:
    code = """
        FAMILY = Family("tone", (judged("kindness", "tone", scale=Scale.parse("1..2")),), score_in_one_call, floor={})
        PACKAGE = MetricPackage(families=(FAMILY,), rubrics=Path(__file__).parent)
    """
    write_rubrics(tmp_path, "tone", "kindness")
    (fault,) = register(write_package(tmp_path, code.format(floor)))
    assert reason in fault
    off_scale = "lambda spec: Result.scored(0)"
    assert "0.0 is not on the scale levels 1..2" in register(write_package(tmp_path, code.format(off_scale)))[-1]


def test_rubrics_must_match_their_family(tmp_path: Path, register: Register) -> None:
    code = """
        FAMILY = Family("tone", (judged("kindness", "tone"), judged("warmth", "tone")), score_in_one_call)
        PACKAGE = MetricPackage(families=(FAMILY,), rubrics=Path(__file__).parent)
    """
    source = write_package(tmp_path, code)
    write_rubrics(tmp_path, "tone", "kindness")
    (tmp_path / "tone.ko.yaml").write_text("family: tone")
    faults = register(source)
    assert "metrics.py: the rubric tone.en does not have exactly the metrics of its family" in faults
    assert "metrics.py: the rubric tone.en has another scale for kindness: levels 1..2" in faults
    assert any(fault.startswith("metrics.py: tone.ko.yaml ") for fault in faults)


def test_second_package_may_not_take_a_name_of_the_first(tmp_path: Path, register: Register) -> None:
    first, second = write_package(tmp_path), write_package(tmp_path, name="more.py")
    assert register(first, second) == ["more.py: the metric word_count_share exists already"]
    assert own_rule_metrics() == ("word_count_share",)


def test_fault_is_an_error_of_commands_without_a_traceback(tmp_path: Path, register: Register) -> None:
    register(write_package(tmp_path, "1 / 0"))
    (error,) = [error for error in run_checks() if error.id == "concord.E006"]
    assert error.msg == "own metrics of metrics.py: ZeroDivisionError: division by zero"
    with pytest.raises(SystemCheckError, match=r"own metrics of metrics\.py"):
        call_command("healthcheck", skip_checks=False)


def test_stamp_changes_with_source_and_version(tmp_path: Path, register: Register) -> None:
    stamp = load_package(write_package(tmp_path)).stamp
    assert load_package(write_package(tmp_path)).stamp == stamp
    changed = load_package(write_package(tmp_path, f"# changed\n{PACKAGE}")).stamp
    assert stamp.split()[0] == changed.split()[0] == "metrics.py"
    assert stamp != changed
    source = write_package(tmp_path, version="1.2")
    assert load_package(source).stamp == f"metrics.py 1.2 {stamp.split()[-1]}"
    register(source)
    recorded = stamps(["word_count_share"])
    assert changed_packages(recorded) == ""
    assert changed_packages({"word_count_share": "a 1 b"}) == f"a 1 b → {recorded['word_count_share']}"
    assert changed_packages({"gone": "a 1 b"}) == "a 1 b → –"


def test_hash_covers_all_files_of_the_top_level_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_package(tmp_path / "acme_metrics", name="inner.py")
    (tmp_path / "acme_metrics/__init__.py").write_text("")
    helper = tmp_path / "acme_metrics/words.txt"
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = PackageSource("acme_metrics.inner:PACKAGE", "acme", "1")
    hashes = []
    for content in ("one", "two"):
        helper.write_text(content)
        hashes.append(load_package(entry).stamp)
    assert source.target.endswith("inner.py")
    assert len(set(hashes)) == 2
    for name in [name for name in sys.modules if name.startswith("acme_metrics")]:
        del sys.modules[name]


def test_inputs_of_rule_metrics_are_those_that_forms_name() -> None:
    assert set(INPUT_LABELS) == RULE_INPUTS


def test_sources_are_the_entry_points_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "acme_metrics-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-metrics\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[concord.metrics]\nacme = acme_metrics:PACKAGE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "metrics.py"
    assert find_sources(str(file)) == [
        PackageSource("acme_metrics:PACKAGE", "acme-metrics", "1.2"),
        PackageSource(str(file), "metrics.py"),
    ]
