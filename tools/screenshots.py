"""Pictures of the demo's pages for the documentation: ``make screenshots``.

Loads the demo into a temporary folder, serves it, and drives the distribution's Chromium through every page in both
languages at 1280 and 390 pixels. Fails on console errors, so that no broken page gets a picture.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.faults.site import free_port

ROOT = Path(__file__).resolve().parents[1]
OUTPUT_FOLDER = ROOT / "docs" / "screenshots"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (1280, 390)
LANGUAGES = ("en", "ko")
LEAD_PAGES = {
    "home": "/",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "agreement": "/runs/{run}/agreement/",
    "answer": "/answers/{answer}/?run={run}",
    "queues": "/queues/",
    "queue": "/queues/{queue}/",
    "queue-new": "/queues/new/?run={run}",
    "question-sets": "/question-sets/",
    "question-set": "/question-sets/{set}/",
    "answers": "/runs/{run}/answers/",
    "queue-people": "/queues/{examples}/people/",  # of the examples, whose ratings are there
    "judges": "/judges/",
    "disputes": "/adjudication/",
    "pairs-new": "/pairs/new/?run={run}",
    "compare": "/runs/compare/?runs={vector},{run}",
    "standing": "/runs/{run}/standing/",
    "new-evaluation": "/evaluations/new/",
}
# Keys of a fresh demo, whose content exists once per language.
IDS = {
    "en": {"vector": 8, "run": 10, "answer": 602, "examples": 3, "queue": 4, "set": 4},
    "ko": {"vector": 3, "run": 5, "answer": 282, "examples": 1, "queue": 2, "set": 2},
}
PATIENCE = 300.0  # seconds for the demo to answer and for a page to load, on a busy machine


@contextmanager
def serve_demo() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """The address of a freshly loaded demo, its passwords by user name, and the environment it is served in."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "CONCORD_VAR": folder,
            "PORT": str(port),
            "DATABASE_URL": "",
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--serve"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        try:
            output = ""
            while "Ctrl-C" not in output:
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the demo did not start:\n{output}")
                output += line
            address = f"http://127.0.0.1:{port}"
            _wait(address)
            yield address, dict(re.findall(r"^\s+(\w+)\s+(\S+)\s+\(", output, re.M)), environment
        finally:
            process.terminate()
            process.wait()


def _wait(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{address}/login/", timeout=30).close()
        except OSError:  # refused, or no answer in time
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the demo did not answer at {address} within {PATIENCE:.0f} s")


class Camera:
    """A user's browser in one language and width; ``errors`` collects console errors."""

    def __init__(self, browser: Browser, address: str, language: str, width: int) -> None:
        self.address, self.language, self.width = address, language, width
        context = browser.new_context(viewport={"width": width, "height": 900}, locale=language)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_cookies([{"name": "django_language", "value": language, "url": address}])
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    def log_in(self, username: str, password: str) -> None:
        """Log in and switch to the language by the page's own switch, as a person would."""
        self.page.goto(f"{self.address}/login/")
        self.page.fill("input[name=username]", username)
        self.page.fill("input[name=password]", password)
        self.page.press("input[name=password]", "Enter")
        self.page.wait_for_url(lambda url: "/login" not in url)
        if self.page.get_attribute("html", "lang") != self.language:
            self.page.locator("form[action$='/language/'] button").first.click()
            self.page.wait_for_load_state()

    def shoot(self, name: str, path: str = "", *, full_page: bool = True) -> None:
        """Take a picture of a page (of the current one without a path); on a wide screen of the ``full_page``.

        :raises AssertionError: for a console error, a policy violation or an answer that is no success."""
        if path:
            answer = self.page.goto(f"{self.address}{path}")
            assert answer
            assert answer.ok, f"{path}: {answer.status}"
        self.page.wait_for_selector("#figures[hx-get]", state="detached")  # intervals come later
        self.page.wait_for_timeout(300)
        OUTPUT_FOLDER.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(
            path=OUTPUT_FOLDER / f"{name}-{self.language}-{self.width}.png", full_page=full_page and self.width > 500
        )
        assert not self.errors, f"{path or name}: {self.errors}"


def main() -> None:
    """Take every picture."""
    with serve_demo() as (address, passwords, environment), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        views = [(language, width) for language in LANGUAGES for width in WIDTHS]
        for language, width in views:
            lead = Camera(browser, address, language, width)
            lead.shoot("login", "/login/")
            lead.log_in("lead", passwords["lead"])
            for name, path in LEAD_PAGES.items():
                lead.shoot(name, path.format(**IDS[language]))
        for language, width in views:  # afterwards, because rating changes the figures
            reviewer = Camera(browser, address, language, width)
            reviewer.log_in("reviewer1", passwords["reviewer1"])
            reviewer.shoot("reviewer-home", "/")
            reviewer.shoot("practice", "/practice/1/")
            reviewer.shoot("keys", "/keys/")
            reviewer.shoot(
                "review", f"/review/{IDS[language]['queue']}/", full_page=False
            )  # its bar stays at the end of the screen
            assert reviewer.page.locator("#rating").count(), "there is nothing to rate"
            rate_until_reveal(reviewer)
        workbench = prepare_workbench(environment)
        for language, width in views:  # last, because its judge and runs stand on other pages too
            lead = Camera(browser, address, language, width)
            lead.log_in("lead", passwords["lead"])
            lead.shoot("calibration", "/calibration/")
            lead.shoot("workbench", workbench)
            administrator = Camera(browser, address, language, width)
            administrator.log_in("admin", passwords["admin"])
            administrator.shoot("back-office", "/admin/")
        browser.close()
    print(f"{len(list(OUTPUT_FOLDER.glob('*.png')))} pictures in {OUTPUT_FOLDER.relative_to(ROOT)}")


def prepare_workbench(environment: dict[str, str]) -> str:
    """The path of a page on which a judge prompt is worked on."""
    environment = environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-m", "tools.prepared_workbench"]
    completed = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return completed.stdout.strip().splitlines()[-1]


def rate_until_reveal(reviewer: Camera) -> None:
    """Rate items from one end of the scale, by keys alone, until the judge is revealed; a picture of that."""
    for _ in range(12):
        for _ in range(3):
            reviewer.page.keyboard.press("1")
            reviewer.page.wait_for_timeout(120)
        reviewer.page.keyboard.press("Enter")
        reviewer.page.wait_for_load_state()
        reviewer.page.wait_for_timeout(400)
        if reviewer.page.locator("form[action*=finalise]").count():
            reviewer.shoot("reveal")
            return
    raise AssertionError("the judge was never shown")


if __name__ == "__main__":
    main()
