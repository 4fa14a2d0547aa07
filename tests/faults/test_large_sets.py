"""Large question sets: reviewers save while one is imported, and killed imports leave nothing that anyone sees.

Other sizes: ``LARGE_SET_QUESTIONS=1000000 pytest tests/faults/test_large_sets.py -s`` prints the times of the saves."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import secrets
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_watchdog import wait_until
from tests.review.people import VALUES, Reviewer

pytestmark = [pytest.mark.faults]
# More than 2 MB, so that workers import them.
QUESTIONS = int(os.environ.get("LARGE_SET_QUESTIONS", "150000"))
# More than without an import. The tests share their machine.
MAX_P95_SECONDS = 1.0
SAVE_EVERY_SECONDS = 0.05
IMPORT_SECONDS = 600 + QUESTIONS // 500
VISIBLE = "SELECT COUNT(*) FROM evaluation_questionset WHERE name = 'many' AND is_unfinished = (1 = 0)"
STORED = (
    "SELECT COUNT(*), COUNT(DISTINCT q.external_id) FROM evaluation_question q "
    "JOIN evaluation_questionset s ON s.id = q.question_set_id WHERE s.name = 'many'"
)
EVALUATOR = """
import hashlib
from datetime import timedelta
from django.utils import timezone
from evaluation.models import ApiToken, RoleGrant, Run, User
user, project = User.objects.create_user("evaluator", password="a good password"), Run.objects.get().project
RoleGrant.objects.create(user=user, project=project, role="evaluator")
ApiToken.objects.create(
    user=user, made_by=user, project=project, name="t", sha256=hashlib.sha256(b"evaluator-token").hexdigest(),
    scope="write", expires_at=timezone.now() + timedelta(days=1),
)
"""


def question_lines(count: int) -> bytes:
    """A file of ``count`` short questions."""
    return b"question\n" + b"".join(b"What is %d?\n" % number for number in range(count))


class Saver:
    """A reviewer who saves a draft or submits every 50 ms until stopped; ``seconds`` are the durations."""

    def __init__(self, reviewer: Reviewer, queue: int) -> None:
        self.reviewer, self.queue = reviewer, queue
        self.seconds: list[float] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        item, number = 0, 0
        while not self.stopped.wait(SAVE_EVERY_SECONDS):
            if not item:
                item = self.reviewer.expect(200, "POST", f"review-queues/{self.queue}/next/")["id"]
            number += 1
            started = time.monotonic()
            if number % 20:
                self.reviewer.expect(204, "POST", f"items/{item}/draft/", {"values": VALUES, "comment": f"{number}"})
            else:
                form = {"values": VALUES, "idempotency_key": f"form-{item}", "active_ms": 1000}
                self.reviewer.expect(200, "POST", f"items/{item}/submit/", form)
                item = 0
            self.seconds.append(time.monotonic() - started)


def save_during(saver: Saver, name: str, action: Callable[[], object]) -> float:
    """Save while an action runs; the 95th percentile of the seconds."""
    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(saver.run)
        try:
            action()
        finally:
            saver.stopped.set()
        saving.result()
    percentiles = statistics.quantiles(saver.seconds, n=100)
    print(
        f"{name}, {time.monotonic() - started:.0f} s, {len(saver.seconds)} saves: median {percentiles[49]:.3f} s, "
        f"p95 {percentiles[94]:.3f} s, longest {max(saver.seconds):.3f} s"
    )
    return percentiles[94]


def import_by_rest(port: int, content: bytes) -> None:
    evaluator = {"Authorization": "Bearer evaluator-token"}

    def send(path: str, data: bytes | None = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}", data, evaluator | ({"Content-Type": "text/csv"} if data else {})
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, (json.load(response), response.headers.get("Location"))

    started = time.monotonic()
    status, (upload, location) = send("/api/v1/question-sets/?name=many", content)
    assert (status, upload["status"]) == (202, "checking")
    print(f"POST answered after {time.monotonic() - started:.1f} s")

    def ended() -> bool:
        upload = send(location)[1][0]
        assert upload["status"] in {"checking", "importing", "confirmed"}, upload
        return bool(upload["status"] == "confirmed")

    wait_until(ended, seconds=IMPORT_SECONDS)


def import_by_page(port: int, content: bytes) -> None:
    # The cookies are for HTTPS alone.
    jar = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(secure_protocols=("http", "https")))
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def post(path: str, file: bytes = b"", **fields: str) -> tuple[str, str]:
        fields["csrfmiddlewaretoken"] = next(cookie.value or "" for cookie in jar if "csrf" in cookie.name)
        body = b"".join(
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        )
        if file:
            body += b'--x\r\nContent-Disposition: form-data; name="file"; filename="many.csv"\r\n\r\n' + file + b"\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body + b"--x--\r\n", headers)
        with browser.open(request, timeout=300) as response:
            return response.url, response.read().decode()

    def read(address: str) -> str:
        return str(browser.open(address, timeout=300).read().decode())

    form = read(f"http://127.0.0.1:{port}/login/")
    post("/login/", username="evaluator", password="a good password")
    form = read(f"http://127.0.0.1:{port}/question-sets/upload/")
    project = re.search(r'name="project" value="(\d+)"', form)
    assert project
    started = time.monotonic()
    preview, _ = post("/question-sets/upload/", content, project=project[1], name="many")
    print(f"upload answered after {time.monotonic() - started:.1f} s")
    wait_until(lambda: "This is a new question set." in read(preview), seconds=IMPORT_SECONDS)
    post(f"{preview.partition(str(port))[2]}confirm/")
    wait_until(lambda: browser.open(preview, timeout=300).url != preview, seconds=IMPORT_SECONDS)


@pytest.mark.parametrize("import_set", [import_by_rest, import_by_page])
def test_saves_stay_quick_while_a_large_set_comes_in(site: Site, import_set: Callable[[int, bytes], None]) -> None:
    site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "127.0.0.1"}
    # With the times of the product.
    site.environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
    created = json.loads(site.python("-m", "tests.review.crowd", "1", json.dumps({1: 2000})))
    site.manage("shell", "--no-imports", "-c", EVALUATOR)
    port = free_port()
    site.start("manage.py", "serve", "--port", str(port))
    ((pk, token),) = created["reviewers"].items()
    reviewer = Reviewer(port, int(pk), token, rough=True)
    wait_until(lambda: reviewer.call("GET", "ratings/")[0] == 200, seconds=60)
    queue = created["queues"][0]
    before = save_during(Saver(reviewer, queue), "no import", lambda: time.sleep(10))
    content = question_lines(QUESTIONS)
    p95 = save_during(Saver(reviewer, queue), f"import of {QUESTIONS} questions", lambda: import_set(port, content))
    assert reviewer.problems == []
    assert p95 < MAX_P95_SECONDS + before
    assert site.rows(VISIBLE) == [(1,)]
    assert site.rows(STORED) == [(QUESTIONS, QUESTIONS)]
