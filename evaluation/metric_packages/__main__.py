"""Process of own metrics: receives calls from its worker and sends back JSON. See ``isolation``.

It ends when the worker does. If a call exceeds the limit, it writes where the code was and ends itself, also during a
call of a C library."""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from evaluation.core.metric_specs import RuleMetric
from evaluation.judging.calls import Family, JudgeCase, JudgeDialog, ParsedReply
from evaluation.metric_packages.discovery import PackageSource
from evaluation.metric_packages.loading import InvalidPackage, LoadedPackage, load_package
from evaluation.metric_packages.results import (
    INVALID,
    RAISED,
    InvalidResult,
    encode_failure,
    encode_request,
    encode_result,
)


def main() -> None:
    """Load the packages and answer calls until the worker closes the connection."""
    # Ctrl+C is for the worker, which then closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, load_seconds, sources = sys.argv[1:]
    connection = Connection(int(descriptor))
    try:
        faulthandler.dump_traceback_later(float(load_seconds), exit=True)
        packages = [_load(*source) for source in json.loads(sources)]
        faulthandler.cancel_dump_traceback_later()
    except InvalidPackage as error:
        connection.send_bytes(json.dumps({"fault": str(error)}).encode())
        return
    connection.send_bytes(b"{}")
    rules = {name: metric for package in packages for name, metric in package.rule_metrics.items()}
    families = {name: family for package in packages for name, family in package.families.items()}
    while True:
        try:
            kind, name, seconds, *arguments = connection.recv()
        except EOFError:
            return
        faulthandler.dump_traceback_later(seconds, exit=True)
        reply = _compute(rules[name], *arguments) if kind == "rule" else _judge(families[name], *arguments)
        faulthandler.cancel_dump_traceback_later()
        connection.send_bytes(json.dumps(reply).encode())


def _load(target: str, name: str, version: str, stamp: str) -> LoadedPackage:
    package = load_package(PackageSource(target, name, version))
    if package.stamp != stamp:
        raise InvalidPackage([f"{package.stamp} is installed, but this worker began with {stamp}. Restart it."])
    return package


def _compute(metric: RuleMetric, *inputs: Any) -> dict[str, Any]:
    return _guarded(metric.spec.name, lambda: {"result": encode_result(metric.spec, metric(*inputs))})


def _judge(family: Family, case: JudgeCase, replies: list[ParsedReply]) -> dict[str, Any]:
    """Run the dialog up to its next request or its results. One invalid result fails alone."""

    def step() -> dict[str, Any]:
        dialog = JudgeDialog(family.judge(case))
        for reply in replies:
            dialog.advance(reply)
        if dialog.request is not None:
            return {"request": encode_request(case.rubric, dialog.request)}
        results = {}
        for spec in case.specs:
            try:
                results[spec.name] = encode_result(spec, dialog.results.get(spec.name), mean=case.expects)
            except InvalidResult as error:
                results[spec.name] = encode_failure(f"{INVALID}: {error}")
        return {"results": results}

    return _guarded(family.name, step)


#: Names whose first error was written.
_reported: set[str] = set()


def _guarded(name: str, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Result of a call, or why it has none. The traceback of a name's first error is written for its author."""
    try:
        return call()
    except InvalidResult as error:
        return {"failure": [INVALID, str(error)[:MAX_REASON]]}
    # Own code may raise anything, also by leaving the process.
    except BaseException as error:  # noqa: BLE001
        if name not in _reported:
            _reported.add(name)
            traceback.print_exc()
        return {"failure": [RAISED, f"{type(error).__name__}: {error}"[:MAX_REASON]]}


MAX_REASON = 500


if __name__ == "__main__":
    main()
