"""Build the cached figures of runs as a worker does, and print the peak memory in MB: ``python -m tools.bench.keeping
figures|agreement|comparison RUN…``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import resource
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.models import Run
from review.figure_cache.builders import BUILDERS
from review.figure_cache.store import build_and_store

if __name__ == "__main__":
    kind, *keys = sys.argv[1:]
    runs = Run.objects.in_bulk([int(key) for key in keys])
    build_and_store(BUILDERS[kind], [runs[int(key)] for key in keys])
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
