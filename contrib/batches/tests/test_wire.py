"""Batch wire format: written lines, and defensive reading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contrib.batches import client as batch_client
from contrib.batches.client import (
    BatchClient,
    BatchFault,
    read_batch,
    read_id,
    read_lines,
    read_page,
)
from evaluation.core.errors import DomainError
from evaluation.network.outcomes import Outcome
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]


def line(custom_id: str, content: Any = "{}", status: int = 200, **changes: Any) -> str:
    body = {"model": "m", "choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    if status != 200:
        body = {"error": {"code": "invalid_request"}}
    record = {"custom_id": custom_id, "response": {"status_code": status, "body": body}, "error": None}
    return json.dumps(record | changes)


def file(*lines: str) -> bytes:
    return "\n".join(lines).encode() + b"\n"


def test_lines_are_read_like_single_replies() -> None:
    error = {"response": None, "error": {"code": "batch_expired", "message": "late"}}
    server_error = {"response": None, "error": {"code": "server_error"}}
    parsed = read_lines(file(line("a", "{}"), line("b", status=400), line("c", **error), line("d", **server_error), ""))
    assert {name: reply.outcome for name, reply in parsed.replies.items()} == {
        "a": Outcome.OK,
        "b": Outcome.BAD_REQUEST,
        "c": Outcome.NOT_SENT,
        "d": Outcome.SERVER_ERROR,
    }
    assert parsed.unreadable == 0
    assert all(reply.batch for reply in parsed.replies.values())
    assert parsed.replies["a"].raw == "{}"


@pytest.mark.parametrize(
    "invalid_line",
    ["nonsense", "[]", "1", "{}", '{"custom_id": 3}', '{"custom_id": "x"}', line("x", response={"status_code": "200"}),
     line("x", response={"status_code": True}), line("a"), "[" * 100_000, "\x00", '{"custom_id": NaN}'],
)  # fmt: skip
def test_invalid_or_repeated_line_is_counted_and_skipped(invalid_line: str) -> None:
    parsed = read_lines(file(line("a", "first"), invalid_line, line("b")))
    assert (sorted(parsed.replies), parsed.unreadable) == (["a", "b"], 1)
    assert parsed.replies["a"].raw == "first"


def test_reply_with_unstorable_characters_is_made_storable() -> None:
    (reply,) = read_lines(file(line("a", "x\0\ud800y"))).replies.values()
    assert reply.raw == "x\ufffd\ufffdy"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"id": "b"}', b'{"id": "", "status": "x"}', b'{"id":1,"status":"x"}']
)
def test_invalid_batch_is_none(body: bytes) -> None:
    assert read_batch(body) is None


@pytest.mark.parametrize("name", ["../files", "..", "a/b", "a?b", "a b", "é", "x" * 201, "a\n"])
def test_id_that_leads_elsewhere_is_rejected(name: str) -> None:
    assert read_id(json.dumps({"id": name}).encode()) == ""
    batch = read_batch(json.dumps({"id": "b", "status": "completed", "output_file_id": name}).encode())
    assert batch is not None
    assert batch.output_file == ""


@pytest.mark.parametrize("name", ["batch_1", "B-2.a:c", "x" * 200])
def test_valid_ids_are_accepted(name: str) -> None:
    assert read_id(json.dumps({"id": name}).encode()) == name


def test_invalid_counts_and_dates_are_left_out() -> None:
    batch = read_batch(
        b'{"id": "b", "status": "failed", "request_counts": {"completed": -1, "failed": true}, "expires_at": "soon",'
        b'"errors": {"data": [{"code": "token_limit_exceeded"}]}, "metadata": null}'
    )
    assert batch is not None
    assert (batch.done, batch.failed, batch.expires_at, batch.mark) == (0, 0, None, "")
    assert (batch.reason, batch.ended) == ("token_limit_exceeded", True)


def test_a_page_without_a_list_is_none() -> None:
    assert read_page(b'{"data": {}}') is None
    assert read_page(b'{"data": []}') == ([], False)


@pytest.fixture
def client(judge_server: JudgeServer) -> Any:
    with BatchClient(base_url=judge_server.base_url, allowed_origins=[judge_server.origin]) as new_client:
        yield new_client


def request(number: int) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    return json.dumps({"custom_id": f"{number}", "url": "/v1/chat/completions", "body": body}).encode() + b"\n"


def test_batch_is_found_by_its_mark_on_any_page(
    judge_server: JudgeServer, client: BatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_client, "PAGE_SIZE", 2)
    file_id = client.upload(request(1))
    batch_ids = [client.create(file_id, f"mark-{n}") for n in range(5)]
    assert client.find("mark-0") == batch_ids[0]
    assert client.find("mark-4") == batch_ids[4]
    assert client.find("mark-5") is None
    monkeypatch.setattr(batch_client, "MAX_PAGES", 1)
    with pytest.raises(BatchFault) as fault:  # not there as far as one looked is not the same as not there
        client.find("mark-0")
    assert fault.value.reply.detail == "the list of batches has too many pages"


def test_invalid_list_of_batches_is_a_fault_with_its_reason(client: BatchClient) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch_client, "read_page", lambda body: None)
        with pytest.raises(BatchFault) as fault:
            client.find("mark-0")
    assert (fault.value.reply.outcome, fault.value.reply.detail) == (Outcome.WRONG_CONTENT, "not a list of batches")


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("redirect", Outcome.REDIRECT), ("rate_limited_long", Outcome.RATE_LIMITED), ("html", Outcome.WRONG_CONTENT),
     ("disconnect", Outcome.CONNECTION), ("unauthorised", Outcome.UNAUTHORISED)],
)  # fmt: skip
def test_faults_are_reported_like_those_of_calls(
    judge_server: JudgeServer, client: BatchClient, fault: str, outcome: Outcome
) -> None:
    action = actions.redirect("http://127.0.0.1:1/") if fault == "redirect" else actions.FAULTS[fault]
    judge_server.batches.script("upload", action)
    with pytest.raises(BatchFault) as raised:
        client.upload(request(1))
    assert raised.value.reply.outcome is outcome
    assert raised.value.reply.detail not in {"", "None"}
    assert raised.value.reply.retry_after == (300 if fault == "rate_limited_long" else None)


def test_unlisted_origin_is_refused() -> None:
    with pytest.raises(DomainError, match="origin_not_allowed"):
        BatchClient(base_url="http://127.0.0.1:9/v1", allowed_origins=[])
