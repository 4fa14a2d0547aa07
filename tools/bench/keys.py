"""A reviewer with nothing but keys, in a browser: ``python -m tools.bench.keys [--answers 60] [--database postgres]``.

The site runs as ``serve`` starts it, with a queue of 5,000 items. Chromium rates answers by digits and Enter. Printed
is how long it takes, in the page itself, from the Enter until the next card takes keys, and until the reveal is painted
where there is one. Promised: 200 ms and 400 ms at the 95th percentile, on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import median

from playwright.sync_api import Page, sync_playwright

from tests.faults.site import Site, fresh_database
from tools.bench.reviewing import p95, settle_postgres
from tools.bench.uploads import FAST, ITEMS, run_site
from tools.screenshots import ARGUMENTS, CHROMIUM

ANSWERS, READS_MS = 60, 600  # before, an Enter counts as the one still held from the card
PROMISED = {"next card": ", promised 200", "reveal": ", promised 400", "card after a reveal": ""}
NOTED = "addEventListener('keydown', (e) => e.key === 'Enter' && sessionStorage.setItem('entered', Date.now()), true)"
#: Milliseconds since the Enter once another card takes keys, or a reveal is painted; with what it is.
ARRIVED = """(before) => {
  const since = Date.now() - Number(sessionStorage.getItem("entered"));
  if (location.pathname === before.path && Boolean(document.getElementById("reveal")) === before.revealed) return null;
  if (document.getElementById("reveal")) return performance.getEntriesByType("paint").length && ["reveal", since];
  return document.querySelector("#rating[data-ready]") && ["card", since];
}"""


def rate(page: Page, answers: int) -> dict[str, list[float]]:
    """Rate answers by keys; return milliseconds by awaited event."""
    random, times, revealed = Random(8), defaultdict[str, list[float]](list), False
    while answers or revealed:
        if not revealed:
            for _ in page.query_selector_all("fieldset[data-metric]"):
                page.keyboard.press(str(random.randint(1, 5)))
            answers -= 1
        previous = {"path": page.evaluate("location.pathname"), "revealed": revealed}
        page.wait_for_timeout(READS_MS)
        page.keyboard.press("Enter")
        event, milliseconds = page.wait_for_function(ARRIVED, arg=previous, polling="raf").json_value()
        times["card after a reveal" if revealed else "next card" if event == "card" else "reveal"].append(milliseconds)
        revealed = event == "reveal"
    return times


def main() -> None:
    """Print one line for each awaited event."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.keys", description=__doc__)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, fresh_database(options.database, Path(name)) as url:
        site = Site(Path(name), url, "")
        site.environment = {key: value for key, value in site.environment.items() if key not in FAST}
        site.manage("migrate", "--verbosity", "0")
        review_data = json.loads(site.python("-m", "tools.bench.review_data", str(ITEMS), str(ITEMS)))
        if site.is_postgres:
            settle_postgres(url)
        try:
            with run_site(site) as server, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
                base = f"http://127.0.0.1:{server.port}"
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                session = review_data["people"][0]["session"]
                context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
                context.add_init_script(NOTED)
                page = context.new_page()
                page.goto(f"{base}/review/{review_data['queues'][str(ITEMS)]}/")
                page.wait_for_selector("#rating[data-ready]")
                for event, times in sorted(rate(page, options.answers).items()):
                    summary = f"p50 {median(times):.0f} ms, p95 {p95(times):.0f} ms{PROMISED[event]}"
                    print(
                        f"{options.database}: {event:<20}{len(times):4} times, {summary}, longest {max(times):.0f} ms"
                    )
        finally:
            site.stop()


if __name__ == "__main__":
    main()
