"""Runs the tests of every mutant and counts who was noticed: ``python -m tools.mutation.running MUTANTS.jsonl``.

A mutant is never written into the tree: a forked process imports its source in place of the module's, and ends at
limits of processor time, time and memory. First the tests near the module, then, before it counts as a survivor, those
further away. At last the tests that failed run once more without a mutant: they have to pass. The survivors are kept
beside the mutants in ``survivors.jsonl``, which can be given back once there are tests for them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import hypothesis
import pytest

from tools.mutation.modules import House, Mutant

PRELOADED = ("django.test", "numpy", "openpyxl", "pydantic", "rest_framework", "schemathesis", "scipy.stats")
LANES = "not faults and not bench and not crowd and not endurance and not browser"
OPTIONS = ("-x", "--tb=no", "--hypothesis-profile=mutation", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", LANES)
NEAR_SECONDS, WIDE_SECONDS = 40, 300  # of processor time
NEAR_ENOUGH, WIDE_ENOUGH = 20, 60  # of the same, after which no further test begins: simulations take minutes
IDLE_SECONDS = 20  # without any processor time: what a test waits for will not come
MOST_MEMORY = 4 << 30
KILLED, SURVIVED, STUCK = "killed", "survived", "killed by a limit"


class Found(NamedTuple):
    """What tests came to: ``by`` names the one that failed, or all where a limit ended them; processor ``seconds``."""

    outcome: str
    by: str
    seconds: float


class Mutated(MetaPathFinder, SourceFileLoader):
    """Finds the mutated module before Python finds its file, and loads it from the mutant's text."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant["module"], str(Path(mutant["path"]).resolve()))
        self.source = mutant["source"]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module in its own place; ``None`` for every other."""
        folder = [str(Path(self.path).parent)] if Path(self.path).name == "__init__.py" else None
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self, submodule_search_locations=folder)

    def get_code(self, fullname: str) -> CodeType:
        """The mutant, compiled; no byte code is written."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Noting:
    """A plugin of pytest that runs ``tests`` in their order, writes down which test failed, or which file cannot be
    imported, and says when it was enough."""

    def __init__(self, log: Path, tests: Sequence[str], enough: float) -> None:
        self.log, self.enough = log, enough
        self.order = {str(Path(path).resolve()): place for place, path in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Called once; pytest-django has put what needs a database first."""
        items.sort(key=lambda item: self.order.get(str(item.path), 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Called for every test, and below for every file."""
        if report.failed:
            self.log.write_text(report.nodeid, encoding="utf-8")

    pytest_collectreport = pytest_runtest_logreport

    def pytest_runtest_logstart(self) -> None:
        """Called before every test."""
        if time.process_time() > self.enough:
            pytest.exit("enough", returncode=pytest.ExitCode.OK)


def attempt(tests: Sequence[str], mutant: Mutant | None, limit: int, enough: float = math.inf) -> Found:
    """Run tests in a process of their own, for at most ``limit`` seconds of processor time and thirty times as many
    of any; no longer than they do anything at all. After ``enough`` seconds none begins any more."""
    log = Path(tempfile.gettempdir(), f"mutant-{os.getpid()}.log")
    log.write_text("", encoding="utf-8")
    if (child := os.fork()) == 0:
        try:
            _test(tests, mutant, limit, enough, log)
        finally:
            os._exit(pytest.ExitCode.INTERNAL_ERROR)
    _, status, used = os.wait4(child, 0)
    by, seconds = log.read_text(encoding="utf-8"), round(used.ru_utime + used.ru_stime, 1)
    log.unlink()
    if os.WIFSIGNALED(status):
        return Found(STUCK, " ".join(tests), seconds)
    passed = os.WEXITSTATUS(status) in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    return Found(SURVIVED if passed else KILLED, by, seconds)


def _test(tests: Sequence[str], mutant: Mutant | None, limit: int, enough: float, log: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.alarm(30 * limit)
    threading.Thread(target=_end_when_idle, daemon=True).start()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if mutant:
        sys.meta_path.insert(0, Mutated(mutant))
    os._exit(pytest.main([*OPTIONS, *tests], plugins=[Noting(log, tests, enough)]))


def _end_when_idle() -> None:
    used = -1.0
    while (now := time.process_time()) - used > IDLE_SECONDS / 1000:
        used = now
        time.sleep(IDLE_SECONDS)
    os.kill(os.getpid(), signal.SIGALRM)


HOUSE = House()


def judged(mutant: Mutant) -> tuple[Mutant, Found]:
    """A mutant with what its tests came to, those that there are now."""
    found = Found(SURVIVED, "", 0.0)
    near, wide = HOUSE.near(mutant["module"]), HOUSE.wide(mutant["module"])
    for tests, limit, enough in ((near, NEAR_SECONDS, NEAR_ENOUGH), (wide, WIDE_SECONDS, WIDE_ENOUGH)):
        if tests and found.outcome == SURVIVED:
            found = attempt(tests, mutant, limit, enough)
    return mutant, found


def wrongly_killed(done: Sequence[tuple[Mutant, Found]]) -> list[str]:
    """Tests that fail without any mutant, or take so long that they may reach the limits."""
    failing = sorted({found.by for _, found in done if found.outcome == KILLED and found.by})
    checked = attempt(failing, None, 3_600) if failing else None
    wrong = [checked.by] if checked and checked.outcome != SURVIVED else []
    long = {found.by for _, found in done if found.outcome == STUCK}
    return wrong + [by for by in long if attempt(by.split(), None, 3_600).seconds > NEAR_SECONDS / 2]


def table(done: Sequence[tuple[Mutant, Found]]) -> Iterator[str]:
    """The figures by package, and of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, found in done:
        counts[mutant["package"]][found.outcome] += 1
        counts["together"][found.outcome] += 1
    yield f"{'package':<24}{'mutants':>8}{'killed':>8}{'survived':>10}{'killed %':>10}"
    for package, of in sorted(counts.items(), key=lambda one: (one[0] == "together", one[0])):
        killed = of.total() - of[SURVIVED]
        yield f"{package:<24}{of.total():>8}{killed:>8}{of[SURVIVED]:>10}{100 * killed / of.total():>10.1f}"


def main() -> int:
    """0 when all mutants were tried, 1 when tests fail without any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutants", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = time.monotonic()
    hypothesis.settings.register_profile("mutation", deadline=None, database=None, derandomize=True)
    for name in PRELOADED:  # once, before the forks
        importlib.import_module(name)
    assert HOUSE.tests  # read once too
    mutants: list[Mutant] = [json.loads(line) for line in options.mutants.read_text(encoding="utf-8").splitlines()]
    done = []
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for mutant, found in pool.imap_unordered(judged, mutants):
            done.append((mutant, found))
            print(f"{found.outcome} {mutant['name']} {found.by or mutant['diff']}", flush=True)
    survivors = [json.dumps(mutant, ensure_ascii=False) for mutant, found in done if found.outcome == SURVIVED]
    options.mutants.with_name("survivors.jsonl").write_text("\n".join(survivors), encoding="utf-8")
    print("\n".join(table(done)))
    print(f"{len(done)} mutants in {(time.monotonic() - began) / 60:.0f} minutes, {options.workers} at a time")
    if wrong := wrongly_killed(done):
        print(f"fails or takes long without a mutant too: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
