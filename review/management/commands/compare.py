"""Compare runs question by question and rank them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.specs.flags import whole_number
from review.comparisons.comparison import (
    COMPARISON_EXPORTS,
    Comparison,
    compare,
    comparison_json,
    export_comparison,
    with_margin,
)
from review.comparisons.gates import run_gates
from review.comparisons.values import runs_to_compare
from review.comparisons.verdict import family_sentence, sentences
from review.management.options import (
    add_gate_arguments,
    command_errors,
    find_run,
    print_gate,
    read_gate_request,
    warn_undecided_gate,
)
from review.management.sheets import write
from review.management.tables import comparison_sheets
from review.reports.gate import Gate


class Command(SiteCommand):
    """``compare [RUN…] [--questions NAME] [--margin M] [--max-drop D] [--fail-under X]``.

    The first run is the baseline; without runs, all runs of the question set are compared. Exit 100 if a run does not
    pass the gate."""

    help = "Compare runs with the first one, question by question, and rank them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="*")
        parser.add_argument("--questions", default="", help="compare all runs of this question set or NAME@VERSION")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        parser.add_argument("--seed", type=whole_number(), default=0, help="random seed of the permutation tests")
        parser.add_argument("--format", choices=["text", "json"], default="text")
        known = ", ".join(COMPARISON_EXPORTS.extensions)
        parser.add_argument("--output", type=Path, action="append", default=[], help=f"file ending in {known}")
        add_gate_arguments(parser, baseline=False)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the files and print the tables."""
        with command_errors():
            for path in options["output"]:
                COMPARISON_EXPORTS.format_for_path(path)
        if options["run"]:
            runs = [find_run(pk) for pk in options["run"]]
        else:
            with command_errors():
                runs = runs_to_compare(options["project"], options["questions"])
        if not runs:
            raise CommandError("No runs to compare. Name them, or set --questions.")
        runs = list(dict.fromkeys(runs))
        has_drop = options["max_drop"] is not None
        gate_options = options | {"margin": options["margin"] if has_drop else None}
        gate_request = read_gate_request(gate_options, runs[0] if len(runs) > 1 and has_drop else None)
        comparison = compare(runs, seed=options["seed"])
        with command_errors():
            comparison = with_margin(comparison, options["margin"])
        gates = run_gates(comparison.sides, gate_request)
        for path in options["output"]:
            with command_errors():
                export_comparison(comparison, gates, path)
        if options["format"] == "json":
            self.stdout.write(
                json.dumps(comparison_json(comparison, gates), ensure_ascii=False, allow_nan=False, indent=2)
            )
        else:
            self._print_comparison(comparison, gates)
        for run, gate in gates.items():
            warn_undecided_gate(self, gate, run if len(gates) > 1 else None)
        if code := max((gate.exit_code for gate in gates.values()), default=0):
            sys.exit(code)

    def _print_comparison(self, comparison: Comparison, gates: Mapping[int, Gate]) -> None:
        """Print gates, verdicts and tables."""
        for run, gate in gates.items():
            print_gate(self, gate, run if len(gates) > 1 else None)
        for run_difference in comparison.differences:
            for sentence in sentences(run_difference):
                self.stdout.write(sentence)
        if comparison.differences:
            self.stdout.write(family_sentence(comparison.family))
        self.stdout.write("")
        write(self.stdout, comparison_sheets(comparison))
