"""Simulated reviewers who empty review queues over HTTP concurrently, and checks of the database afterwards.

Besides rating, they send forms twice, release items, open two tabs, and request each other's addresses. In rough
mode, one form in ten is sent over a connection that is cut before the response, and the web server is killed and
restarted meanwhile; a reviewer without a response asks again."""

from __future__ import annotations

import http.client
import json
import secrets
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from evaluation.worker.serving import web_command
from tests.faults.site import Site, descendants, free_port, kill

VALUES = {"correctness": {"value": 3}, "faithfulness": {"value": 4}}


RESTARTS, EVERY_SECONDS = 3, 15.0


def web_server(site: Site, port: int) -> subprocess.Popen[bytes]:
    """A started web server."""
    process = site.start(*web_command("127.0.0.1", port, 2)[1:])
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            assert Reviewer(port, 0, "").call("GET", "ratings/")[0] == 401
        except OSError:
            time.sleep(0.2)
        else:
            return process
    raise AssertionError((site.folder / "log").read_text(errors="replace")[-3000:])


@contextmanager
def restarting_server(site: Site, port: int, process: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Kill and restart the web server meanwhile; yield the times, in seconds since the start."""
    stop_event, times, started = threading.Event(), list[float](), time.monotonic()

    def restart() -> None:
        server = process
        while len(times) < RESTARTS and not stop_event.wait(EVERY_SECONDS):
            for pid in [*descendants(server.pid), server.pid]:
                kill(pid)
            times.append(time.monotonic() - started)
            server = web_server(site, port)

    with ThreadPoolExecutor(1) as pool:
        restarting = pool.submit(restart)
        try:
            yield times
        finally:
            stop_event.set()
        restarting.result()


@dataclass
class Reviewer:
    """A person with a token and a connection.

    ``served_items`` counts the questions of served items, ``rated_items`` lists the rated assignments. ``unsure`` means
    that the last request was sent more than once for want of a response; ``cuts`` counts the forms cut off on purpose.
    """

    port: int
    id: int
    token: str
    served_items: Counter[str] = field(default_factory=Counter)
    rated_items: list[int] = field(default_factory=list)
    released_items: set[int] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    rough: bool = False
    unsure: bool = False
    cuts: int = 0

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request."""
        self.unsure, deadline = False, time.monotonic() + 60
        while True:
            try:
                return self._call(method, path, body)
            except (OSError, http.client.HTTPException):
                self.connection.close()
                if not self.rough or time.monotonic() > deadline:
                    raise
                self.unsure = True
                time.sleep(0.2)

    def _call(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )
        try:
            self.connection.request(method, f"/api/v1/{path}", json.dumps(body or {}), headers)
        except (BrokenPipeError, ConnectionResetError):
            # The server closed an idle connection before anything was sent; browsers reconnect just so.
            self.connection.close()
            self.connection.request(method, f"/api/v1/{path}", json.dumps(body or {}), headers)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None

    def expect(self, status: int, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of a request with a known status; record any other status in ``problems``."""
        actual_status, answer = self.call(method, path, body)
        if actual_status != status and not (self.unsure and actual_status in {404, 409}):  # it was done the first time
            self.problems.append(f"{method} {path}: {actual_status} {answer}")
        return answer

    def rate_queue(self, queue: int, colleagues: list[Reviewer]) -> None:
        """Rate until no item is left for this reviewer."""
        self.connection.close()  # the server ends idle connections; the next request opens a new one
        while True:
            status, card = self.call("POST", f"review-queues/{queue}/next/")
            if status == 204:
                return
            if status != 200:
                self.problems.append(f"next: {status} {card}")
                return
            self.served_items[card["question_id"]] += 1
            self.rate(queue, card["id"], len(self.rated_items), colleagues)

    def rate(self, queue: int, item: int, number: int, colleagues: list[Reviewer]) -> None:
        """Rate one item, and do at some items what else reviewers do."""
        path = f"items/{item}/"
        if number % 9 == 0:  # a second tab shows the same item, not another
            second_tab_card = self.expect(200, "POST", f"review-queues/{queue}/next/")
            if second_tab_card["id"] != item:
                self.problems.append(f"second tab: {second_tab_card['id']} instead of {item}")
        if number % 11 == 5 and len(self.released_items) < 2 and item not in self.released_items:
            self.released_items.add(item)  # given back; it comes again when nothing else is left
            self.expect(204, "POST", f"{path}release/")
            return
        if number % 7 == 3:
            self.request_foreign_items(colleagues)
        form = {"values": VALUES, "idempotency_key": f"form-{item}", "active_ms": 1000}
        if self.rough and number % 10 == 8:
            self.send_and_disconnect(f"{path}submit/", form)
        first = self.expect(200, "POST", f"{path}submit/", form)
        if number % 5 == 0 and not self.expect(200, "POST", f"{path}submit/", form)["repeated"]:
            self.problems.append(f"a second decision on {item}")
        if first and first.get("reveal"):
            self.expect(200, "POST", f"{path}reveal/")
            self.expect(200, "POST", f"{path}finalise/", {"changes": {}})
        self.rated_items.append(item)

    def send_and_disconnect(self, path: str, form: dict[str, Any]) -> None:
        """Send a form and disconnect before the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        with suppress(OSError):  # the server is away as well
            connection.request("POST", f"/api/v1/{path}", json.dumps(form), headers)
        connection.close()
        self.cuts += 1

    def request_foreign_items(self, colleagues: list[Reviewer]) -> None:
        """Request the addresses of items that others rated."""
        foreign_items = [
            item for colleague in colleagues if colleague is not self for item in colleague.rated_items[-1:]
        ]
        for item in foreign_items[:2]:
            self.expect(404, "GET", f"items/{item}/")
            self.expect(404, "POST", f"items/{item}/submit/", {"values": VALUES, "idempotency_key": "mine"})


def empty_queues(site: Site, people_count: int, items: dict[int, int], *, rough: bool = False) -> None:
    """Let ``people_count`` reviewers empty queues, and check them; ``items`` is the queue size by reviews per item."""
    site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
    created = json.loads(site.python("-m", "tests.review.crowd", str(people_count), json.dumps(items)))
    server = web_server(site, port := free_port())
    reviewers = [Reviewer(port, int(pk), token, rough=rough) for pk, token in created["reviewers"].items()]
    for (overlap, count), queue in zip(items.items(), created["queues"], strict=True):
        for reviewer in reviewers:
            reviewer.served_items.clear()
            reviewer.rated_items.clear()
            reviewer.released_items.clear()
        restarts = restarting_server(site, port, server) if rough else nullcontext(list[float]())
        with restarts as times, ThreadPoolExecutor(people_count) as pool:
            for future in [pool.submit(reviewer.rate_queue, queue, reviewers) for reviewer in reviewers]:
                future.result()
        print(
            f"{people_count} people, {count} items: {sum(reviewer.cuts for reviewer in reviewers)} cuts, "
            f"killed after {times} s"
        )
        assert [odd for reviewer in reviewers for odd in reviewer.problems] == []
        check(site, queue, count, overlap, reviewers)


def check(site: Site, queue: int, items: int, overlap: int, reviewers: list[Reviewer]) -> None:
    """Compare the database with the items that the reviewers rated."""
    live = "a.state NOT IN ('skipped', 'expired', 'flagged')"
    assignments = site.rows(
        "SELECT i.id, i.state, a.reviewer_id, a.slot, a.state, a.id FROM review_reviewitem i "
        f"JOIN review_assignment a ON a.item_id = i.id AND {live} WHERE i.queue_id = {queue}"
    )
    assert Counter(row[0] for row in assignments) == Counter(dict.fromkeys({row[0] for row in assignments}, overlap))
    assert len({row[0] for row in assignments}) == items, "an item was lost"
    assert {row[1] for row in assignments} == {"done"}
    assert {row[4] for row in assignments} == {"finished"}
    assert len({(row[0], row[2]) for row in assignments}) == items * overlap, "a person had an item twice"
    assert len({(row[0], row[3]) for row in assignments}) == items * overlap, "two people had one slot"
    holders = {reviewer.id: set(reviewer.rated_items) for reviewer in reviewers}
    assert {reviewer: {row[5] for row in assignments if row[2] == reviewer} for reviewer in holders} == holders
    ratings = site.rows(
        "SELECT r.assignment_id, r.metric_id, r.reviewer_id, a.reviewer_id, r.seq FROM review_rating r "
        "JOIN review_assignment a ON a.id = r.assignment_id JOIN review_reviewitem i ON i.id = a.item_id "
        f"WHERE i.queue_id = {queue} AND r.phase = 'initial'"
    )
    assert len(ratings) == len({row[:2] for row in ratings}) == items * overlap * len(VALUES), "a rating was doubled"
    assert all(row[2] == row[3] and row[4] == 1 for row in ratings)
    assert (
        max(max(reviewer.served_items.values(), default=0) for reviewer in reviewers) <= 2
    )  # twice only what was given back
