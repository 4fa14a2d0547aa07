"""A large file of answers by the page, while reviewers rate: ``python -m tools.bench.uploads [--rows 200000]``.

The site runs as ``serve`` starts it: web server, workers, watchdog. A lead sends a generated file of about a kilobyte a
row by the page *New evaluation*, waits for the preview, and confirms; reviewers rate by the page all the while, each a
little over once a second. Printed are the longest transactions of each step with the lines that opened them (SQLite's
all hold the right to write), reviewers' submits beside those before the upload, and the largest resident memory of a
process. Promised: no write transaction over 1 s, submits' 95th percentile under 300 ms, at most 500 MB.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.faults.site import Site, command_line, descendants, free_port, fresh_database
from tools.bench.reviewing import Browser, Server, come_to_rest, p95

ROWS, REVIEWERS, ITEMS = 200_000, 4, 5_000
LEAST = 10  # submits of which a percentile is told
REST_SECONDS = 20.0  # in which reviewers are measured alone
THINKING_SECONDS = 1.0
MOST_SECONDS, MOST_MILLISECONDS, MOST_MEGABYTES = 1.0, 300.0, 500.0
PASSAGE = "The river rises in the north and reaches the sea after three hundred kilometres of hills and fields. " * 2
FAST = {  # made short for faults
    "CONCORD_CALL_SECONDS",
    *(f"SITE_{name}_SECONDS" for name in ("LEASE", "BUDGET", "HEARTBEAT", "WEDGED")),
}


def write_files(folder: Path, rows: int) -> tuple[Path, Path]:
    """The questions and the answers to them."""
    asked, said = folder / "questions.jsonl", folder / "answers.jsonl"
    with asked.open("w", encoding="utf-8") as file:
        for n in range(rows):
            row = {"id": f"q{n}", "question": f"Where does river {n} rise?", "reference": f"In valley {n}."}
            file.write(json.dumps(row) + "\n")
    with said.open("w", encoding="utf-8") as file:
        for n in range(rows):
            answer = f"River {n} rises in valley {n}, as the atlas says. " * 4
            contexts = [f"{PASSAGE} Passage {place} of river {n}." for place in range(3)]
            file.write(json.dumps({"question_id": f"q{n}", "answer": answer, "contexts": contexts}) + "\n")
    return asked, said


class Lead:
    """A lead's browser."""

    def __init__(self, port: int, session: str) -> None:
        self.port, self.token = port, "c" * 32
        self.headers = {"Cookie": f"sessionid={session}; csrftoken={self.token}"}

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[str, str]:
        """The page and the address it leads to, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1800)
        connection.request(method, path, body, self.headers | (headers or {}))  # type: ignore[arg-type]
        response = connection.getresponse()
        page = response.read().decode()
        if response.status not in {200, 302}:
            raise RuntimeError(f"{method} {path}: {response.status} {page[:2000]}")
        return page, response.headers.get("Location", "")

    def post(self, path: str) -> None:
        """Press a button that says nothing more."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        self.ask("POST", path, f"csrfmiddlewaretoken={self.token}", kind)

    def send(self, file: Path, questions: int) -> str:
        """Send the file as a browser does; the address of its preview."""
        mark = secrets.token_hex(12)
        fields = {"csrfmiddlewaretoken": self.token, "questions": questions, "system": "large-rag"}
        part = f'--{mark}\r\nContent-Disposition: form-data; name="%s"'
        head = "".join(f"{part % name}\r\n\r\n{value}\r\n" for name, value in fields.items())
        head += f'{part % "file"}; filename="{file.name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        tail = f"\r\n--{mark}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield head.encode()
            with file.open("rb") as data:
                while piece := data.read(1 << 18):
                    yield piece
            yield tail

        size = len(head.encode()) + file.stat().st_size + len(tail)
        kind = {"Content-Type": f"multipart/form-data; boundary={mark}", "Content-Length": str(size)}
        return self.ask("POST", "/evaluations/new/", body(), kind)[1]

    def wait_while_at_work(self, path: str) -> tuple[str, str]:
        """Look every two seconds, as the page does, until workers are done; the page, or where it leads to."""
        while True:
            page, moved = self.ask("GET", path)
            if moved or "hx-trigger" not in page:
                return page, moved
            time.sleep(2)


class Reviewers:
    """People who rate all the while; ``times`` of their submits in milliseconds, each with the moment it ended."""

    def __init__(self, server: Server, people: Sequence[dict[str, str]], queue: int) -> None:
        self.times: list[tuple[float, float]] = []
        self.faults: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(server, one, queue)) for one in people]
        for one in self._threads:
            one.start()

    def _work(self, server: Server, keys: dict[str, str], queue: int) -> None:
        browser = Browser(server, server, keys, alone=False)
        while not self._over.wait(THINKING_SECONDS):
            try:
                browser.site.close()
                browser.as_html(queue)
                self.times.append((time.time(), browser.times["submit HTML"][-1]))
            except Exception as fault:  # noqa: BLE001 -- told at the end: a reviewer who is refused is a finding
                self.faults.append(repr(fault)[:300])

    def between(self, start: float, end: float) -> list[float]:
        """Submits that ended in a time."""
        return [took for at, took in self.times if start <= at <= end]

    def stop(self) -> None:
        """Let them finish what they are at."""
        self._over.set()
        for one in self._threads:
            one.join()


