"""The reviewer's queue over HTTP compared with a bare Django view: next item and submit, as JSON and as HTML.

50,000 answers with 1,000,000 scores, a queue of 5,000 and one of 50,000 items, two reviewers an item. A server as
``serve`` starts it answers one reviewer, then eight at once; each requests the bare view in between, so that ratios
hold on a noisy machine. The next item as HTML is the redirect and the page. For one reviewer the CPU time of the
server's processes is printed too, which depends little on other load of the machine; that of a PostgreSQL server is not
included."""

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

ANSWERS, SIZES, ROUNDS = 50_000, (5_000, 50_000), 60
WARM_UP = 10  # turns that are not measured: every process compiles the templates of its first page
VALUES = {"correctness": {"value": 3}, "faithfulness": {"value": 4}}
PROCESSES = web_processes(int(os.environ.get("CONCORD_WEB_PROCESSES", "0")))  # as `serve` would start
RATING_FORM = "value:correctness=3&value:faithfulness=4"
Times = dict[str, list[float]]


class Browser:
    """A reviewer's connection to the site and one to the bare view. ``times`` are milliseconds by request, ``cpu``
    those of the server, read only where the reviewer is ``alone``: with several they are not attributable, and
    reading them takes as long as a request."""

    def __init__(self, site: Server, floor: Server, keys: dict[str, str], *, alone: bool) -> None:
        self.alone = alone
        self.servers = {"site": site, "bare": floor}
        self.site = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
        self.floor = http.client.HTTPConnection("127.0.0.1", floor.port, timeout=120)
        self.keys = keys
        self.times: Times = defaultdict(list)
        self.cpu: Times = defaultdict(list)

    def take_turn(self, queue: int, number: int) -> None:
        """Rate an item as JSON and one as HTML, each followed by the bare view, on new connections. A real browser
        returns after a minute, and kept connections could by chance all stay with one server process."""
        self.site.close()
        self.floor.close()
        self.rate_as_json(queue)
        self.request_bare("GET", number)
        self.rate_as_html(queue)
        self.request_bare("POST", number)

    def rate_as_json(self, queue: int) -> None:
        """Fetch an item and rate it by REST."""
        headers = {"Authorization": f"Bearer {self.keys['token']}", "Content-Type": "application/json"}
        with self.timed("next JSON"):
            card = json.loads(_answer(self.site, "POST", f"/api/v1/review-queues/{queue}/next/", "{}", headers))
        form = {"values": VALUES, "idempotency_key": secrets.token_hex(8), "active_ms": 30_000}
        with self.timed("submit JSON"):
            _answer(self.site, "POST", f"/api/v1/items/{card['id']}/submit/", json.dumps(form), headers)

    def rate_as_html(self, queue: int) -> None:
        """Fetch an item and rate it by the page."""
        headers = {"Cookie": f"sessionid={self.keys['session']}; csrftoken={'c' * 32}"}
        with self.timed("next HTML"):
            page = _answer(self.site, "GET", f"/review/{queue}/", "", headers).decode()
        item_path, key = re.search(r'data-item="(\S+)"', page), re.search(r'name="form_key" value="(\w+)"', page)
        assert item_path, page[:500]
        assert key, page[:500]
        form = (
            f"csrfmiddlewaretoken={'c' * 32}&form_key={key[1]}&value:correctness=3&value:faithfulness=4&active_ms=30000"
        )
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        with self.timed("submit HTML"):
            _answer(self.site, "POST", f"{item_path[1]}submit/", form, headers)

    def request_bare(self, method: str, number: int) -> None:
        """Request the view that executes one statement."""
        with self.timed(f"bare {method}"):
            _answer(self.floor, method, f"/{number + 1}/", "", {})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Record the time of the request."""
        server = self.servers["bare" if name.startswith("bare") else "site"]
        cpu_before, start = server.cpu() if self.alone else 0.0, time.perf_counter()
        yield
        self.times[name].append((time.perf_counter() - start) * 1000)
        if self.alone:
            self.cpu[name].append(server.cpu() - cpu_before)


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
        return max(int(kilobytes) for status in statuses for kilobytes in re.findall(r"VmHWM:\s+(\d+)", status)) / 1024


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


def measure_reviewers(
    site: Server, floor: Server, reviewer_keys: Sequence[dict[str, str]], queue: int, rounds: int, pause: float = 0.0
) -> tuple[Times, Times]:
    """Measure waiting times of simultaneous reviewers, and the servers' CPU time. Reviewers ``pause`` that many seconds
    between turns."""
    browsers = [Browser(site, floor, keys, alone=len(reviewer_keys) == 1) for keys in reviewer_keys]

    def work(browser: Browser) -> None:
        for number in range(-WARM_UP, rounds):
            if number == 0:
                browser.times.clear()
                browser.cpu.clear()
            browser.take_turn(queue, abs(number))
            time.sleep(pause)

    with ThreadPoolExecutor(len(browsers)) as pool:
        for future in [pool.submit(work, browser) for browser in browsers]:
            future.result()
    return _join_times([b.times for b in browsers]), _join_times([b.cpu for b in browsers])


def _join_times(times_by_browser: Sequence[Times]) -> Times:
    return {name: [value for times in times_by_browser for value in times[name]] for name in times_by_browser[0]}


def show(title: str, times: Times, cpu: Times | None) -> None:
    """Median, 95th percentile, the ratio of the medians to the bare view, and the server's CPU time."""
    print(f"{title}\n  {'':<12} p50 ms   p95 ms   x bare" + ("   CPU p50 ms   x bare" if cpu else ""))
    for name, samples in times.items():
        bare_name = "bare GET" if name.startswith(("next", "bare GET")) else "bare POST"
        line = (
            f"  {name:<12} {median(samples):6.1f} {p95(samples):8.1f} {median(samples) / median(times[bare_name]):8.1f}"
        )
        if cpu:
            line += f"   {median(cpu[name]):10.1f} {median(cpu[name]) / median(cpu[bare_name]):8.1f}"
        print(line, flush=True)


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return quantiles(values, n=20)[18]


