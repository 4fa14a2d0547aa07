"""Fill a fresh database with pairs and a judge: ``python -m contrib.pairs.tests.prepare_faults N URL``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from contrib.pairs.models import Pair, PairSet
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint
from tests.factories import make_project


def main(count: int, base_url: str) -> int:
    """Return the id of a comparison of ``count`` pairs, to be judged by ``remote`` at ``base_url``."""
    pair_set = PairSet.objects.create(project=make_project(), name="pairs")
    Pair.objects.bulk_create(
        Pair(pair_set=pair_set, external_id=f"p{n}", position=n, question_text=f"Question {n}?", text_a="a", text_b="b")
        for n in range(1, count + 1)
    )
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=8)
    save_judge(pair_set.project, "remote", endpoint, model="test-model", language="en")
    return pair_set.pk


if __name__ == "__main__":
    print(main(int(sys.argv[1]), sys.argv[2]))
