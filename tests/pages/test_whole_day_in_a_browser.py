"""A whole day on a real site, in browsers alone: an administrator makes people and a judge, a lead goes from an empty
project to a reviewed, compared and exported run. After ``serve`` there is no command and no call by REST."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import Site, free_port, fresh_database
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import PHONE, READ_MS, WIDE

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
QUESTIONS = 12
BOSS, PASSWORD = "boss", "a good long password"
DECIDED = "[...document.querySelectorAll('[data-entered]')].every((one) => one.textContent.trim() !== '–')"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.endurance)])
def site(request: Any, tmp_path: Path, judge_server: JudgeServer) -> Iterator[tuple[Site, str]]:
    """An empty site that is served, with one superuser; its settings are documented ones."""
    if request.param == "postgres" and not os.environ.get("CONCORD_TEST_POSTGRES"):
        pytest.skip("CONCORD_TEST_POSTGRES names no server")
    port = free_port()
    with fresh_database(request.param, tmp_path) as database:
        made = Site(tmp_path, database, judge_server.base_url.removesuffix("/v1"))
        for hurry in ("LEASE_SECONDS", "BUDGET_SECONDS", "CALL_SECONDS", "HEARTBEAT_SECONDS", "WEDGED_SECONDS"):
            del made.environment[f"CONCORD_{hurry}"]
        made.environment["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        made.manage("migrate", "--verbosity", "0")
        made.manage("createsuperuser", "--noinput", "--username", BOSS, "--email", "boss@example.org")
        try:
            made.start("manage.py", "serve", "--port", str(port))
            yield made, reachable(f"http://127.0.0.1:{port}")
        finally:
            made.stop()


def reachable(address: str) -> str:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/login/", timeout=10).close()
        except OSError:
            time.sleep(0.2)
        else:
            return address
    raise AssertionError(f"nothing answers at {address}")


class Person:
    """Somebody at a browser of their own. ``steps`` counts presses that led to another page, files that were chosen and
    answers that were rated; what the console complains about is kept."""

    def __init__(self, browser: Any, base: str, language: str, size: tuple[int, int] = WIDE) -> None:
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, locale=language)
        context.add_cookies([{"name": "django_language", "value": language, "url": base}])
        context.clock.install()
        self.page = context.new_page()
        self.page.set_default_timeout(90_000)
        self.base, self.steps, self.complaints = base, 0, list[str]()
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def goes(self, path: str) -> None:
        """By an address that one was given, or the front door."""
        self.page.goto(path if path.startswith("http") else self.base + path)

    def press(self, selector: str) -> None:
        """Press what leads on."""
        found = self.page.locator(selector).first
        if not found.is_visible():  # in a menu
            self.page.locator("details.menu", has=self.page.locator(selector)).locator("summary").first.click()
        with self.page.expect_navigation():
            found.click()
        self.page.wait_for_load_state()
        assert not self.page.locator(".errornote, .errors").count(), self.page.locator("form").last.inner_text()
        self.steps += 1

    def fills(self, **fields: str) -> None:
        """Fill in fields by their names."""
        for name, value in fields.items():
            field = self.page.locator(f"form [name={name}]:visible").first
            if field.evaluate("one => one.tagName") == "SELECT":
                field.select_option(label=value)
            else:
                field.fill(value)

    def brings(self, file: Path) -> None:
        """Choose a file."""
        self.page.set_input_files("input[name=file]", str(file))
        self.steps += 1

    def logs_in(self, name: str) -> None:
        """At the front door."""
        self.goes("/")
        self.fills(username=name, password=PASSWORD)
        self.press("main form button.primary")


def test_from_an_empty_site_to_an_exported_comparison(
    site: tuple[Site, str], browser: Any, tmp_path: Path, judge_server: JudgeServer, capsys: Any
) -> None:
    base, began = site[1], time.monotonic()
    boss = Person(browser, base, "en")
    boss.logs_in(BOSS)
    invited = {name: invite(boss, name, role) for name, role in (("kim", "lead"), ("lee", "reviewer"))}
    boss.goes("/admin/")
    boss.press("main a[href*='/endpoint/add/']")
    boss.fills(name="llm", base_url=judge_server.base_url)
    boss.press("[name=_save]")
    boss.goes("/admin/")
    boss.press("main a[href*='/judgeversion/add/']")
    project = boss.page.locator("[name=project] option").nth(1).text_content()
    boss.fills(project=project, name="gpt", endpoint="llm", model="m")
    boss.press("[name=_save]")

    lead = Person(browser, base, "ko")
    joins(lead, invited["kim"])
    questions, *answers = files(tmp_path)
    lead.press("a[href='/question-sets/upload/']")
    lead.brings(questions)
    lead.press("main form button.primary")
    lead.press("form[action$='/confirm/'] button.primary")
    runs = [evaluates(lead, system, file) for system, file in zip(("alpha", "beta"), answers, strict=True)]
    for address in runs:
        lead.goes(address)
        lead.press("a.button[href*='/queues/new/']")
        with lead.page.expect_response(lambda response: "/preview/" in response.url):
            lead.page.locator("label", has_text="lee").first.locator("input").check()
        lead.press("#queue-form button.primary")

    expert = Person(browser, base, "ko", PHONE)
    joins(expert, invited["lee"])
    for _ in runs:
        expert.goes("/")
        rates(expert)
    lead.goes(runs[1])
    assert lead.page.locator(".verdict .says").count() >= 2
    lead.press("a.button[href*='/runs/compare/']")
    lead.page.locator(f"input[name=runs][value='{runs[0].rstrip('/').rpartition('/')[2]}']").check()
    lead.press("main form:has(input[name=runs]) button")
    compared = lead.page.locator("main").inner_text()
    assert "alpha" in compared and "beta" in compared  # noqa: PT018
    lead.goes(runs[1])
    taken = {format_: exports(lead, format_) for format_ in ("html", "json")}
    seconds = time.monotonic() - began

    assert "<html" in taken["html"][:200].lower()
    told = json.loads(taken["json"])
    assert told["overall"]["corrected"]["value"] is not None
    assert told["verdict"]["score"]
    everybody = (boss, lead, expert)
    assert [one.complaints for one in everybody] == [[], [], []]
    with capsys.disabled():
        steps = ", ".join(
            f"{name} {one.steps}" for name, one in zip(("administrator", "lead", "expert"), everybody, strict=True)
        )
        print(f"\n{site[0].database_url.split(':')[0]}: {steps} steps, {seconds:.0f} s in all")


def invite(boss: Person, name: str, role: str) -> str:
    """A new person with a role; the link at which they choose their password."""
    boss.goes("/admin/")
    boss.press("main a[href*='/user/add/']")
    boss.fills(username=name)
    boss.press("[name=_save]")
    link = str(boss.page.locator("code").inner_text())
    boss.press("a[href*='/rolegrant/add/?user=']")
    boss.fills(project=boss.page.locator("[name=project] option").nth(1).text_content())
    boss.page.locator("[name=role]").select_option(value=role)
    boss.press("[name=_save]")
    return link


def joins(one: Person, link: str) -> None:
    """Choose the password at the link one was handed; then one is in."""
    one.goes(link)
    one.fills(new_password1=PASSWORD, new_password2=PASSWORD)
    one.press("main form button.primary")


def evaluates(lead: Person, system: str, answers: Path) -> str:
    """Answers of a system from a file, judged; the address of the run once it has ended."""
    lead.goes("/")
    lead.press("a[href*='/evaluations/new/']")
    lead.brings(answers)
    lead.fills(system=system)
    lead.press("form[enctype] button.primary")
    lead.press("form[action$='/confirm/'] button.primary")
    lead.press("button[name=plan]")
    lead.press("button[name=start]")
    lead.page.locator("#progress").wait_for(state="detached", timeout=90_000)  # the page follows by itself
    lead.page.locator(".chip.ok").first.wait_for()
    return str(lead.page.url)


def rates(expert: Person) -> None:
    """Everything that waits in the first queue, with presses of a finger."""
    expert.press("main a.button[href^='/review/']")
    for _ in range(3 * QUESTIONS):
        if expert.page.locator("#reveal").count():
            expert.page.clock.run_for(READ_MS)
            expert.press("#reveal button.primary")
            continue
        if "/items/" not in expert.page.url:
            return
        expert.page.locator("#rating[data-ready]").wait_for()
        here = expert.page.url
        for digit in range(60):  # claims are decided one by one
            if expert.page.evaluate(DECIDED):
                break
            expert.page.keyboard.press(str(1 + (digit + expert.steps) % 4))
        expert.page.keyboard.press("Enter")
        expert.page.wait_for_function("here => location.href !== here || document.querySelector('#reveal')", arg=here)
        expert.page.wait_for_load_state()
        expert.steps += 1
    raise AssertionError("the queue has no end")


def exports(lead: Person, format_: str) -> str:
    """The run's report as a file."""
    lead.page.locator("details.menu", has=lead.page.locator(f"a[href$='format={format_}']")).locator("summary").click()
    with lead.page.expect_download() as download:
        lead.page.locator(f"a[href$='format={format_}']").click()
    lead.steps += 1
    lead.page.keyboard.press("Escape")
    return Path(download.value.path()).read_text()


def files(folder: Path) -> list[Path]:
    """Questions, and the answers of two systems."""
    asked = [
        {
            "id": f"q{n}",
            "question": f"휴가 {n}은 며칠입니까?",
            "category": f"leave {n % 3}",
            "expected_answer": f"{n + 1}일",
        }
        for n in range(QUESTIONS)
    ]
    said = [
        [
            {"question_id": f"q{n}", "answer": f"휴가 {n}은 {n + more}일입니다.", "contexts": [f"휴가 {n}: {n + 1}일."]}
            for n in range(QUESTIONS)
        ]
        for more in (1, 2)
    ]
    made = [folder / name for name in ("faq.jsonl", "alpha.jsonl", "beta.jsonl")]
    for path, rows in zip(made, [asked, *said], strict=True):
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return made
