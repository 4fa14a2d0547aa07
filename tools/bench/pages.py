"""Pages that a lead opens, beside a bare Django view: home, runs, a run, its answers, agreement, comparison, its report
as a file, and pages of a queue.

Four runs of 50,000 answers with five metrics each, 50,000 ratings and a queue of 5,000 items, served as ``serve`` does.
What pages read is made by ``work --once`` first. Then each page is opened, with the bare view in between, three times
over:
as it stands, after a reviewer has rated, so that everything kept is old, and after the server was started again, where
the first request of all counts. Beside the times stand size of a page and the memory of the server. At last eight
reviewers work, who pause half a second between turns, without a lead and beside one who opens all pages without pause.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.faults.site import Site, fresh_database
from tools.bench.reviewing import PROCESSES, VALUES, Server, come_to_rest, measured, p95, served

ANSWERS, RATED, SIZE, TURNS = 50_000, 10_000, 5_000, 5
PAGES = {
    "home": "/",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "answers": "/runs/{run}/answers/",
    "answers, last page": "/runs/{run}/answers/?page={last}",
    "answers, by value": "/runs/{run}/answers/?metric=faithfulness&high=2&category=category%203",
    "answers, by word": "/runs/{run}/answers/?q=country+1234",
    "agreement": "/runs/{run}/agreement/",
    "comparison of two": "/runs/compare/?runs={run},{other}",
    "report, HTML": "/runs/{run}/report/?format=html",
    "queues": "/queues/",
    "queue": "/queues/{queue}/",
    "items of a queue": "/queues/{queue}/items/",
    "people of a queue": "/queues/{queue}/people/",
}


class Lead:
    """A lead's browser, and the bare view beside it."""

    def __init__(self, site: Server, floor: Server, session: str) -> None:
        self.site, self.floor = site, floor
        self.headers = {"Cookie": f"sessionid={session}"}

    def open(self, path: str) -> tuple[float, int]:
        """Milliseconds until the whole answer is there, and its bytes."""
        return _timed(self.site.port, path, self.headers)

    def bare(self, number: int) -> float:
        """Milliseconds of the view that reads one row."""
        return _timed(self.floor.port, f"/{number}/", {})[0]


def _timed(port: int, path: str, headers: dict[str, str]) -> tuple[float, int]:
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status != 200 or b'hx-trigger="every 5s"' in content:
        raise RuntimeError(f"{path}: {response.status} {content[:300]!r}")
    return (time.perf_counter() - started) * 1000, len(content)


def shown(title: str, lead: Lead, places: dict[str, Any], turns: int) -> None:
    """Each page so many times, with the bare view in between: median, worst, and the ratio of the medians."""
    lead.bare(1)
    print(f"{title}\n  {'':<20} p50 ms   max ms   x bare       kB")
    for name, path in PAGES.items():
        took, bare, size = [], [], 0
        for turn in range(turns):
            one, size = lead.open(path.format(**places))
            took.append(one)
            bare += [lead.bare(turn + number) for number in range(1, 6)]
        ratio = median(took) / median(bare)
        print(f"  {name:<20} {median(took):6.0f} {max(took):8.0f} {ratio:8.0f} {size / 1000:8.0f}", flush=True)


@contextmanager
def opening(lead: Lead, places: dict[str, Any]) -> Iterator[None]:
    """A lead opens one page after the other meanwhile."""
    stop = threading.Event()

    def go_round() -> None:
        for path in itertools.cycle(PAGES.values()):
            if stop.is_set():
                return
            lead.open(path.format(**places))

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_round)
        try:
            yield
        finally:
            stop.set()
        going.result()


def rate(site: Server, queue: int, token: str) -> None:
    """A reviewer takes an item and rates it."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)

    def ask(path: str, body: Any) -> Any:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {content[:300]!r}")
        return json.loads(content)

    item = ask(f"/api/v1/review-queues/{queue}/next/", {})["id"]
    form = {"values": VALUES, "idempotency_key": secrets.token_hex(8), "active_ms": 30_000}
    ask(f"/api/v1/items/{item}/submit/", form)


def report(site: Site, made: dict[str, Any], answers: int, turns: int) -> None:
    """Everything in turn."""
    run, other = made["runs"][:2]
    (queue,) = made["queues"].values()
    places = {"run": run, "other": other, "queue": queue, "last": answers // 50}
    for kind, runs in [*(("figures", [pk]) for pk in made["runs"]), ("agreement", [run]), ("comparison", [run, other])]:
        started = time.monotonic()
        peak = site.python("-m", "tools.bench.keeping", kind, *map(str, runs)).strip()
        print(f"made from nothing: {kind} of {runs} in {time.monotonic() - started:.0f} s, peak {peak} MB", flush=True)
    server, floor = served(site, "config.rsgi:application"), served(site, "tools.bench.floor:application")
    lead = Lead(server, floor, made["lead"]["session"])
    shown("as it stands, warm", lead, places, turns)
    rate(server, queue, made["people"][0]["token"])
    shown("right after a rating: all of it old, a worker asked", lead, places, turns)
    print(f"{PROCESSES} processes of the web server, peak resident memory of one: {server.peak_memory():.0f} MB")
    alone, _ = measured(server, floor, made["people"], queue, 20, pause=0.5)
    with opening(lead, places):
        beside, _ = measured(server, floor, made["people"], queue, 20, pause=0.5)
    for name, took in alone.items():
        print(
            f"eight reviewers, p95 of {name}: {p95(took):.0f} ms, {p95(beside[name]):.0f} beside the lead", flush=True
        )
    again = Lead(served(site, "config.rsgi:application"), floor, made["lead"]["session"])
    shown("after a start of the server, once each", again, places, 1)


def run(kind: str, answers: int, rated: int, size: int, turns: int) -> None:
    """Fill a database of this kind, serve it, and print what was measured."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        site = Site(Path(name), url, "")
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
        site.manage("migrate", "--verbosity", "0")
        site.manage("collectstatic", "--noinput", "--verbosity", "0")
        started = time.monotonic()
        data = site.python("-m", "tools.bench.review_data", str(answers), str(size), "--rated", str(rated))
        made = json.loads(data)
        site.python("-m", "tools.bench.floor", "--table")
        if site.is_postgres:
            come_to_rest(url)
        told = f"{made['scores']:,} scores of {answers:,} answers, {made['ratings']:,} ratings"
        print(f"{kind}: {told}, made in {time.monotonic() - started:.0f} s", flush=True)
        try:
            report(site, made, answers, turns)
        finally:
            site.stop()


def main() -> None:
    """SQLite, and PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.pages", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--rated", type=int, default=RATED, help="answers with a rating of every metric")
    parser.add_argument("--size", type=int, default=SIZE, help="items of the queue")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    run(given.database, given.answers, given.rated, given.size, given.turns)


if __name__ == "__main__":
    main()
