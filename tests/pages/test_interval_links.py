"""Pages that show an interval link to its definition."""

from __future__ import annotations

import re

from django.test import Client
from django.urls import reverse

from evaluation.models import Run, User
from tests.pages.tours import pages_of_a_lead
from tests.pages.visible_text import visible_texts

INTERVAL = re.compile(r"\d\.\d\d–\d\.\d\d|±0\.\d")
LINK = f'href="{reverse("intervals")}#interval-'


def test_every_page_with_an_interval_links_to_a_definition(toured: dict[str, User]) -> None:
    client = Client()
    client.force_login(toured["lead"])
    run = Run.objects.get(name="demo-en · demo-graph")
    unlinked, linked = [], []
    for path in pages_of_a_lead():
        page = client.get(path).content.decode()
        if any(INTERVAL.search(text) for text in visible_texts(page)):
            (linked if LINK in page else unlinked).append(path)
    assert not unlinked
    assert {reverse("home"), reverse("run-list"), reverse("run", args=[run.pk])} <= set(linked)
