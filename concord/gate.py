"""Gate of a pull request: evaluates a file of answers on a Concord site and compares it with the main branch.

    python -m concord.gate --questions questions.jsonl --set handbook --answers answers.jsonl --system my-rag \
        --branch my-branch --summary summary.md

The environment holds CONCORD_URL and CONCORD_TOKEN. Runs are named after their branch. On the main branch the run
becomes the next baseline, and only ``--fail-under`` is checked. Exit code: 0 if the gate passes, 100 if not, 1 with a
message if nothing could be evaluated."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx

from concord import Client, ConcordError


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m concord.gate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", required=True, help="file of questions")
    parser.add_argument("--set", required=True, help="name of the question set")
    parser.add_argument("--answers", required=True, help="file of the answers of this commit")
    parser.add_argument("--system", required=True)
    parser.add_argument("--branch", required=True, help="branch of this commit; its runs have this name")
    parser.add_argument("--main", default="main", help="branch to compare with")
    parser.add_argument("--max-drop", type=float, default=0.02, help="largest drop of the score that passes")
    parser.add_argument("--fail-under", type=float, help="lowest score that passes")
    parser.add_argument("--judge", help="name of the judge; default: the project's")
    parser.add_argument("--allow-undecided", action="store_true", help="pass if the gate cannot tell")
    parser.add_argument("--summary", help="Markdown file to append the result to")
    return parser.parse_args(arguments)


def check(client: Client, options: argparse.Namespace) -> int:
    """Evaluate, write the summary, and return the exit code."""
    questions = client.import_questions(options.set, options.questions)
    answers = client.import_answers(questions, options.system, options.answers)
    judge = {"judge": options.judge} if options.judge else {}
    earlier = client.runs(question_set=questions.id, system=options.system, status="completed")
    baseline = next((run for run in earlier if run.name == options.main), None)
    run = client.wait(client.start_run(answers, name=options.branch, **judge))
    if run.status in ("paused", "cancelled"):
        raise ConcordError(f"run {run.id} is {run.status}: {run.error_message}")
    gate: dict[str, Any] = {"allow_undecided": options.allow_undecided}
    if options.fail_under is not None:
        gate["fail_under"] = options.fail_under
    if baseline and options.branch != options.main:
        gate |= {"baseline": baseline.id, "max_drop": options.max_drop}
    if options.summary:
        with Path(options.summary).open("ab") as file:
            file.write(client.report_file(run, "md", **gate) + b"\n")
    report = client.report(run, **gate)
    print(report["verdict"]["score"])
    return int(report["gate"]["exit_code"]) if report["gate"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    options = parse(arguments)
    with Client(os.environ["CONCORD_URL"], os.environ["CONCORD_TOKEN"]) as client:
        try:
            return check(client, options)
        except (ConcordError, OSError, httpx.TransportError) as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
