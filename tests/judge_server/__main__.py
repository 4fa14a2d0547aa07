"""Runs the server as a process: prints its base URL and serves until interrupted."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading

from tests.judge_server.actions import FAULTS
from tests.judge_server.server import JudgeServer


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"unknown fault {name!r}; known: {', '.join(FAULTS)}")
    return name, float(share)


def main() -> None:
    """Read the options, serve, print the counts at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--fault", type=_share, action="append", default=[], metavar="NAME=SHARE")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stop_event = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop_event.set())
    server = JudgeServer(
        host=options.host,
        port=options.port,
        latency=options.latency,
        faults=dict(options.fault),
        seed=options.seed,
        keep_log=False,
    )
    with server, contextlib.suppress(KeyboardInterrupt):
        print(server.base_url, flush=True)
        stop_event.wait()
    print(server.stats(), flush=True)


if __name__ == "__main__":
    main()
