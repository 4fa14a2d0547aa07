"""Own code runs in a child process: whatever it does ends its own result, with a reason, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import JudgeCase, JudgeDialog, ParsedReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.rubric import shipped_rubric
from evaluation.metric_packages import isolation
from evaluation.metric_packages.isolation import MAX_TIMEOUTS, PackageProcess
from evaluation.network.outcomes import Outcome
from tests.own_metrics import Register, write_package, write_rubrics

QUESTION = QuestionSpec(id="q1", category="single_hop", text="When?")
SECONDS = 2.0
# Each answer names what the metric does.
CODE = """
    def hang_in_c():
        # A call of a C library that keeps the interpreter's lock.
        ctypes.PyDLL(None).sleep(600)

    def hang():
        while True:
            pass

    def stop_later():
        import signal, threading
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGSTOP)).start()

    def fail():
        raise ValueError("no \\x00 such \\ud800 unit")

    behaviours = {
        "score": lambda: Result.scored(0.25, detail={"words": (1, 2)}, findings=[Finding("word", "a", start=0, end=1)]),
        "print": lambda: print("noise") or Result.scored(0.5),
        "raise": fail,
        "exit": lambda: exit(3),
        "abort": lambda: os._exit(7),
        "hang": hang,
        "stop later": lambda: stop_later() or Result.scored(0.5),
        "hang in C": hang_in_c,
        "none": lambda: None,
        "number": lambda: 0.5,
        "nan": lambda: Result.scored(float("nan")),
        "off the scale": lambda: Result.scored(1.5),
        "class": lambda: Result.labelled("good"),
        "not JSON": lambda: Result.scored(0.5, detail={"x": object()}),
        "NaN in detail": lambda: Result.scored(0.5, detail={"x": float("nan")}),
        "long verdict": lambda: Result.scored(0.5, findings=(Finding("word", "a", "v" * 41),)),
        "negative place": lambda: Result.scored(0.5, findings=(Finding("word", "a", start=-1),)),
        "long": lambda: Result.scored(0.5, detail={"x": "y" * 200_000}),
        "not applicable": lambda: Result.not_applicable("no words"),
        "module state": lambda: Result.scored(1.0 if behaviours.setdefault("seen", 1) else 0.0),
    }

    @declare("behaviour")
    def behaviour(question, answer, settings):
        return behaviours[answer.text]()

    PACKAGE = MetricPackage(rule_metrics=(word_count_share, behaviour))
