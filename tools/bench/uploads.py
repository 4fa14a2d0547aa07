"""A large file of answers uploaded by the page while reviewers rate: ``python -m tools.bench.uploads [--rows 200000]``.

The site runs as ``serve`` starts it: web server, workers, watchdog. A lead sends a generated file of about a kilobyte a
row by the page *New evaluation*, waits for the preview, and confirms; reviewers rate by the page all the time, each a
little more than once a second. Printed are the longest transactions of each step with the lines that opened them (all
of SQLite's hold the write lock), reviewers' submits compared with those before the upload, and the largest resident
memory of a process. Promised: no write transaction over 1 s, submits' 95th percentile under 300 ms, at most 500 MB."""

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
from tools.bench.reviewing import Browser, Server, p95, settle_postgres

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
    questions_path, answers_path = folder / "questions.jsonl", folder / "answers.jsonl"
    with questions_path.open("w", encoding="utf-8") as file:
        for n in range(rows):
            row = {"id": f"q{n}", "question": f"Where does river {n} rise?", "reference": f"In valley {n}."}
            file.write(json.dumps(row) + "\n")
    with answers_path.open("w", encoding="utf-8") as file:
        for n in range(rows):
            answer = f"River {n} rises in valley {n}, as the atlas says. " * 4
            contexts = [f"{PASSAGE} Passage {number} of river {n}." for number in range(3)]
            file.write(json.dumps({"question_id": f"q{n}", "answer": answer, "contexts": contexts}) + "\n")
    return questions_path, answers_path


class Lead:
    """A lead's browser."""

    def __init__(self, port: int, session: str) -> None:
        self.port, self.token = port, "c" * 32
        self.headers = {"Cookie": f"sessionid={session}; csrftoken={self.token}"}

    def request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[str, str]:
        """Send a request on a connection of its own; return the page and the address it redirects to."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1800)
        connection.request(method, path, body, self.headers | (headers or {}))  # type: ignore[arg-type]
        response = connection.getresponse()
        page = response.read().decode()
        if response.status not in {200, 302}:
            raise RuntimeError(f"{method} {path}: {response.status} {page[:2000]}")
        return page, response.headers.get("Location", "")

    def post(self, path: str) -> None:
        """Press a button that says nothing more."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self.request("POST", path, f"csrfmiddlewaretoken={self.token}", headers)

    def send(self, file: Path, questions: int) -> str:
        """Send the file as a browser does; the address of its preview."""
        boundary = secrets.token_hex(12)
        fields = {"csrfmiddlewaretoken": self.token, "questions": questions, "system": "large-rag"}
        part_header = f'--{boundary}\r\nContent-Disposition: form-data; name="%s"'
        head = "".join(f"{part_header % name}\r\n\r\n{value}\r\n" for name, value in fields.items())
        head += f'{part_header % "file"}; filename="{file.name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        tail = f"\r\n--{boundary}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield head.encode()
            with file.open("rb") as data:
                while chunk := data.read(1 << 18):
                    yield chunk
            yield tail

        size = len(head.encode()) + file.stat().st_size + len(tail)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Length": str(size)}
        return self.request("POST", "/evaluations/new/", body(), headers)[1]

    def wait_for_workers(self, path: str) -> tuple[str, str]:
        """Poll every two seconds, as the page does, until workers are done; return the page and the address it
        redirects to."""
        while True:
            page, location = self.request("GET", path)
            if location or "hx-trigger" not in page:
                return page, location
            time.sleep(2)


class Reviewers:
    """Reviewers that rate continuously; ``times`` of their submits in milliseconds, each with the moment it ended."""

    def __init__(self, server: Server, reviewer_keys: Sequence[dict[str, str]], queue: int) -> None:
        self.times: list[tuple[float, float]] = []
        self.faults: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(server, keys, queue)) for keys in reviewer_keys]
        for keys in self._threads:
            keys.start()

    def _work(self, server: Server, keys: dict[str, str], queue: int) -> None:
        browser = Browser(server, server, keys, alone=False)
        while not self._over.wait(THINKING_SECONDS):
            try:
                browser.site.close()
                browser.rate_as_html(queue)
                self.times.append((time.time(), browser.times["submit HTML"][-1]))
            except Exception as fault:  # noqa: BLE001 -- told at the end: a reviewer who is refused is a finding
                self.faults.append(repr(fault)[:300])

    def between(self, start: float, end: float) -> list[float]:
        """Submits that ended in a time."""
        return [milliseconds for ended_at, milliseconds in self.times if start <= ended_at <= end]

    def stop(self) -> None:
        """Let the reviewers finish their current item."""
        self._over.set()
        for thread in self._threads:
            thread.join()


