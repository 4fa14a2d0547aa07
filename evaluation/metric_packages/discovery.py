"""Packages of own metrics: installed ones by their entry points, and the file of ``CONCORD_METRICS``.

Every process imports this module, so it imports no metrics."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "concord.metrics"


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Location of a package: ``module:attribute`` of its entry point, or the path of a file.

    ``name`` and ``version`` are those of the distribution; a file has its own name and no version."""

    target: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class PackageFault:
    """Reason why a package is not registered."""

    package: str
    reason: str


#: Faults of the packages of this process, for the system check.
FAULTS: list[PackageFault] = []


def register_own_metrics(file: str) -> None:
    """Load and register all packages. Metrics are imported only if there is one."""
    if sources := find_sources(file):
        from evaluation.metric_packages.isolation import judge_isolated
        from evaluation.metric_packages.loading import register_packages

        register_packages(sources, judge_isolated)


def find_sources(file: str) -> list[PackageSource]:
    """Installed packages by name, then the file if one is set."""
    sources = [
        PackageSource(entry.value, entry.dist.name, entry.dist.version)
        for entry in entry_points(group=GROUP)
        if entry.dist
    ]
    files = [PackageSource(str(Path(file).resolve()), Path(file).name)] if file else []
    return [*sorted(sources, key=lambda source: (source.name, source.target)), *files]
