"""A reviewer with nothing but the keyboard, answer after answer: how many keys, and how often the judge appears."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from review.models import Assignment, Rating
from review.models.queue_spec import CRITERIA_PER_ANSWER
from tests.factories import (
    make_answer_set,
    make_profile,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    question_spec,
)
from tests.pages.browser import READ_MS, visit, wrong_with

# the seeded share of reveals goes by the numbers of items and reviewers: they are the same whatever ran before
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True, reset_sequences=True)]
PARTS = ("correctness", "faithfulness", "completeness", "factual_accuracy")
MOST_KEYS, MOST_REVEALS_OF_EIGHT = 5, 3


@pytest.mark.parametrize(("language", "count"), [("en", 16), pytest.param("ko", 60, marks=pytest.mark.endurance)])
def test_an_answer_takes_five_keys_at_most_and_the_judge_seldom_appears(
    browser: Any, live_server: Any, language: str, count: int
) -> None:
    questions = make_question_set(make_project(), [question_spec(n) for n in range(1, count + 1)])
    parts = [{"metric": name, "weight": 0.25} for name in PARTS]
    profile = make_profile(questions.project, {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": parts})
    run = make_scored_run(make_answer_set(questions), [2, 3, 4], metrics=PARTS, profile=profile)
    queue = make_queue(run, 1, metrics=[], coverage="corrected_overall")
    random, keys, reveals = Random(8), [], []
    with visit(browser, live_server.url, queue.members.get().reviewer, language=language) as window:
        window.open(f"/review/{queue.pk}/")
        assert wrong_with(window, "card") == []
        for _ in range(count):
            here, pressed = window.path, 0
            for _criterion in range(CRITERIA_PER_ANSWER):
                window.page.keyboard.press(str(random.randint(1, 5)))
                pressed += 1
            window.page.keyboard.press("Enter")
            window.wait_to_leave(here, or_show="#reveal")
            reveals.append(bool(window.page.locator("#reveal").count()))
            if reveals[-1]:
                here = window.path
                window.pass_time(READ_MS)
                window.page.keyboard.press("Enter")
                window.wait_to_leave(here)
            keys.append(pressed + 1 + reveals[-1])
            window.settle()
        assert window.complaints == []
    assert Assignment.objects.filter(queue=queue, submitted_at__isnull=False).count() == count
    # each answer three of the four criteria
    counts = {name: Rating.objects.filter(metric__name=name, phase="initial").count() for name in PARTS}
    assert counts == dict.fromkeys(PARTS, count * CRITERIA_PER_ANSWER // len(PARTS))
    assert max(keys) <= MOST_KEYS
    assert sum(reveals[:8]) <= MOST_REVEALS_OF_EIGHT
