"""A whole day on a real site, in browsers alone: an administrator makes people and a judge, a lead goes from an empty
project and CSV files with headings of their own to a reviewed, compared, overridden and exported run. After ``serve``
there is no command and no call by REST. The way to an accepted prompt: ``test_demo_calibration_in_a_browser.py``."""

from __future__ import annotations

import csv
import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import Site, free_port, fresh_database
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import DESKTOP, PHONE, READ_MS

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
QUESTIONS = 12
ADMINISTRATOR, PASSWORD = "boss", "a good long password"
DECIDED = "[...document.querySelectorAll('[data-entered]')].every((one) => one.textContent.trim() !== '–')"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.endurance)])
def site(request: Any, tmp_path: Path, judge_server: JudgeServer) -> Iterator[tuple[Site, str]]:
    """An empty site that is served, with one superuser; its settings are documented ones."""
    if request.param == "postgres" and not os.environ.get("CONCORD_TEST_POSTGRES"):
        pytest.skip("CONCORD_TEST_POSTGRES names no server")
    port = free_port()
    with fresh_database(request.param, tmp_path) as database:
        new_site = Site(tmp_path, database, judge_server.base_url.removesuffix("/v1"))
        for setting in ("LEASE_SECONDS", "TASK_SECONDS", "HEARTBEAT_SECONDS", "WORKER_TIMEOUT_SECONDS"):
            del new_site.environment[f"SITE_{setting}"]
        del new_site.environment["CONCORD_CALL_SECONDS"]
        new_site.environment["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        new_site.manage("migrate", "--verbosity", "0")
        new_site.manage("createsuperuser", "--noinput", "--username", ADMINISTRATOR, "--email", "boss@example.org")
        try:
            new_site.start("manage.py", "serve", "--port", str(port))
            yield new_site, wait_for_site(f"http://127.0.0.1:{port}")
        finally:
            new_site.stop()


def wait_for_site(address: str) -> str:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/login/", timeout=10).close()
        except OSError:
            time.sleep(0.2)
        else:
            return address
    raise AssertionError(f"nothing answers at {address}")


class BrowserUser:
    """A user at their own browser. ``steps`` counts presses that led to another page, unfolded parts, chosen files and
    rated answers; ``stages`` has the steps and seconds of each part of the walk. Console errors are collected."""

    def __init__(self, browser: Any, base: str, language: str, size: tuple[int, int] = DESKTOP) -> None:
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, locale=language)
        context.add_cookies([{"name": "django_language", "value": language, "url": base}])
        context.clock.install()
        self.page = context.new_page()
        self.page.set_default_timeout(90_000)
        self.base, self.steps, self.complaints = base, 0, list[str]()
        self.stages: list[tuple[str, int, float]] = []
        self.page.on(
            "console", lambda message: self.complaints.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Count the steps and seconds of a part of the walk."""
        steps, began = self.steps, time.monotonic()
        yield
        self.stages.append((title, self.steps - steps, time.monotonic() - began))

    def open_path(self, path: str) -> None:
        """Open an address, or a path of the site."""
        self.page.goto(path if path.startswith("http") else self.base + path)

    def press(self, selector: str) -> None:
        """Click an element that leads to another page, and wait for it."""
        target = self.page.locator(selector).first
        if not target.is_visible():  # in a menu
            self.page.locator("details.menu", has=self.page.locator(selector)).locator("summary").first.click()
        with self.page.expect_navigation():
            target.click()
        self.page.wait_for_load_state()
        assert not self.page.locator(".errornote, .errors").count(), self.page.locator("form").last.inner_text()
        self.steps += 1

    def fill(self, **fields: str) -> None:
        """Fill in fields by their names."""
        for name, value in fields.items():
            field = self.page.locator(f"form [name={name}]:visible").first
            if field.evaluate("one => one.tagName") == "SELECT":
                field.select_option(label=value)
            else:
                field.fill(value)

    def choose_file(self, file: Path) -> None:
        """Choose a file."""
        self.page.set_input_files("input[name=file]", str(file))
        self.steps += 1

    def log_in(self, name: str) -> None:
        """Log in at the front page."""
        self.open_path("/")
        self.fill(username=name, password=PASSWORD)
        self.press("main form button.primary")


def test_empty_site_to_exported_comparison(
    site: tuple[Site, str], browser: Any, tmp_path: Path, judge_server: JudgeServer, capsys: Any
) -> None:
    base, began = site[1], time.monotonic()
    administrator = BrowserUser(browser, base, "en")
    administrator.log_in(ADMINISTRATOR)
    invited = {name: invite(administrator, name, role) for name, role in (("kim", "lead"), ("lee", "reviewer"))}
    administrator.open_path("/admin/")
    administrator.press("main a[href*='/endpoint/add/']")
    administrator.fill(name="llm", base_url=judge_server.base_url)
    administrator.press("[name=_save]")
    administrator.open_path("/admin/")
    administrator.press("main a[href*='/judgeversion/add/']")
    project = administrator.page.locator("[name=project] option").last.text_content()
    administrator.fill(project=project, name="gpt", endpoint="llm", model="m")
    administrator.press("[name=_save]")

    lead = BrowserUser(browser, base, "ko")
    accept_invitation(lead, invited["kim"])
    questions, *answers = write_files(tmp_path)
    with lead.stage("question set from a CSV file"):
        lead.press("a[href='/question-sets/upload/']")
        lead.choose_file(questions)
        lead.press("main form button.primary")
        lead.page.locator("[name=column_2]").select_option("expected_answer")
        lead.press("form[action$='/columns/'] button.primary")
        lead.press("form[action$='/confirm/'] button.primary")
    with lead.stage("two runs from CSV files"):
        runs = [evaluate(lead, system, file) for system, file in zip(("alpha", "beta"), answers, strict=True)]
    with lead.stage("two queues"):
        for address in runs:
            lead.open_path(address)
            lead.press("a.button[href*='/queues/new/']")
            with lead.page.expect_response(lambda response: "/preview/" in response.url):
                lead.page.locator("label", has_text="lee").first.locator("input").check()
            lead.press("#queue-form button.primary")

    expert = BrowserUser(browser, base, "ko", PHONE)
    accept_invitation(expert, invited["lee"])
    with expert.stage("ratings of 24 answers"):
        for _ in runs:
            expert.open_path("/")
            rate_first_queue(expert)
    with lead.stage("comparison"):
        lead.open_path(runs[1])
        assert lead.page.locator(".verdict .says").count() >= 2
        lead.press("a.button[href*='/runs/compare/']")
        lead.page.locator(f"input[name=runs][value='{runs[0].rstrip('/').rpartition('/')[2]}']").check()
        lead.press("main form:has(input[name=runs]) button")
        compared = lead.page.locator("main").inner_text()
        assert "alpha" in compared and "beta" in compared  # noqa: PT018
    with lead.stage("override of an answer"):
        override_first_answer(lead, runs[1])
    with lead.stage("two reports"):
        lead.open_path(runs[1])
        reports = {format_: download_report(lead, format_) for format_ in ("html", "json")}
    seconds = time.monotonic() - began

    assert "<html" in reports["html"][:200].lower()
    report = json.loads(reports["json"])
    assert report["overall"]["corrected"]["value"] is not None
    assert report["verdict"]["score"]
    assert report["overall"]["overrides"] == 1
    users = (administrator, lead, expert)
    assert [user.complaints for user in users] == [[], [], []]
    with capsys.disabled():
        steps = ", ".join(
            f"{name} {user.steps}" for name, user in zip(("administrator", "lead", "expert"), users, strict=True)
        )
        print(f"\n{site[0].database_url.split(':')[0]}: {steps} steps, {seconds:.0f} s in all")
        for title, count, duration in (*lead.stages, *expert.stages):
            print(f"{title:<30} {count:>3} steps {duration:>6.1f} s")


def invite(administrator: BrowserUser, name: str, role: str) -> str:
    """A new person with a role; the link at which they choose their password."""
    administrator.open_path("/admin/")
    administrator.press("main a[href*='/user/add/']")
    administrator.fill(username=name)
    administrator.press("[name=_save]")
    link = str(administrator.page.locator("code").inner_text())
    administrator.press("a[href*='/rolegrant/add/?user=']")
    administrator.fill(project=administrator.page.locator("[name=project] option").last.text_content())
    administrator.page.locator(f"[name=role][value={role}]").check()
    administrator.press("[name=_save]")
    return link


def accept_invitation(user: BrowserUser, link: str) -> None:
    """Choose the password at the link of the invitation."""
    user.open_path(link)
    user.fill(new_password1=PASSWORD, new_password2=PASSWORD)
    user.press("main form button.primary")


def evaluate(lead: BrowserUser, system: str, answers: Path) -> str:
    """Evaluate answers of a system from a file; return the address of the completed run."""
    lead.open_path("/")
    lead.press("a[href*='/evaluations/new/']")
    lead.choose_file(answers)
    lead.fill(system=system)
    lead.press("form[enctype] button.primary")
    lead.press("form[action$='/columns/'] button.primary")
    lead.press("form[action$='/confirm/'] button.primary")
    lead.press("button[name=plan]")
    lead.press("button[name=start]")
    lead.page.locator("#progress").wait_for(state="detached", timeout=90_000)  # the page follows by itself
    lead.page.locator(".chip.ok").first.wait_for()
    return str(lead.page.url)


def override_first_answer(lead: BrowserUser, run: str) -> None:
    """Decide the first metric of the run's first answer that has levels."""
    lead.open_path(f"{run}answers/")
    lead.press("main tbody th a")
    change = lead.page.locator("details.change:has(input[type=radio])").first
    change.locator("summary").click()
    lead.steps += 1
    change.locator("label:has(input[type=radio])").last.click()
    change.locator("[name=reason]").fill("규정을 확인했습니다.")
    lead.press("details.change[open] form button.primary")


def rate_first_queue(expert: BrowserUser) -> None:
    """Rate everything in the first queue, with touches."""
    expert.press("main a.button[href^='/review/']")
    for _ in range(3 * QUESTIONS):
        if expert.page.locator("#reveal").count():
            expert.page.clock.run_for(READ_MS)
            expert.press("#reveal button.primary")
            continue
        if "/items/" not in expert.page.url:
            return
        expert.page.locator("#rating[data-ready]").wait_for()
        item_url = expert.page.url
        for digit in range(60):  # claims are decided one by one
            if expert.page.evaluate(DECIDED):
                break
            expert.page.keyboard.press(str(1 + (digit + expert.steps) % 4))
        expert.page.keyboard.press("Enter")
        expert.page.wait_for_function(
            "here => location.href !== here || document.querySelector('#reveal')", arg=item_url
        )
        expert.page.wait_for_load_state()
        expert.steps += 1
    raise AssertionError("the queue has no end")


def download_report(lead: BrowserUser, format_: str) -> str:
    """The run's report as a file."""
    lead.page.locator("details.menu", has=lead.page.locator(f"a[href$='format={format_}']")).locator("summary").click()
    with lead.page.expect_download() as download:
        lead.page.locator(f"a[href$='format={format_}']").click()
    lead.steps += 1
    lead.page.keyboard.press("Escape")
    return Path(download.value.path()).read_text()


def write_files(folder: Path) -> list[Path]:
    """Questions, and the answers of two systems, in columns whose headings Concord does not know."""
    questions = [
        ("Nr", "Prompt to bot", "What it should say", "Topic"),
        *((f"q{n}", f"휴가 {n}은 며칠입니까?", f"{n + 1}일", f"leave {n % 3}") for n in range(QUESTIONS)),
    ]
    answers = [
        [
            ("Q no", "Bot reply", "Source 1"),
            *((f"q{n}", f"휴가 {n}은 {n + extra_days}일입니다.", f"휴가 {n}: {n + 1}일.") for n in range(QUESTIONS)),
        ]
        for extra_days in (1, 2)
    ]
    paths = [folder / name for name in ("faq.csv", "alpha.csv", "beta.csv")]
    for path, rows in zip(paths, [questions, *answers], strict=True):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    return paths
