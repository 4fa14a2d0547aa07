"""Fill a fresh database with a corpus and a writing model, for the fault tests:

``python -m contrib.generation.tests.prepare_faults URL``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from contrib.generation.tests.writing import corpus_of
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, Project


def main(base_url: str) -> None:
    """Create the only project, with the corpus ``house en`` and the judge ``remote``."""
    project = Project.objects.get()
    corpus_of(project)
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=8)
    save_judge(project, "remote", endpoint, model="test-model", language="en")


if __name__ == "__main__":
    main(sys.argv[1])