"""


@pytest.fixture
def process(tmp_path: Path, register: Register) -> Iterator[PackageProcess]:
    assert register(write_package(tmp_path, CODE)) == []
    with PackageProcess(SECONDS) as package_process:
        yield package_process


def compute(process: PackageProcess, text: str, name: str = "behaviour") -> Result:
    return process.compute(name, QUESTION, AnswerSpec(text), RuleSettings())


def test_result_arrives_with_detail_and_findings(process: PackageProcess) -> None:
    result = compute(process, "score")
    assert (result.value, result.detail) == (0.25, {"words": [1, 2]})
    assert [(finding.text, finding.start, finding.end) for finding in result.findings] == [("a", 0, 1)]
    assert compute(process, "print").value == 0.5
    assert compute(process, "not applicable").reason == "no words"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise", "metric_raised: ValueError: no \ufffd such \ufffd unit"),
        ("exit", "metric_raised: SystemExit: 3"),
        ("nan", "metric_raised: ValueError: not a finite bounded value: nan"),
        ("none", "metric_invalid: returned NoneType, not a Result"),
        ("number", "metric_invalid: returned float, not a Result"),
        ("off the scale", "metric_invalid: 1.5 is not on the scale real 0..1"),
        ("class", "metric_invalid: 'good' is not on the scale real 0..1"),
        ("not JSON", "metric_invalid: the result is not JSON: Object of type object is not JSON serializable"),
        ("NaN in detail", "metric_invalid: the result is not JSON: Out of range float values are not JSON compliant"),
        ("long verdict", "metric_invalid: findings.0.verdict: String should have at most 40 characters"),
        ("negative place", "metric_invalid: findings.0.start: Input should be greater than or equal to 0"),
        ("long", "metric_invalid: the result has more than 100000 characters"),
        ("abort", "metric_died: behaviour, exit code 7"),
    ],
)
def test_fault_fails_its_own_result(process: PackageProcess, text: str, reason: str) -> None:
    assert compute(process, text) == Result.failed(reason)
    assert compute(process, "one two three four five", "word_count_share").value == 0.5


@pytest.mark.parametrize("text", ["hang", "hang in C"])
def test_endless_call_is_ended(process: PackageProcess, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert compute(process, "score").value == 0.25
    started = time.monotonic()
    assert compute(process, text) == Result.failed("metric_timeout: behaviour, 2 s")
    assert SECONDS <= time.monotonic() - started < 3 * SECONDS
    assert compute(process, "score").value == 0.25
    # The log says where the code was.
    assert f"in {text.replace(' ', '_').casefold()}" in capfd.readouterr().err


def test_call_that_a_stopped_process_does_not_read_is_ended(process: PackageProcess) -> None:
    assert compute(process, "stop later").value == 0.5
    time.sleep(0.3)
    assert compute(process, "x" * 3_000_000) == Result.failed("metric_timeout: behaviour, 2 s")
    assert compute(process, "score").value == 0.25


def test_metric_that_always_hangs_is_not_called_again(process: PackageProcess) -> None:
    process._seconds = 0.3
    for _ in range(MAX_TIMEOUTS):
        assert compute(process, "hang").reason == "metric_timeout: behaviour, 0.3 s"
    started = time.monotonic()
    assert compute(process, "hang").reason == "metric_timeout: behaviour, 3 × 0.3 s; not called again"
    assert time.monotonic() - started < 0.1
    assert compute(process, "one two", "word_count_share").value == 0.2


def test_limits_end_a_call_before_the_queue_ends_the_worker() -> None:
    task, worker = settings.CONCORD_TASK_SECONDS, settings.Q_CLUSTER["timeout"]
    assert task + isolation.LOAD_SECONDS + isolation.CALL_SECONDS + 10 < worker
    # Replies that arrive together are read one after the other.
    assert task + isolation.LOAD_SECONDS + MAX_TIMEOUTS * isolation.STEP_SECONDS + 10 < worker


def test_changed_source_is_not_used_by_a_running_worker(tmp_path: Path, process: PackageProcess) -> None:
    write_package(tmp_path, CODE + "\n    # changed")
    assert "Restart it." in compute(process, "score").reason
    assert compute(process, "score").reason.startswith("metric_not_loaded: metrics.py ")


TWO_STEPS = """
    SPEC = judged("kindness", "tone", scale=Scale.parse("1..2"))

    def judge(case):
        if case.answer.text == "raise":
            raise ValueError("no tone")
        first = yield JudgeRequest({"answer": case.answer.text}, SCHEMA, names=("kindness",))
        second = yield JudgeRequest({"answer": first.parts["kindness"]}, SCHEMA, names=("kindness",))
        value = first.parts["kindness"] + second.parts["kindness"]
        return {} if case.answer.text == "nothing" else {"kindness": Result.scored(value)}

    SCHEMA = {"type": "object", "properties": {"kindness": {"type": "number"}}}
    PACKAGE = MetricPackage(families=(Family("tone", (SPEC,), judge),), rubrics=Path(__file__).parent)
"""


def converse(text: str, *replies: float) -> tuple[list[object], dict[str, Result]]:
    """Requested answers, and results."""
    family = family_named("tone")
    case = JudgeCase(shipped_rubric("tone", "en"), QUESTION, AnswerSpec(text), family.metrics)
    dialog, requested = JudgeDialog(family.judge(case)), []
    for reply in replies:
        assert dialog.request is not None
        requested.append(dialog.request.blocks["answer"])
        dialog.advance(ParsedReply(Outcome.OK, {"kindness": reply}))
    return requested, dialog.results


@pytest.fixture
def tone(tmp_path: Path, register: Register) -> Iterator[None]:
    source = write_package(tmp_path, TWO_STEPS)
    write_rubrics(tmp_path, "tone", "kindness")
    isolation._shared_process.cache_clear()
    assert register(source) == []
    yield
    isolation._shared_process.cache_clear()


@pytest.mark.usefixtures("tone")
def test_judge_function_runs_step_by_step_in_the_child() -> None:
    assert converse("Please.", 1, 1) == (["Please.", 1], {"kindness": Result.scored(2.0)})
    assert converse("Please.", 1, 5)[1] == {
        "kindness": Result.failed("metric_invalid: 6.0 is not on the scale levels 1..2")
    }
    assert converse("nothing", 1, 1)[1] == {
        "kindness": Result.failed("metric_invalid: returned NoneType, not a Result")
    }
    assert converse("raise")[1] == {"kindness": Result.failed("metric_raised: ValueError: no tone")}