def run(kind: str, rows: int) -> None:
    """Fill a database of this kind, serve it, upload, and print what was measured."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        folder = Path(name)
        site = Site(folder, url, "")
        noted = folder / "transactions.jsonl"
        noted.touch()
        site.environment = {name: value for name, value in site.environment.items() if name not in FAST} | {
            **{"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"},
            "DJANGO_SETTINGS_MODULE": "tools.bench.timed_settings",
        }
        site.manage("migrate", "--verbosity", "0")
        asked, said = write_files(folder, rows)
        made = json.loads(site.python("-m", "tools.bench.review_data", str(ITEMS), str(ITEMS)))
        ((project,),) = site.rows(
            "SELECT name FROM evaluation_project WHERE id = (SELECT MAX(project_id) FROM evaluation_run)"
        )
        site.manage("import_questions", str(asked), "--name", "rivers", "--project", project)
        ((questions,),) = site.rows("SELECT id FROM evaluation_questionset WHERE name = 'rivers'")
        if site.is_postgres:
            come_to_rest(url)
        print(f"{kind}: {rows:,} rows, {said.stat().st_size / 1e6:.0f} MB", flush=True)
        try:
            with serving(site) as server:
                measure(server, made, said, int(questions), noted)
        finally:
            site.stop()


@contextmanager
def serving(site: Site) -> Iterator[Server]:
    """The site as ``serve`` starts it, once it answers."""
    port = free_port()
    process = site.start("manage.py", "serve", "--port", str(port))
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/login/")
            connection.getresponse().read()
            break
        except OSError:
            time.sleep(0.3)
    else:
        raise RuntimeError((site.folder / "log").read_text(errors="replace")[-3000:])
    yield Server(port, [process.pid])


def measure(server: Server, made: dict[str, dict[str, object]], file: Path, questions: int, noted: Path) -> None:
    """The upload, step by step, with reviewers at work."""
    lead = Lead(server.port, str(made["lead"]["session"]))
    queue = int(str(made["queues"][str(ITEMS)]))
    people: Sequence[dict[str, str]] = made["people"][:REVIEWERS]  # type: ignore[index, assignment] # a list, by its key
    reviewers = Reviewers(server, people, queue)
    marks = [("before", time.time())]
    try:
        time.sleep(REST_SECONDS)
        marks.append(("sending", time.time()))
        preview = lead.send(file, questions)
        marks.append(("checking", time.time()))
        page, moved = lead.wait_while_at_work(preview)
        if moved or f"{preview}confirm/" not in page:
            raise RuntimeError(re.sub(r"\s+", " ", page)[:3000])
        marks.append(("storing", time.time()))
        lead.post(f"{preview}confirm/")
        page, moved = lead.wait_while_at_work(preview)
        if not moved:
            raise RuntimeError(re.sub(r"\s+", " ", page)[:3000])
        marks.append(("", time.time()))
    finally:
        reviewers.stop()
    show(reviewers, marks, [json.loads(line) for line in noted.read_text().splitlines()])
    memory(server)


def show(reviewers: Reviewers, marks: Sequence[tuple[str, float]], noted: Sequence[dict[str, float]]) -> None:
    """Each step's seconds, reviewers' submits and longest transactions."""
    steps = [(name, start, end) for (name, start), (_, end) in pairwise(marks)]
    for name, start, end in [*steps, ("upload", marks[1][1], marks[-1][1])]:
        took = reviewers.between(start, end)
        line = f"  {name:<9}{end - start:7.1f} s   {len(took):5} submits"
        if len(took) >= LEAST:
            line += f", p50 {median(took):.0f} ms, p95 {p95(took):.0f} ms, longest {max(took):.0f} ms"
        print(line)
        longest = sorted((one for one in noted if start <= one["at"] <= end), key=lambda one: -one["seconds"])
        for one in longest[:3]:
            print(f"            transaction {one['seconds']:.2f} s  {one['where']}")
    upload = reviewers.between(marks[1][1], marks[-1][1])
    longest_one = max((one["seconds"] for one in noted if one["at"] >= marks[1][1]), default=0.0)
    print(f"longest transaction {longest_one:.2f} s of {MOST_SECONDS:g} s promised")
    print(f"submits' 95th percentile {p95(upload):.0f} ms of {MOST_MILLISECONDS:g} ms promised")
    if reviewers.faults:
        print(f"refused: {len(reviewers.faults)}, the first {reviewers.faults[0]}")


def memory(server: Server) -> None:
    """The largest resident set so far of a process of each kind."""
    found: dict[str, float] = {}
    for pid in [*server.pids, *descendants(server.pids[0])]:
        kind = "worker" if "qcluster" in command_line(pid) else "web"
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        found[kind] = max(found.get(kind, 0.0), int(peak[1]) / 1024 if peak else 0.0)
    told = ", ".join(f"{kind} {size:.0f} MB" for kind, size in found.items())
    print(f"largest process: {told}, of {MOST_MEGABYTES:g} MB promised")


def main() -> None:
    """SQLite, or PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.uploads", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    run(given.database, given.rows)


if __name__ == "__main__":
    main()
