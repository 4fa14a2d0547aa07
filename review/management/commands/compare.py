"""Compare runs question by question, and put them in order."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from review.comparisons.gating import gates_of
from review.comparisons.values import compared_runs
from review.comparisons.verdict import family_sentence, sentences
from review.comparisons.whole import (
    COMPARISON_EXPORTS,
    Comparison,
    compare,
    comparison_json,
    export_comparison,
    with_margin,
)
from review.management.options import add_gate_arguments, gate_asked, print_gate, refusals, run_named, warn_of_gate
from review.management.sheets import write
from review.management.tables import comparison_sheets
from review.reports.gate import Gate


class Command(SiteCommand):
    """``compare [RUN…] [--questions NAME] [--margin M] [--max-drop D] [--fail-under X]``: the first is the baseline;
    without runs all of the question set. Exit 100 where a run does not pass the gate."""

    help = "Compare runs with the first of them, question by question, and rank them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The runs, or the set they are about."""
        parser.add_argument("run", type=int, nargs="*")
        parser.add_argument("--questions", default="", help="all runs over this question set, or NAME@VERSION")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--seed", type=int, default=0, help="Random seed of the permutations")
        parser.add_argument("--format", choices=["text", "json"], default="text")
        known = ", ".join(COMPARISON_EXPORTS.endings)
        parser.add_argument("--output", type=Path, action="append", default=[], help=f"file ending in {known}")
        add_gate_arguments(parser, baseline=False)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the files and print the table."""
        with refusals():
            for path in options["output"]:
                COMPARISON_EXPORTS.format_of(path)
        if options["run"]:
            runs = [run_named(pk) for pk in options["run"]]
        else:
            with refusals():
                runs = compared_runs(options["project"], options["questions"])
        if not runs:
            raise CommandError("there is no run to compare")
        runs = list(dict.fromkeys(runs))
        gated = options["max_drop"] is not None
        of_gate = options | {"margin": options["margin"] if gated else None}
        asked = gate_asked(of_gate, runs[0] if len(runs) > 1 and gated else None)
        found = compare(runs, seed=options["seed"])
        with refusals():
            found = with_margin(found, options["margin"])
        gates = gates_of(found.sides, asked)
        for path in options["output"]:
            with refusals():
                export_comparison(found, gates, path)
        if options["format"] == "json":
            self.stdout.write(json.dumps(comparison_json(found, gates), ensure_ascii=False, allow_nan=False, indent=2))
        else:
            self._show(found, gates)
        for run, gate in gates.items():
            warn_of_gate(self, gate, run if len(gates) > 1 else None)
        if code := max((gate.exit_code for gate in gates.values()), default=0):
            sys.exit(code)

    def _show(self, found: Comparison, gates: Mapping[int, Gate]) -> None:
        """Gates, then verdicts, then tables."""
        for run, gate in gates.items():
            print_gate(self, gate, run if len(gates) > 1 else None)
        for one in found.differences:
            for sentence in sentences(one):
                self.stdout.write(sentence)
        if found.differences:
            self.stdout.write(family_sentence(found.family))
        self.stdout.write("")
        write(self.stdout, comparison_sheets(found))
