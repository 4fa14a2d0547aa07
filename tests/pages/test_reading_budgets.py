"""How much a person has to read before anything is unfolded, over the demo, in both languages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models import Run, User
from tests.pages.outside_details import Shown, shown

LANGUAGES = ("en", "ko")


def opened(person: User, language: str, address: str) -> Shown:
    """What the page shows the person in the language."""
    person.language = language
    person.save()
    client = Client()
    client.force_login(person)
    response = client.get(address)
    assert response.status_code == 200
    return shown(response.content.decode())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_screen_of_every_run_is_read_in_a_minute(demo: dict[str, User], language: str) -> None:
    for run in Run.objects.all():
        found = opened(demo["lead"], language, reverse("run", args=[run.pk]))
        assert 50 < found.words <= 300, (str(run), found)
        assert found.figures <= 80, (str(run), found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_agreement_shows_a_row_a_metric_first(demo: dict[str, User], language: str) -> None:
    run = Run.objects.get(name="demo · demo-graph")
    found = opened(demo["lead"], language, reverse("run-agreement", args=[run.pk]))
    assert 10 < found.figures <= 120


def test_what_is_folded_is_not_counted_but_its_summary_is() -> None:
    page = """<body><p>not 1 main</p><main><h1>Two words</h1>
      <details><summary>One <b>more 5</b></summary><p>hidden 6</p>
      <details open><summary>8</summary>9</details></details>
      <details open><summary>Open</summary><p>seen 0.86–0.90</p></details><p hidden>no 3</p></main></body>"""
    assert shown(page) == Shown(words=8, figures=3)  # Two words One more 5 Open seen 0.86–0.90; 5, 0.86 and 0.90
