"""Addresses and pages of practice, for the tests of the core that walk all of them."""

from __future__ import annotations

from django.urls import reverse

from evaluation.models import Project
from tests.access_rules import LOGGED_IN

RULES = {
    ("GET", "practice"): LOGGED_IN,
    ("GET", "practice-example"): LOGGED_IN,
    ("POST", "practice-example"): LOGGED_IN,
    ("POST", "practice-restart"): LOGGED_IN,
}
SUBJECTS = {"practice": lambda _: 1}


def reviewer_pages(project: Project) -> list[str]:
    """Addresses that a reviewer opens."""
    return [reverse("practice"), reverse("practice-example", args=[1])]
