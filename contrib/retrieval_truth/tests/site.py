"""Addresses and pages of retrieval truth, for the tests of the core that walk all of them."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse

from contrib.retrieval_truth.models import PooledPassage, RepairMember, RepairSystem, RetrievalRepair
from contrib.retrieval_truth.pooling import make_repair
from evaluation.models import Project, Run, User
from tests.access_rules import LEADS, LEADS_QUEUE, LOGGED_IN, RATES_PAIRS, SEES_QUEUE
from tests.pages.world import World

RULES = {
    ("GET", "truth-list"): LOGGED_IN,
    ("GET", "truth-new"): LEADS,
    ("POST", "truth-new"): LEADS,
    ("GET", "truth"): SEES_QUEUE,
    ("GET", "truth-rate"): RATES_PAIRS,
    ("POST", "truth-save"): RATES_PAIRS,
    ("GET", "truth-export"): LEADS_QUEUE,
    ("POST", "truth-close"): LEADS_QUEUE,
    ("POST", "truth-accept"): LEADS_QUEUE,
    ("GET", "api-repairs-list"): LOGGED_IN,
    ("POST", "api-repairs-list"): LEADS,
    ("GET", "api-repairs-detail"): SEES_QUEUE,
    ("GET", "api-repairs-next"): RATES_PAIRS,
    ("POST", "api-repairs-rate"): RATES_PAIRS,
    ("GET", "api-repairs-figures"): LEADS_QUEUE,
    ("GET", "api-repairs-export"): LEADS_QUEUE,
    ("POST", "api-repairs-close"): LEADS_QUEUE,
    ("POST", "api-repairs-reopen"): LEADS_QUEUE,
    ("POST", "api-repairs-accept"): LEADS_QUEUE,
}
NO_PAGES = {"truth-export": "a file"}


def repair_of(world: World) -> RetrievalRepair:
    """Return a repair with one passage that the member has not rated, made when it is first needed."""
    about = {"project": world.project, "question_set": world.question_set, "k": 5, "size": 1, "seed": 7}
    repair, created = RetrievalRepair.objects.get_or_create(name="r1", defaults=about)
    if created:
        RepairMember.objects.create(repair=repair, reviewer=world.people["member"])
        RepairSystem.objects.create(repair=repair, run=world.run, position=0, name="alpha")
        PooledPassage.objects.create(
            repair=repair, question=world.answer.question, chunk_id="c1", text="Because of A.", ranks=[1], guess=0.5,
            stratum="certain", probability=1.0, sampled=True,
        )  # fmt: skip
    return repair


SUBJECTS = {"truth": lambda world: repair_of(world).pk, "repairs": lambda world: repair_of(world).pk}
QUERIES = {"truth-new": lambda world: {"run": world.run.pk}}
BODIES = {
    "truth-new": lambda world: {"run": world.run.pk},
    "api-repairs-list": lambda world: {
        "runs": [world.run.pk, world.run.pk], "name": "r2", "reviewers": [world.people["member"].username],
    },
    "api-repairs-rate": lambda world: {"passage": repair_of(world).passages.get().pk, "grade": "not"},
}  # fmt: skip
PAGES = {
    "repairs": ("lead", lambda world: f"{reverse('truth-list')}?{repair_of(world).pk}", 6),
    "new repair": ("lead", lambda world: f"{reverse('truth-new')}?run={world.run.pk}", 8),
    "repair": ("lead", lambda world: reverse("truth", args=[repair_of(world).pk]), 12),
    "passage to rate": ("member", lambda world: reverse("truth-rate", args=[repair_of(world).pk]), 9),
}


def prepare(vector: Run, graph: Run, people: Mapping[str, User]) -> None:
    """Add a repair to the demo."""
    raters = [people["reviewer1"]]
    make_repair([vector, graph], name="What helps?", reviewers=raters, size=30, k=5, guideline="Read it.", seed=3)


def lead_pages(vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    repair = RetrievalRepair.objects.get(project=vector.project)
    return [reverse("truth-list"), f"{reverse('truth-new')}?run={run.pk}", reverse("truth", args=[repair.pk])]


def reviewer_pages(project: Project) -> list[str]:
    """Addresses that a reviewer opens."""
    return [reverse("truth-rate", args=[RetrievalRepair.objects.get(project=project).pk])]
