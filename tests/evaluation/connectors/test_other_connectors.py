"""Chat model, command and function connectors return the same answers and reasons."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.connectors.catalogue import CONNECTORS, InvalidSettings, read_settings
from evaluation.connectors.protocol import OperatorPolicy, SystemCall, SystemReply
from evaluation.core.errors import DomainError
from evaluation.core.samples import QuestionSpec
from evaluation.network.outcomes import Outcome
from examples.rag_service import RagService
from examples.retrieval import answer

ROOT = Path(__file__).resolve().parents[3]
CALL = SystemCall(QuestionSpec(id="q1", category="c", text="How long may a leave of absence be?"), k=3)
EXPECTED = answer(CALL.question.text, 3)


def ask(name: str, policy: OperatorPolicy, call: SystemCall = CALL, **options: Any) -> SystemReply:
    settings = read_settings(CONNECTORS[name], {"timeout_seconds": 5.0, **options})

    async def send_call() -> SystemReply:
        async with CONNECTORS[name].open(settings, policy) as client:
            return await client.call(call)

    return asyncio.run(send_call())


# Chat


def chat(service: RagService, call: SystemCall = CALL, **options: Any) -> SystemReply:
    policy = OperatorPolicy([service.origin], {"SYSTEM_KEY": "a-secret"})
    return ask("chat", policy, call, **{"base_url": f"{service.origin}/v1", "model": "toy", **options})


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_model_answers_without_passages(service: RagService, stream: bool) -> None:
    reply = chat(service, stream=stream, key_variable="SYSTEM_KEY", system_prompt="Be brief.")
    assert reply.content is not None
    assert reply.content.answer.text.strip() == answer(CALL.question.text)["answer"]
    assert reply.content.answer.contexts is None
    assert reply.content.model == "toy"
    assert reply.tokens_in is not None
    assert (reply.content.first_token_seconds is not None) is stream
    assert service.headers_seen[0]["Authorization"] == "Bearer a-secret"
    assert [m["role"] for m in service.bodies[0]["messages"]] == ["system", "user"]
    assert service.bodies[0].get("stream_options") == ({"include_usage": True} if stream else None)


def test_failed_call_has_no_token_counts() -> None:
    reply = SystemReply(Outcome.TIMEOUT, reason="deadline")
    assert (reply.tokens_in, reply.tokens_out) == (None, None)


def test_chat_model_receives_the_earlier_turns(service: RagService) -> None:
    question = QuestionSpec(id="q", category="c", text="And then?", history=("How long?", "Two terms."))
    chat(service, SystemCall(question))
    assert [m["content"] for m in service.bodies[0]["messages"]] == ["How long?", "Two terms.", "And then?"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hang", "timeout"),
        ("drip", "timeout"),
        ("html", "wrong_content"),
        ("no_json", "wrong_content"),
        ("error", "server_error"),
        ("unauthorised", "unauthorised"),
        ("huge", "too_large"),
        ("redirect", "redirect"),
        ("limit", "rate_limited"),
        ("disconnect", ""),  # in a stream the connection, else no JSON
    ],
)
def test_faulty_chat_endpoint_gives_a_reason(service: RagService, fault: str, reason: str, stream: bool) -> None:
    service.fault_of = lambda *_: fault
    reply = chat(service, stream=stream, timeout_seconds=1.0)
    assert reply.content is None
    assert reply.reason
    assert reply.reason.startswith(reason)
    assert sum(service.asked.values()) == 1


def test_parameters_cannot_replace_the_question() -> None:
    with pytest.raises(InvalidSettings) as error:
        read_settings(CONNECTORS["chat"], {"base_url": "https://h/v1", "model": "m", "parameters": {"messages": []}})
    assert [(problem.field, problem.code) for problem in error.value.problems] == [("parameters", "parameter_refused")]
    assert error.value.problems[0].params["name"] == "messages"


# Programs

PROGRAM = (sys.executable, "-m", "examples.rag_command", "ask", "{query}", "--format", "json", "--top-k", "{k}")


def run(
    command: tuple[str, ...], call: SystemCall = CALL, variables: Mapping[str, str] | None = None, **options: Any
) -> Any:
    policy = OperatorPolicy(commands={"toy": command}, variables={"PYTHONPATH": str(ROOT), **(variables or {})})
    return ask("command", policy, call, **{"command": "toy", **options})


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, "{query}")


def test_a_program_prints_its_answer_as_json() -> None:
    reply = run(PROGRAM)
    assert reply.reason == ""
    content = reply.content
    assert content.answer.text == EXPECTED["answer"]
    assert [c.chunk_id for c in content.answer.contexts] == [context["id"] for context in EXPECTED["contexts"]]
    assert (content.confidence, content.metadata["model"]) == (0.5, "toy-1")


def test_program_writes_its_answer_to_the_output_file() -> None:
    assert run((*PROGRAM, "--output", "{output}")).content.answer.text == EXPECTED["answer"]


def test_question_is_always_a_single_argument(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    code = "import json, sys; print(json.dumps({'answer': json.dumps(sys.argv[1:])}))"
    for text in (f"$(touch {marker}) `touch {marker}`; touch {marker}", "{output} {k}", "a \"b\" 'c' \\ \n d"):
        call = SystemCall(QuestionSpec(id="q", category="c", text=text))
        assert json.loads(run(script(code), call).content.answer.text) == [text]
    assert not marker.exists()


def test_question_is_never_read_as_an_option() -> None:
    call = SystemCall(QuestionSpec(id="q", category="c", text="--output=/tmp/elsewhere"))
    assert run(PROGRAM, call).content is not None


def test_program_receives_only_the_configured_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "the site's")
    code = "import json, os; print(json.dumps({'answer': ' '.join(sorted(os.environ))}))"
    names = run(script(code), variables={"SYSTEM_KEY": "x"}).content.answer.text.split()
    assert "SYSTEM_KEY" in names
    assert "SECRET_KEY" not in names


@pytest.mark.parametrize(
    ("code", "outcome", "reason"),
    [
        ("import time; time.sleep(60)", Outcome.TIMEOUT, "timeout"),
        ("import sys; sys.exit('out of order')", Outcome.SERVER_ERROR, "program_failed: status 1 out of order"),
        ("print('no json')", Outcome.WRONG_CONTENT, "wrong_content: the output of the program is not valid JSON"),
        ("print('{}')", Outcome.WRONG_CONTENT, "no_answer: “answer” is missing"),
        ("while True: print('x' * 10000)", Outcome.TOO_LARGE, "too_large: more than 10000 bytes"),
        ("x = bytearray(900_000_000)", Outcome.SERVER_ERROR, "program_failed: status 1"),
    ],
)
def test_faulty_program_gives_a_reason_in_time(code: str, outcome: Outcome, reason: str) -> None:
    reply = run(script(code), timeout_seconds=1.0, most_bytes=10_000, memory_megabytes=400)
    assert (reply.outcome, reply.content) == (outcome, None)
    assert reply.reason.startswith(reason)
    assert reply.elapsed_seconds < 4


def test_child_processes_end_with_the_program(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']);"
        f"open({str(file)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    run(script(code), timeout_seconds=1.0)
    pid = int(file.read_text())
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    raise AssertionError("it still runs")


def test_only_listed_programs_are_run() -> None:
    with pytest.raises(DomainError, match="command_not_allowed"):
        ask("command", OperatorPolicy(commands={"toy": PROGRAM}), command="rm")


# Functions


def call(target: str, **options: Any) -> SystemReply:
    return ask("callable", OperatorPolicy(functions={"toy": target}), function="toy", **options)


def raise_error(question: str) -> str:
    raise ValueError(f"no idea: {question}")


def answer_slowly(**arguments: Any) -> str:
    time.sleep(1.0)
    return "late"


def return_number(question: str) -> int:
    return 42


def test_function_is_called_with_the_arguments_it_accepts() -> None:
    reply = call("examples.retrieval:answer")
    assert reply.content is not None
    assert reply.content.answer.text == EXPECTED["answer"]
    assert len(reply.content.answer.contexts or ()) == 3


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        ("raise_error", Outcome.SERVER_ERROR, "program_failed: ValueError: no idea"),
        ("answer_slowly", Outcome.TIMEOUT, "timeout"),
        ("return_number", Outcome.WRONG_CONTENT, "wrong_content: the function returned int"),
    ],
)
def test_faulty_function_gives_a_reason(name: str, outcome: Outcome, reason: str) -> None:
    reply = call(f"{__name__}:{name}", timeout_seconds=0.3)
    assert (reply.outcome, reply.content) == (outcome, None)
    assert reply.reason.startswith(reason)


def test_only_listed_functions_are_called() -> None:
    with pytest.raises(DomainError, match="function_not_allowed"):
        ask("callable", OperatorPolicy(functions={"toy": "os:system"}), function="system")
    with pytest.raises(DomainError, match="function_missing"):
        call("examples.retrieval:nothing")
