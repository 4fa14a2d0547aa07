"""Describe the own metrics of installed packages in Markdown."""

from __future__ import annotations

from typing import Any

from evaluation.management.metrics_page import metric_section
from evaluation.management.site_command import SiteCommand
from evaluation.metric_packages.loading import PACKAGES


class Command(SiteCommand):
    """``own_metrics``: the page of metrics, for own metrics."""

    help = "Describe the own metrics of installed packages in Markdown, as docs/metrics.md describes the shipped ones."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each package with its version, source hash and metrics."""
        if not PACKAGES:
            self.stderr.write("No package of own metrics is installed. See docs/own-metrics.md.")
        for package in PACKAGES:
            self.stdout.write(f"## {package.stamp}\n")
            for spec in package.specs:
                self.stdout.write("\n".join(metric_section(spec)))
