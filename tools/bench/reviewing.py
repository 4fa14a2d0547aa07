"""The reviewer's queue over HTTP beside a bare Django view: next item and submit, as JSON and as HTML.

50,000 answers with 1,000,000 scores, a queue of 5,000 and one of 50,000 items, two reviewers an item. A server as
``serve`` starts it answers one reviewer, then eight at once; each asks the bare view in between, so that ratios hold
on a noisy machine. The next item as HTML is the redirect and the page. Beside the time a reviewer waits stands the CPU
time of the server's process for it (one reviewer only), which depends little on what else the machine does; that of a
PostgreSQL server is not in it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import secrets
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import psycopg
from psycopg.sql import SQL, Identifier

from evaluation.worker.serving import web_command, web_processes
from tests.faults.site import Site, descendants, free_port, fresh_database

ANSWERS, SIZES, TURNS = 50_000, (5_000, 50_000), 60
WARM_UP = 10  # turns that are not measured: every process compiles the templates of its first page
VALUES = {"correctness": {"value": 3}, "faithfulness": {"value": 4}}
PROCESSES = web_processes(int(os.environ.get("CONCORD_WEB_PROCESSES", "0")))  # as `serve` would start
RATED = "value:correctness=3&value:faithfulness=4"
Times = dict[str, list[float]]


class Browser:
    """A reviewer's connection to the site and one to the bare view; ``times`` are milliseconds by what was asked,
    ``cpu`` those of the server, which are read where the reviewer is ``alone``: of several they would tell nothing, and
    reading them takes as long as a request."""

    def __init__(self, site: Server, floor: Server, keys: dict[str, str], *, alone: bool) -> None:
        self.alone = alone
        self.servers = {"site": site, "bare": floor}
        self.site = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
        self.floor = http.client.HTTPConnection("127.0.0.1", floor.port, timeout=120)
        self.keys = keys
        self.times: Times = defaultdict(list)
        self.cpu: Times = defaultdict(list)

    def turn(self, queue: int, number: int) -> None:
        """An item as JSON, an item as HTML, and the bare view beside each, on connections of this turn: a reviewer's
        browser comes back after a minute. Which process of the server has a connection is the kernel's choice, and
        kept ones would stay where they are by chance, all eight with one process in the worst case."""
        self.site.close()
        self.floor.close()
        self.as_json(queue)
        self.bare("GET", number)
        self.as_html(queue)
        self.bare("POST", number)

    def as_json(self, queue: int) -> None:
        """Fetch an item and rate it by REST."""
        headers = {"Authorization": f"Bearer {self.keys['token']}", "Content-Type": "application/json"}
        with self.timed("next JSON"):
            card = json.loads(_answer(self.site, "POST", f"/api/v1/review-queues/{queue}/next/", "{}", headers))
        form = {"values": VALUES, "idempotency_key": secrets.token_hex(8), "active_ms": 30_000}
        with self.timed("submit JSON"):
            _answer(self.site, "POST", f"/api/v1/items/{card['id']}/submit/", json.dumps(form), headers)

    def as_html(self, queue: int) -> None:
        """Fetch an item and rate it by the page."""
        headers = {"Cookie": f"sessionid={self.keys['session']}; csrftoken={'c' * 32}"}
        with self.timed("next HTML"):
            page = _answer(self.site, "GET", f"/review/{queue}/", "", headers).decode()
        place, key = re.search(r'data-item="(\S+)"', page), re.search(r'name="form_key" value="(\w+)"', page)
        assert place, page[:500]
        assert key, page[:500]
        form = (
            f"csrfmiddlewaretoken={'c' * 32}&form_key={key[1]}&value:correctness=3&value:faithfulness=4&active_ms=30000"
        )
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        with self.timed("submit HTML"):
            _answer(self.site, "POST", f"{place[1]}submit/", form, headers)

    def bare(self, method: str, number: int) -> None:
        """The view that does nothing but one statement."""
        with self.timed(f"bare {method}"):
            _answer(self.floor, method, f"/{number + 1}/", "", {})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note what the request took."""
        server = self.servers["bare" if name.startswith("bare") else "site"]
        used, started = server.cpu() if self.alone else 0.0, time.perf_counter()
        yield
        self.times[name].append((time.perf_counter() - started) * 1000)
        if self.alone:
            self.cpu[name].append(server.cpu() - used)


@dataclass(frozen=True)
class Server:
    """A started web server: its port, and its processes."""

    port: int
    pids: Sequence[int]

    def cpu(self) -> float:
        """CPU time of all their threads so far, in milliseconds."""
        threads = [thread for pid in self.pids for thread in Path(f"/proc/{pid}/task").glob("*/schedstat")]
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6

    def peak_memory(self) -> float:
        """The largest resident set of a process so far, in MB."""
        statuses = [Path(f"/proc/{pid}/status").read_text() for pid in self.pids]
        return max(int(found) for status in statuses for found in re.findall(r"VmHWM:\s+(\d+)", status)) / 1024


