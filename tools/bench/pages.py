"""Pages that a lead opens, compared with a bare Django view: home, runs, a run, its answers, agreement, comparison, its
report as a file, and pages of a queue.

Four runs of 50,000 answers with five metrics each, 50,000 ratings and a queue of 5,000 items, served as ``serve`` does.
``work --once`` first builds the cached figures. Then each page is opened, alternating with the bare view, in three
situations: with fresh caches, after a reviewer has rated (all caches stale), and after a restart of the server, where
the first request counts. The size of each page and the memory of the server are printed too. At the end eight reviewers
work, with half a second between turns, first without a lead and then next to one who opens all pages without pause."""

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
from tools.bench.reviewing import PROCESSES, VALUES, Server, measure_reviewers, p95, settle_postgres, start_server

ANSWERS, RATED_ANSWERS, SIZE, ROUNDS = 50_000, 10_000, 5_000, 5
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
    """A lead's browser, with access to the bare view."""

    def __init__(self, site: Server, floor: Server, session: str) -> None:
        self.site, self.floor = site, floor
        self.headers = {"Cookie": f"sessionid={session}"}

    def open(self, path: str) -> tuple[float, int]:
        """Return milliseconds until the response is complete, and its bytes."""
        return _timed(self.site.port, path, self.headers)

    def open_bare(self, number: int) -> float:
        """Milliseconds of the view that reads one row."""
        return _timed(self.floor.port, f"/{number}/", {})[0]


def _timed(port: int, path: str, headers: dict[str, str]) -> tuple[float, int]:
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status != 200 or b'hx-trigger="every 5s"' in content:
        raise RuntimeError(f"{path}: {response.status} {content[:300]!r}")
    return (time.perf_counter() - start) * 1000, len(content)


def time_pages(title: str, lead: Lead, address_fields: dict[str, Any], rounds: int) -> None:
    """Time each page ``rounds`` times, with the bare view in between, and print median, worst and the ratio of the
    medians."""
    lead.open_bare(1)
    print(f"{title}\n  {'':<20} p50 ms   max ms   x bare       kB")
    for name, path in PAGES.items():
        page_times, bare_times, size = [], [], 0
        for round_number in range(rounds):
            milliseconds, size = lead.open(path.format(**address_fields))
            page_times.append(milliseconds)
            bare_times += [lead.open_bare(round_number + number) for number in range(1, 6)]
        ratio = median(page_times) / median(bare_times)
        print(
            f"  {name:<20} {median(page_times):6.0f} {max(page_times):8.0f} {ratio:8.0f} {size / 1000:8.0f}", flush=True
        )


@contextmanager
def browse_pages(lead: Lead, address_fields: dict[str, Any]) -> Iterator[None]:
    """Open one page after another as a lead, in the background."""
    stop = threading.Event()

    def open_all_pages() -> None:
        for path in itertools.cycle(PAGES.values()):
            if stop.is_set():
                return
            lead.open(path.format(**address_fields))

    with ThreadPoolExecutor(1) as pool:
        browsing = pool.submit(open_all_pages)
        try:
            yield
        finally:
            stop.set()
        browsing.result()


def rate(site: Server, queue: int, token: str) -> None:
    """A reviewer takes an item and rates it."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)

    def post(path: str, body: Any) -> Any:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {content[:300]!r}")
        return json.loads(content)

    item = post(f"/api/v1/review-queues/{queue}/next/", {})["id"]
    form = {"values": VALUES, "idempotency_key": secrets.token_hex(8), "active_ms": 30_000}
    post(f"/api/v1/items/{item}/submit/", form)


def report(site: Site, review_data: dict[str, Any], answers: int, rounds: int) -> None:
    """Measure and print every step."""
    run, other_run = review_data["runs"][:2]
    (queue,) = review_data["queues"].values()
    address_fields = {"run": run, "other": other_run, "queue": queue, "last": answers // 50}
    for kind, runs in [
        *(("figures", [pk]) for pk in review_data["runs"]),
        ("agreement", [run]),
        ("comparison", [run, other_run]),
    ]:
        start = time.monotonic()
        peak = site.python("-m", "tools.bench.keeping", kind, *map(str, runs)).strip()
        print(f"made from nothing: {kind} of {runs} in {time.monotonic() - start:.0f} s, peak {peak} MB", flush=True)
    server, floor = start_server(site, "config.rsgi:application"), start_server(site, "tools.bench.floor:application")
    lead = Lead(server, floor, review_data["lead"]["session"])
    time_pages("as it stands, warm", lead, address_fields, rounds)
    rate(server, queue, review_data["people"][0]["token"])
    time_pages("right after a rating: all of it old, a worker asked", lead, address_fields, rounds)
    print(f"{PROCESSES} processes of the web server, peak resident memory of one: {server.peak_memory():.0f} MB")
    undisturbed, _ = measure_reviewers(server, floor, review_data["people"], queue, 20, pause=0.5)
    with browse_pages(lead, address_fields):
        disturbed, _ = measure_reviewers(server, floor, review_data["people"], queue, 20, pause=0.5)
    for name, times in undisturbed.items():
        print(
            f"eight reviewers, p95 of {name}: {p95(times):.0f} ms, {p95(disturbed[name]):.0f} beside the lead",
            flush=True,
        )
    restarted_lead = Lead(start_server(site, "config.rsgi:application"), floor, review_data["lead"]["session"])
    time_pages("after a start of the server, once each", restarted_lead, address_fields, 1)


def run(kind: str, answers: int, rated_count: int, size: int, rounds: int) -> None:
    """Fill a database of this kind, serve it, and print the measurements."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        site = Site(Path(name), url, "")
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
        site.manage("migrate", "--verbosity", "0")
        site.manage("collectstatic", "--noinput", "--verbosity", "0")
        start = time.monotonic()
        data = site.python("-m", "tools.bench.review_data", str(answers), str(size), "--rated", str(rated_count))
        review_data = json.loads(data)
        site.python("-m", "tools.bench.floor", "--table")
        if site.is_postgres:
            settle_postgres(url)
        summary = f"{review_data['scores']:,} scores of {answers:,} answers, {review_data['ratings']:,} ratings"
        print(f"{kind}: {summary}, made in {time.monotonic() - start:.0f} s", flush=True)
        try:
            report(site, review_data, answers, rounds)
        finally:
            site.stop()


def main() -> None:
    """SQLite, and PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.pages", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--rated", type=int, default=RATED_ANSWERS, help="answers with a rating of every metric")
    parser.add_argument("--size", type=int, default=SIZE, help="items of the queue")
    parser.add_argument("--turns", type=int, default=ROUNDS)
    options = parser.parse_args()
    run(options.database, options.answers, options.rated, options.size, options.turns)


if __name__ == "__main__":
    main()