def run(kind: str, rows: int) -> None:
    """Fill a database of this kind, serve it, upload, and print the measurements."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        folder = Path(name)
        site = Site(folder, url, "")
        log = folder / "transactions.jsonl"
        log.touch()
        site.environment = {name: value for name, value in site.environment.items() if name not in FAST} | {
            **{"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"},
            "DJANGO_SETTINGS_MODULE": "tools.bench.timed_settings",
        }
        site.manage("migrate", "--verbosity", "0")
        questions_path, answers_path = write_files(folder, rows)
        review_data = json.loads(site.python("-m", "tools.bench.review_data", str(ITEMS), str(ITEMS)))
        ((project,),) = site.rows(
            "SELECT name FROM evaluation_project WHERE id = (SELECT MAX(project_id) FROM evaluation_run)"
        )
        site.manage("import_questions", str(questions_path), "--name", "rivers", "--project", project)
        ((questions,),) = site.rows("SELECT id FROM evaluation_questionset WHERE name = 'rivers'")
        if site.is_postgres:
            settle_postgres(url)
        print(f"{kind}: {rows:,} rows, {answers_path.stat().st_size / 1e6:.0f} MB", flush=True)
        try:
            with run_site(site) as server:
                measure(server, review_data, answers_path, int(questions), log)
        finally:
            site.stop()


@contextmanager
def run_site(site: Site) -> Iterator[Server]:
    """Start the site as ``serve`` does and wait until it answers."""
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


def measure(server: Server, review_data: dict[str, dict[str, object]], file: Path, questions: int, log: Path) -> None:
    """The upload, step by step, with reviewers at work."""
    lead = Lead(server.port, str(review_data["lead"]["session"]))
    queue = int(str(review_data["queues"][str(ITEMS)]))
    reviewer_keys: Sequence[dict[str, str]] = review_data["people"][:REVIEWERS]  # type: ignore[index, assignment] # a list, by its key
    reviewers = Reviewers(server, reviewer_keys, queue)
    marks = [("before", time.time())]
    try:
        time.sleep(REST_SECONDS)
        marks.append(("sending", time.time()))
        preview = lead.send(file, questions)
        marks.append(("checking", time.time()))
        page, location = lead.wait_for_workers(preview)
        if location or f"{preview}confirm/" not in page:
            raise RuntimeError(re.sub(r"\s+", " ", page)[:3000])
        marks.append(("storing", time.time()))
        lead.post(f"{preview}confirm/")
        page, location = lead.wait_for_workers(preview)
        if not location:
            raise RuntimeError(re.sub(r"\s+", " ", page)[:3000])
        marks.append(("", time.time()))
    finally:
        reviewers.stop()
    show(reviewers, marks, [json.loads(line) for line in log.read_text().splitlines()])
    print_memory(server)


def show(reviewers: Reviewers, marks: Sequence[tuple[str, float]], transactions: Sequence[dict[str, float]]) -> None:
    """Each step's seconds, reviewers' submits and longest transactions."""
    steps = [(name, start, end) for (name, start), (_, end) in pairwise(marks)]
    for name, start, end in [*steps, ("upload", marks[1][1], marks[-1][1])]:
        submit_times = reviewers.between(start, end)
        line = f"  {name:<9}{end - start:7.1f} s   {len(submit_times):5} submits"
        if len(submit_times) >= LEAST:
            line += (
                f", p50 {median(submit_times):.0f} ms, p95 {p95(submit_times):.0f} ms, longest "
                f"{max(submit_times):.0f} ms"
            )
        print(line)
        longest = sorted(
            (entry for entry in transactions if start <= entry["at"] <= end), key=lambda entry: -entry["seconds"]
        )
        for entry in longest[:3]:
            print(f"            transaction {entry['seconds']:.2f} s  {entry['where']}")
    upload = reviewers.between(marks[1][1], marks[-1][1])
    longest_seconds = max((entry["seconds"] for entry in transactions if entry["at"] >= marks[1][1]), default=0.0)
    print(f"longest transaction {longest_seconds:.2f} s of {MOST_SECONDS:g} s promised")
    print(f"submits' 95th percentile {p95(upload):.0f} ms of {MOST_MILLISECONDS:g} ms promised")
    if reviewers.faults:
        print(f"refused: {len(reviewers.faults)}, the first {reviewers.faults[0]}")


def print_memory(server: Server) -> None:
    """The largest resident set so far of a process of each kind."""
    peaks: dict[str, float] = {}
    for pid in [*server.pids, *descendants(server.pids[0])]:
        process_kind = "worker" if "qcluster" in command_line(pid) else "web"
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        peaks[process_kind] = max(peaks.get(process_kind, 0.0), int(peak[1]) / 1024 if peak else 0.0)
    summary = ", ".join(f"{process_kind} {size:.0f} MB" for process_kind, size in peaks.items())
    print(f"largest process: {summary}, of {MOST_MEGABYTES:g} MB promised")


def main() -> None:
    """SQLite, or PostgreSQL where ``CONCORD_TEST_POSTGRES`` names a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.uploads", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    run(options.database, options.rows)


if __name__ == "__main__":
    main()
