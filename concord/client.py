"""Client of a site's REST interface (``/api/v1/``)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import httpx2 as httpx

Rows: TypeAlias = "Iterable[Mapping[str, Any]] | str | PathLike[str]"
POLL_SECONDS = 2.0
ENDED = ("completed", "incomplete", "cancelled", "paused")


class ConcordError(Exception):
    """Concord could not do what was asked for; the message says why."""


class Refused(ConcordError):
    """The site refused a request. ``status`` is the HTTP status, ``problem`` the body (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(_sentence(problem) or f"HTTP {status}")
        self.status, self.problem = status, problem


def _sentence(problem: Mapping[str, Any]) -> str:
    """Messages of a problem, one a line."""
    if problems := problem.get("problems"):
        return "\n".join(f"line {row['line']}: {row['message']}" if row["line"] else row["message"] for row in problems)
    if errors := problem.get("errors"):
        return "\n".join(f"{name}: {message}" for name, message in errors.items())
    return str(problem.get("detail") or problem.get("title") or "")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A version of a question set."""

    id: int
    name: str
    version: int
    questions: int


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Answers of a system to a question set."""

    id: int
    question_set: int
    system: str
    answers: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run; ``error_message`` is the reason if it is paused or incomplete."""

    id: int
    name: str
    status: str
    error_message: str

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more happens without a person."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """A review queue."""

    id: int
    name: str
    state: str
    reviewers: list[str]


Row = TypeVar("Row", QuestionSet, AnswerSet, Run, ReviewQueue)


class Client:
    """A site, by its address and a token (*My account*, *API tokens*). Use it as a context manager, or ``close`` it.

    Each method raises :class:`Refused` with the site's reason, and ``httpx.TransportError`` without a response."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, project: int | None = None) -> None:
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=timeout
        )
        self._project = {} if project is None else {"project": project}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def import_questions(self, name: str, questions: Rows) -> QuestionSet:
        """Import questions (rows, or the path of a file) as the next version of a set, or find the equal version."""
        body = self._request(
            "POST", "question-sets/", data={"name": name, **self._project}, files={"file": _upload(questions)}
        )
        if "status" in body:
            body = self._wait_for_upload(body)
        return _row(QuestionSet, body["question_set"])

    def import_answers(self, questions: QuestionSet, system: str, answers: Rows) -> AnswerSet:
        """Import the answers of a system (rows, or the path of a file), or find the equal ones."""
        form = {"question_set": questions.id, "system": system}
        body = self._request("POST", "answer-sets/", data=form, files={"file": _upload(answers)})
        return _row(AnswerSet, body["answer_set"])

    def start_run(self, answers: AnswerSet, **options: Any) -> Run:
        """Start a run. Options are those of the REST interface, such as ``profile``, ``judge`` and ``budget``."""
        return _row(Run, self._request("POST", "runs/", json={"answer_set": answers.id, **options}))

    def run(self, run_id: int) -> Run:
        """Current state of a run."""
        return _row(Run, self._request("GET", f"runs/{run_id}/", params={"page_size": 1}))

    def runs(self, **filters: Any) -> Iterator[Run]:
        """Runs, newest first. Filters are those of the REST interface, such as ``question_set``, ``system`` and
        ``status``."""
        return self._pages(Run, "runs/", filters)

    def question_sets(self, **filters: Any) -> Iterator[QuestionSet]:
        """Versions of question sets, newest first. Filters are those of the REST interface, such as ``name``."""
        return self._pages(QuestionSet, "question-sets/", filters)

    def wait(self, run: Run, *, seconds: float = 3600.0, on_poll: Callable[[Run], None] | None = None) -> Run:
        """Wait until the run has ended or is paused.

        :raises TimeoutError: after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not run.has_ended:
            if time.monotonic() > deadline:
                raise TimeoutError(f"run {run.id} is still {run.status}")
            time.sleep(POLL_SECONDS)
            run = self.run(run.id)
            if on_poll:
                on_poll(run)
        return run

    def report(self, run: Run, **gate: Any) -> dict[str, Any]:
        """The JSON report of a run. ``gate`` are the options of a gate, such as ``fail_under`` and ``baseline``."""
        return self._request("GET", f"runs/{run.id}/report/", params={"format": "json", **gate})

    def report_file(self, run: Run, form: str, **gate: Any) -> bytes:
        """The report in another format of the REST interface, such as ``html``, ``md``, ``csv`` and ``junit``."""
        return self._send("GET", f"runs/{run.id}/report/", params={"format": form, **gate}).content

    def create_queue(self, run: Run, reviewers: Sequence[str], **options: Any) -> ReviewQueue:
        """Create a review queue for people, by their user names. Options are those of the REST interface, such as
        ``size``."""
        body = {"runs": [run.id], "reviewers": list(reviewers), **options}
        return _row(ReviewQueue, self._request("POST", "review-queues/", json=body))

    def queue_progress(self, queue: ReviewQueue) -> dict[str, Any]:
        """How many items of a queue are rated, by reviewer."""
        return self._request("GET", f"review-queues/{queue.id}/progress/")

    def _wait_for_upload(self, upload: dict[str, Any]) -> dict[str, Any]:
        """Wait for a large file that a worker imports; return a body with its question set."""
        while upload["status"] in ("checking", "importing"):
            time.sleep(POLL_SECONDS)
            upload = self._request("GET", f"uploads/{upload['id']}/")
        if upload["status"] != "confirmed":
            raise Refused(400, upload)
        return {"question_set": self._request("GET", f"question-sets/{upload['question_set']}/")}

    def _pages(self, kind: type[Row], path: str, filters: Mapping[str, Any]) -> Iterator[Row]:
        body = self._request("GET", path, params={**self._project, **filters})
        yield from (_row(kind, row) for row in body["results"])
        while body["next"]:
            body = self._request("GET", body["next"])
            yield from (_row(kind, row) for row in body["results"])

    def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        response = self._send(method, path, **options)
        if (body := _json_object(response)) is None:
            raise Refused(response.status_code, _answer_of_another(response))
        return body

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._http.request(method, path, **options)
        if response.is_success:
            return response
        raise Refused(response.status_code, _json_object(response) or _answer_of_another(response))


def _json_object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _answer_of_another(response: httpx.Response) -> dict[str, str]:
    """Problem of a response that is not the site's, such as that of a proxy or a redirect to another address."""
    target = response.headers.get("location", "")
    return {"detail": f"HTTP {response.status_code} {target or response.text}".strip()[:200]}


def _row(kind: type[Row], body: Mapping[str, Any]) -> Row:
    return kind(**{field.name: body[field.name] for field in fields(kind)})


def _upload(rows: Rows) -> tuple[str, bytes]:
    """File name and content for an upload."""
    if isinstance(rows, (str, PathLike)):
        return Path(rows).name, Path(rows).read_bytes()
    return "rows.jsonl", "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows).encode()
