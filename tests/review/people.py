"""People who empty review queues over HTTP at once, and what must be true of the database afterwards.

Besides rating, they do what people do: send forms twice, give items back, open two tabs, and try each other's
addresses. Where it is rough, one form in ten is sent over a connection that is cut before the answer, and the web
server is killed and started again in the middle; who hears nothing asks again.
"""

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
def killed_and_started_again(site: Site, port: int, process: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """The web server dies and comes back meanwhile; when, in seconds since the beginning."""
    done, times, began = threading.Event(), list[float](), time.monotonic()

    def restart() -> None:
        server = process
        while len(times) < RESTARTS and not done.wait(EVERY_SECONDS):
            for pid in [*descendants(server.pid), server.pid]:
                kill(pid)
            times.append(time.monotonic() - began)
            server = web_server(site, port)

    with ThreadPoolExecutor(1) as pool:
        restarting = pool.submit(restart)
        try:
            yield times
        finally:
            done.set()
        restarting.result()


@dataclass
class Reviewer:
    """A person with a token and a connection; ``given`` are the items they were given, ``rated`` what they rated.
    ``unsure``: the last request was sent more than once, since nothing was heard of it; ``cuts`` counts forms of which
    they heard nothing by their own doing."""

    port: int
    id: int
    token: str
    given: Counter[str] = field(default_factory=Counter)
    rated: list[int] = field(default_factory=list)
    put_down: set[int] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    rough: bool = False
    unsure: bool = False
    cuts: int = 0

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request."""
        self.unsure, end = False, time.monotonic() + 60
        while True:
            try:
                return self._call(method, path, body)
            except (OSError, http.client.HTTPException):
                self.connection.close()
                if not self.rough or time.monotonic() > end:
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
        """The JSON of a request whose status is known; anything else is remembered."""
        found, answer = self.call(method, path, body)
        if found != status and not (self.unsure and found in {404, 409}):  # it was done the first time
            self.odd.append(f"{method} {path}: {found} {answer}")
        return answer

    def empty(self, queue: int, others: list[Reviewer]) -> None:
        """Rate until nothing is left for this person."""
        self.connection.close()  # the server ends idle connections; the next request opens a new one
        while True:
            status, card = self.call("POST", f"review-queues/{queue}/next/")
            if status == 204:
                return
            if status != 200:
                self.odd.append(f"next: {status} {card}")
                return
            self.given[card["question_id"]] += 1
            self.rate(queue, card["id"], len(self.rated), others)

    def rate(self, queue: int, item: int, turn: int, others: list[Reviewer]) -> None:
        """Rate one item, with what else people do at some of them."""
        path = f"items/{item}/"
        if turn % 9 == 0:  # a second tab shows the same item, not another
            again = self.expect(200, "POST", f"review-queues/{queue}/next/")
            if again["id"] != item:
                self.odd.append(f"second tab: {again['id']} instead of {item}")
        if turn % 11 == 5 and len(self.put_down) < 2 and item not in self.put_down:
            self.put_down.add(item)  # given back; it comes again when nothing else is left
            self.expect(204, "POST", f"{path}release/")
            return
        if turn % 7 == 3:
            self.trespass(others)
        form = {"values": VALUES, "idempotency_key": f"form-{item}", "active_ms": 1000}
        if self.rough and turn % 10 == 8:
            self.cut(f"{path}submit/", form)
        first = self.expect(200, "POST", f"{path}submit/", form)
        if turn % 5 == 0 and not self.expect(200, "POST", f"{path}submit/", form)["repeated"]:
            self.odd.append(f"a second decision on {item}")
        if first and first.get("reveal"):
            self.expect(200, "POST", f"{path}reveal/")
            self.expect(200, "POST", f"{path}finalise/", {"changes": {}})
        self.rated.append(item)

    def cut(self, path: str, form: dict[str, Any]) -> None:
        """Send a form and go away before the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        with suppress(OSError):  # the server is away as well
            connection.request("POST", f"/api/v1/{path}", json.dumps(form), headers)
        connection.close()
        self.cuts += 1

    def trespass(self, others: list[Reviewer]) -> None:
        """Try the address of an item that somebody else rated."""
        theirs = [item for other in others if other is not self for item in other.rated[-1:]]
        for item in theirs[:2]:
            self.expect(404, "GET", f"items/{item}/")
            self.expect(404, "POST", f"items/{item}/submit/", {"values": VALUES, "idempotency_key": "mine"})


def empty_queues(site: Site, people_count: int, items: dict[int, int], *, rough: bool = False) -> None:
    """Let so many people empty queues of so many items, by the number of reviewers each needs, and check them."""
    site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
    made = json.loads(site.python("-m", "tests.review.crowd", str(people_count), json.dumps(items)))
    server = web_server(site, port := free_port())
    people = [Reviewer(port, int(pk), token, rough=rough) for pk, token in made["reviewers"].items()]
    for (overlap, count), queue in zip(items.items(), made["queues"], strict=True):
        for one in people:
            one.given.clear()
            one.rated.clear()
            one.put_down.clear()
        restarts = killed_and_started_again(site, port, server) if rough else nullcontext(list[float]())
        with restarts as times, ThreadPoolExecutor(people_count) as pool:
            for done in [pool.submit(one.empty, queue, people) for one in people]:
                done.result()
        print(f"{people_count} people, {count} items: {sum(one.cuts for one in people)} cuts, killed after {times} s")
        assert [odd for one in people for odd in one.odd] == []
        check(site, queue, count, overlap, people)


def check(site: Site, queue: int, items: int, overlap: int, people: list[Reviewer]) -> None:
    """Compare what the database holds with what people were given."""
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
    holders = {one.id: set(one.rated) for one in people}
    assert {one: {row[5] for row in assignments if row[2] == one} for one in holders} == holders
    ratings = site.rows(
        "SELECT r.assignment_id, r.metric_id, r.reviewer_id, a.reviewer_id, r.seq FROM review_rating r "
        "JOIN review_assignment a ON a.id = r.assignment_id JOIN review_reviewitem i ON i.id = a.item_id "
        f"WHERE i.queue_id = {queue} AND r.phase = 'initial'"
    )
    assert len(ratings) == len({row[:2] for row in ratings}) == items * overlap * len(VALUES), "a rating was doubled"
    assert all(row[2] == row[3] and row[4] == 1 for row in ratings)
    assert max(max(one.given.values(), default=0) for one in people) <= 2  # twice only what was given back