def _answer(
    connection: http.client.HTTPConnection, method: str, path: str, body: str, headers: dict[str, str]
) -> bytes:
    """The content of an answer; anything but success or a redirect ends the bench."""
    connection.request(method, path, body or None, headers)
    response = connection.getresponse()
    content = response.read()
    if response.status not in {200, 302}:
        raise RuntimeError(f"{method} {path}: {response.status} {content[:500]!r}")
    return content


def measured(
    site: Server, floor: Server, people: Sequence[dict[str, str]], queue: int, turns: int, pause: float = 0.0
) -> tuple[Times, Times]:
    """What so many reviewers at once wait for, and the servers' CPU time meanwhile. They ``pause`` so many seconds
    between turns."""
    browsers = [Browser(site, floor, keys, alone=len(people) == 1) for keys in people]

    def work(browser: Browser) -> None:
        for number in range(-WARM_UP, turns):
            if number == 0:
                browser.times.clear()
                browser.cpu.clear()
            browser.turn(queue, abs(number))
            time.sleep(pause)

    with ThreadPoolExecutor(len(browsers)) as pool:
        for done in [pool.submit(work, browser) for browser in browsers]:
            done.result()
    return _joined([b.times for b in browsers]), _joined([b.cpu for b in browsers])


def _joined(several: Sequence[Times]) -> Times:
    return {name: [one for times in several for one in times[name]] for name in several[0]}


def show(title: str, times: Times, cpu: Times | None) -> None:
    """Median, 95th percentile, the ratio of the medians to the bare view, and the server's CPU time."""
    print(f"{title}\n  {'':<12} p50 ms   p95 ms   x bare" + ("   CPU p50 ms   x bare" if cpu else ""))
    for name, took in times.items():
        bare = "bare GET" if name.startswith(("next", "bare GET")) else "bare POST"
        line = f"  {name:<12} {median(took):6.1f} {p95(took):8.1f} {median(took) / median(times[bare]):8.1f}"
        if cpu:
            line += f"   {median(cpu[name]):10.1f} {median(cpu[name]) / median(cpu[bare]):8.1f}"
        print(line, flush=True)


def p95(took: Sequence[float]) -> float:
    """The 95th percentile."""
    return quantiles(took, n=20)[18]


def served(site: Site, application: str) -> Server:
    """A server as ``serve`` starts it."""
    port = free_port()
    process = site.start(*web_command("127.0.0.1", port, PROCESSES, application)[1:])
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/")
            connection.getresponse().read()
            return Server(port, [process.pid, *descendants(process.pid)])
        except OSError:
            time.sleep(0.3)
    raise RuntimeError((site.folder / "log").read_text(errors="replace")[-3000:])


def run(kind: str, answers: int, sizes: Sequence[int], turns: int) -> None:
    """Fill a database of this kind, serve it, and print what was measured."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        site = Site(Path(name), url, "")
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
        site.manage("migrate", "--verbosity", "0")
        site.manage("collectstatic", "--noinput", "--verbosity", "0")
        started = time.monotonic()
        made = json.loads(site.python("-m", "tools.bench.review_data", str(answers), *map(str, sizes)))
        site.python("-m", "tools.bench.floor", "--table")
        if site.is_postgres:
            come_to_rest(url)
        print(f"{kind}: {made['scores']:,} scores of {answers:,} answers, made in {time.monotonic() - started:.0f} s")
        try:
            report(site, made, turns)
        finally:
            site.stop()


def come_to_rest(url: str) -> None:
    """Have PostgreSQL do now what it would do in the minutes after so many rows, beside the reviewers. Tables without
    any it would leave alone."""
    with psycopg.connect(url, autocommit=True) as server:
        for (table,) in server.execute("SELECT relname FROM pg_stat_user_tables WHERE n_live_tup > 0").fetchall():
            server.execute(SQL("VACUUM (ANALYZE) {}").format(Identifier(table)))
        server.execute("CHECKPOINT")


def report(site: Site, made: dict[str, dict[str, int]], turns: int) -> None:
    """Each queue for one reviewer and for eight; growth between the queues; memory."""
    server, floor = served(site, "config.rsgi:application"), served(site, "tools.bench.floor:application")
    alone: dict[str, tuple[Times, Times]] = {}
    for size, queue in made["queues"].items():
        for people in (made["people"][:1], made["people"]):  # type: ignore[index]  # a list, by its key
            times, cpu = measured(server, floor, people, queue, turns)
            show(f"queue of {size} items, reviewers at once: {len(people)}", times, cpu if len(people) == 1 else None)
            if len(people) == 1:
                alone[size] = times, cpu
    for title, small, large in zip(("waiting", "CPU"), *alone.values(), strict=True):
        growth = [f"{name} {median(large[name]) / median(small[name]):.2f}" for name in small]
        print(f"growth of the medians from the small to the large queue, one reviewer, {title}: " + ", ".join(growth))
    print(f"{PROCESSES} processes of the web server, peak resident memory of one: {server.peak_memory():.0f} MB")


def main() -> None:
    """SQLite, and PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.reviewing", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--sizes", type=int, nargs=2, default=list(SIZES))
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    run(given.database, given.answers, given.sizes, given.turns)


if __name__ == "__main__":
    main()
