"""Addresses and pages of pairs, for the tests of the core that walk all of them."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse

from contrib.pairs.models import Pair, PairMember, PairSet
from contrib.pairs.services import make_pairs
from evaluation.models import Project, Run, User
from tests.access_rules import LEADS, LEADS_QUEUE, LOGGED_IN, RATES_PAIRS, SEES_QUEUE
from tests.pages.world import World

RULES = {
    ("GET", "pair-list"): LOGGED_IN,
    ("GET", "pair-new"): LEADS,
    ("POST", "pair-new"): LEADS,
    ("GET", "pairs"): SEES_QUEUE,
    ("GET", "pairs-rate"): RATES_PAIRS,
    ("POST", "pairs-prefer"): RATES_PAIRS,
    ("GET", "pairs-export"): LEADS_QUEUE,
    ("POST", "pairs-close"): LEADS_QUEUE,
    ("GET", "api-pairs-list"): LOGGED_IN,
    ("POST", "api-pairs-list"): LEADS,
    ("GET", "api-pairs-detail"): SEES_QUEUE,
    ("GET", "api-pairs-next"): RATES_PAIRS,
    ("POST", "api-pairs-prefer"): RATES_PAIRS,
    ("GET", "api-pairs-figures"): LEADS_QUEUE,
    ("GET", "api-pairs-export"): LEADS_QUEUE,
    ("POST", "api-pairs-close"): LEADS_QUEUE,
    ("POST", "api-pairs-reopen"): LEADS_QUEUE,
}
NO_PAGES = {"pairs-export": "a file"}


def make_pair_set(project: Project, reviewer: User) -> PairSet:
    """Return a comparison with one pair that the reviewer has not rated."""
    pair_set = PairSet.objects.create(project=project, name="c1", seed=7)
    PairMember.objects.create(pair_set=pair_set, reviewer=reviewer)
    Pair.objects.create(
        pair_set=pair_set, external_id="p1", position=1, question_text="Why?", reference="Because.",
        system_a="alpha", system_b="beta", text_a="Because of A.", text_b="Because of B.",
    )  # fmt: skip
    return pair_set


def pair_set_of(world: World) -> PairSet:
    """Return the comparison of the world's member, made when it is first needed."""
    pair_set = PairSet.objects.filter(project=world.project, name="c1").first()
    return pair_set or make_pair_set(world.project, world.people["member"])


SUBJECTS = {"pairs": lambda world: pair_set_of(world).pk}
EXPORTS = dict.fromkeys(("pairs-export", "api-pairs-export"), SUBJECTS["pairs"])
FIGURES = {"api-pairs-figures": SUBJECTS["pairs"]}
QUERIES = {"pair-new": lambda world: {"run": world.run.pk}}
BODIES = {
    "pair-new": lambda world: {"run_a": world.run.pk},
    "api-pairs-list": lambda world: {
        "run_a": world.run.pk, "run_b": world.run.pk, "name": "c2", "reviewers": [world.people["member"].username],
    },
    "api-pairs-prefer": lambda world: {"pair": pair_set_of(world).pairs.get().pk, "value": 1},
}  # fmt: skip


def prepare(vector: Run, graph: Run, people: Mapping[str, User]) -> None:
    """Add a comparison to the demo."""
    raters = [people["reviewer1"], people["lead"]]
    make_pairs(vector, graph, name="Which one?", reviewers=raters, size=3, guideline="Read both.", seed=3)


def lead_pages(vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    pair_set = PairSet.objects.get(project=vector.project, name="Which one?")
    return [reverse("pair-list"), f"{reverse('pair-new')}?run={run.pk}", reverse("pairs", args=[pair_set.pk])]


def reviewer_pages(project: Project) -> list[str]:
    """Addresses that a reviewer opens."""
    pair_set = PairSet.objects.get(project=project, name="Which one?")
    return [reverse("pair-list"), reverse("pairs-rate", args=[pair_set.pk])]
