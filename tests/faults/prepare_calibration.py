"""Fills a fresh database with a gold set and a judge for the fault lane: ``python -m tests.faults.prepare_calibration
URL``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.criteria.rubrics import draft
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, Project
from review.calibration.versions import freeze
from tests.review.calibration.labelled import rated_run, rubric_with_instruction


def main(base_url: str) -> int:
    """The number of a draft of the judge ``remote``, with 240 labels as gold set ``gold``."""
    run = rated_run(240)
    Project.objects.exclude(pk=run.project_id).delete()  # the commands take the only one
    freeze(run, "gold", by=None)
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=8)
    save_judge(run.project, "remote", endpoint, model="test-model", language="en")
    return draft(run.project, rubric_with_instruction("BEGIN example 1\n{}\nEND example" * 5), by=None).version


if __name__ == "__main__":
    print(main(sys.argv[1]))
