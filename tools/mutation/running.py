"""Run the tests of every mutant and count the noticed ones: ``python -m tools.mutation.running MUTANTS.jsonl``.

A mutant is never written into the tree: a forked process imports its source in place of the module's, and ends at
limits of processor time, time and memory. The tests near the module run first; before it counts as a survivor, those
further away run too. At the end the failed tests run once more without a mutant and must pass. Survivors are written
beside the mutants to ``survivors.jsonl``, which can be passed in again once there are tests for them."""

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

from tools.mutation.modules import ModuleGraph, Mutant

PRELOADED = ("django.test", "numpy", "openpyxl", "pydantic", "rest_framework", "schemathesis", "scipy.stats")
LANES = "not faults and not bench and not crowd and not endurance and not browser"
OPTIONS = ("-x", "--tb=no", "--hypothesis-profile=mutation", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", LANES)
NEAR_SECONDS, WIDE_SECONDS = 40, 300  # of processor time
NEAR_ENOUGH, WIDE_ENOUGH = 20, 60  # of the same, after which no further test begins: simulations take minutes
IDLE_SECONDS = 20  # without any processor time: what a test waits for will not come
MOST_MEMORY = 4 << 30
KILLED, SURVIVED, STUCK = "killed", "survived", "killed by a limit"


class MutantResult(NamedTuple):
    """Result of the tests: ``failed_tests`` names the test that failed, or all if a limit ended them; ``seconds`` of
    processor time."""

    outcome: str
    failed_tests: str
    seconds: float


class MutantImporter(MetaPathFinder, SourceFileLoader):
    """Imports the mutated module in place of its file."""

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


class FailureRecorder:
    """A plugin of pytest that runs ``tests`` in their order, writes down which test failed, or which file cannot be
    imported, and says when it was enough."""

    def __init__(self, log: Path, tests: Sequence[str], enough: float) -> None:
        self.log, self.enough = log, enough
        self.order = {str(Path(path).resolve()): position for position, path in enumerate(tests)}

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


def run_tests(tests: Sequence[str], mutant: Mutant | None, limit: int, enough: float = math.inf) -> MutantResult:
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
    failed_tests, seconds = log.read_text(encoding="utf-8"), round(used.ru_utime + used.ru_stime, 1)
    log.unlink()
    if os.WIFSIGNALED(status):
        return MutantResult(STUCK, " ".join(tests), seconds)
    passed = os.WEXITSTATUS(status) in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    return MutantResult(SURVIVED if passed else KILLED, failed_tests, seconds)


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
        sys.meta_path.insert(0, MutantImporter(mutant))
    os._exit(pytest.main([*OPTIONS, *tests], plugins=[FailureRecorder(log, tests, enough)]))


def _end_when_idle() -> None:
    cpu_before = -1.0
    while (cpu_seconds := time.process_time()) - cpu_before > IDLE_SECONDS / 1000:
        cpu_before = cpu_seconds
        time.sleep(IDLE_SECONDS)
    os.kill(os.getpid(), signal.SIGALRM)


GRAPH = ModuleGraph()


def test_mutant(mutant: Mutant) -> tuple[Mutant, MutantResult]:
    """Run the tests of a mutant, and return it with the result."""
    mutant_result = MutantResult(SURVIVED, "", 0.0)
    near_tests, wide_tests = GRAPH.near(mutant["module"]), GRAPH.wide(mutant["module"])
    for tests, limit, enough in ((near_tests, NEAR_SECONDS, NEAR_ENOUGH), (wide_tests, WIDE_SECONDS, WIDE_ENOUGH)):
        if tests and mutant_result.outcome == SURVIVED:
            mutant_result = run_tests(tests, mutant, limit, enough)
    return mutant, mutant_result


def tests_failing_without_mutant(results: Sequence[tuple[Mutant, MutantResult]]) -> list[str]:
    """Tests that fail without any mutant, or take so long that they may reach the limits."""
    failing = sorted(
        {
            mutant_result.failed_tests
            for _, mutant_result in results
            if mutant_result.outcome == KILLED and mutant_result.failed_tests
        }
    )
    checked = run_tests(failing, None, 3_600) if failing else None
    failing_tests = [checked.failed_tests] if checked and checked.outcome != SURVIVED else []
    slow_tests = {mutant_result.failed_tests for _, mutant_result in results if mutant_result.outcome == STUCK}
    return failing_tests + [
        names for names in slow_tests if run_tests(names.split(), None, 3_600).seconds > NEAR_SECONDS / 2
    ]


def summary_rows(results: Sequence[tuple[Mutant, MutantResult]]) -> Iterator[str]:
    """The figures by package, and of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, mutant_result in results:
        counts[mutant["package"]][mutant_result.outcome] += 1
        counts["together"][mutant_result.outcome] += 1
    yield f"{'package':<24}{'mutants':>8}{'killed':>8}{'survived':>10}{'killed %':>10}"
    for package, package_counts in sorted(
        counts.items(), key=lambda package_item: (package_item[0] == "together", package_item[0])
    ):
        killed = package_counts.total() - package_counts[SURVIVED]
        yield f"{package:<24}{package_counts.total():>8}{killed:>8}{package_counts[SURVIVED]:>10}{100 * killed / package_counts.total():>10.1f}"  # noqa: E501


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
    assert GRAPH.tests  # read once too
    mutants: list[Mutant] = [json.loads(line) for line in options.mutants.read_text(encoding="utf-8").splitlines()]
    results = []
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for mutant, mutant_result in pool.imap_unordered(test_mutant, mutants):
            results.append((mutant, mutant_result))
            print(
                f"{mutant_result.outcome} {mutant['name']} {mutant_result.failed_tests or mutant['diff']}", flush=True
            )
    survivors = [
        json.dumps(mutant, ensure_ascii=False) for mutant, mutant_result in results if mutant_result.outcome == SURVIVED
    ]
    options.mutants.with_name("survivors.jsonl").write_text("\n".join(survivors), encoding="utf-8")
    print("\n".join(summary_rows(results)))
    print(f"{len(results)} mutants in {(time.monotonic() - began) / 60:.0f} minutes, {options.workers} at a time")
    if failing_tests := tests_failing_without_mutant(results):
        print(f"fails or takes long without a mutant too: {failing_tests}")
    return 1 if failing_tests else 0


if __name__ == "__main__":
    sys.exit(main())