def start_server(site: Site, application: str) -> Server:
    """Start a web server as ``serve`` does."""
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


def run(kind: str, answers: int, sizes: Sequence[int], rounds: int) -> None:
    """Fill a database of this kind, serve it, and print the measurements."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        site = Site(Path(name), url, "")
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
        site.manage("migrate", "--verbosity", "0")
        site.manage("collectstatic", "--noinput", "--verbosity", "0")
        start = time.monotonic()
        review_data = json.loads(site.python("-m", "tools.bench.review_data", str(answers), *map(str, sizes)))
        site.python("-m", "tools.bench.floor", "--table")
        if site.is_postgres:
            settle_postgres(url)
        print(
            f"{kind}: {review_data['scores']:,} scores of {answers:,} answers, made in {time.monotonic() - start:.0f} s"
        )
        try:
            report(site, review_data, rounds)
        finally:
            site.stop()


def settle_postgres(url: str) -> None:
    """Run PostgreSQL's deferred maintenance before measuring. Tables without rows are left out."""
    with psycopg.connect(url, autocommit=True) as server:
        for (table,) in server.execute("SELECT relname FROM pg_stat_user_tables WHERE n_live_tup > 0").fetchall():
            server.execute(SQL("VACUUM (ANALYZE) {}").format(Identifier(table)))
        server.execute("CHECKPOINT")


def report(site: Site, review_data: dict[str, dict[str, int]], rounds: int) -> None:
    """Each queue for one reviewer and for eight; growth between the queues; memory."""
    server, floor = start_server(site, "config.rsgi:application"), start_server(site, "tools.bench.floor:application")
    times_of_one: dict[str, tuple[Times, Times]] = {}
    for size, queue in review_data["queues"].items():
        for reviewer_keys in (review_data["people"][:1], review_data["people"]):  # type: ignore[index]  # a list, by its key
            times, cpu = measure_reviewers(server, floor, reviewer_keys, queue, rounds)
            show(
                f"queue of {size} items, reviewers at once: {len(reviewer_keys)}",
                times,
                cpu if len(reviewer_keys) == 1 else None,
            )
            if len(reviewer_keys) == 1:
                times_of_one[size] = times, cpu
    for title, times_small, times_large in zip(("waiting", "CPU"), *times_of_one.values(), strict=True):
        growth = [f"{name} {median(times_large[name]) / median(times_small[name]):.2f}" for name in times_small]
        print(f"growth of the medians from the small to the large queue, one reviewer, {title}: " + ", ".join(growth))
    print(f"{PROCESSES} processes of the web server, peak resident memory of one: {server.peak_memory():.0f} MB")


def main() -> None:
    """SQLite, and PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.reviewing", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--sizes", type=int, nargs=2, default=list(SIZES))
    parser.add_argument("--turns", type=int, default=ROUNDS)
    options = parser.parse_args()
    run(options.database, options.answers, options.sizes, options.turns)


if __name__ == "__main__":
    main()
