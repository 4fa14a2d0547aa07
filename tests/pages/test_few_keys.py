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
from tests.pages.browser import READ_MS, open_window, page_problems

# the seeded share of reveals goes by the numbers of items and reviewers: they are the same whatever ran before
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True, reset_sequences=True)]
METRIC_NAMES = ("correctness", "faithfulness", "completeness", "factual_accuracy")
MOST_KEYS, MOST_REVEALS_OF_EIGHT = 5, 3


@pytest.mark.parametrize(("language", "count"), [("en", 16), pytest.param("ko", 60, marks=pytest.mark.endurance)])
def test_rating_an_answer_takes_five_keys_at_most(browser: Any, live_server: Any, language: str, count: int) -> None:
    questions = make_question_set(make_project(), [question_spec(n) for n in range(1, count + 1)])
    components = [{"metric": name, "weight": 0.25} for name in METRIC_NAMES]
    profile = make_profile(
        questions.project, {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": components}
    )
    run = make_scored_run(make_answer_set(questions), [2, 3, 4], metrics=METRIC_NAMES, profile=profile)
    queue = make_queue(run, 1, metrics=[], coverage="corrected_overall")
    random, keys, reveals = Random(8), [], []
    with open_window(browser, live_server.url, queue.members.get().reviewer, language=language) as window:
        window.open(f"/review/{queue.pk}/")
        assert page_problems(window, "card") == []
        for _ in range(count):
            item_path, pressed = window.path, 0
            for _criterion in range(CRITERIA_PER_ANSWER):
                window.page.keyboard.press(str(random.randint(1, 5)))
                pressed += 1
            window.page.keyboard.press("Enter")
            window.wait_to_leave(item_path, or_show="#reveal")
            reveals.append(bool(window.page.locator("#reveal").count()))
            if reveals[-1]:
                item_path = window.path
                window.pass_time(READ_MS)
                window.page.keyboard.press("Enter")
                window.wait_to_leave(item_path)
            keys.append(pressed + 1 + reveals[-1])
            window.settle()
        assert window.complaints == []
    assert Assignment.objects.filter(queue=queue, submitted_at__isnull=False).count() == count
    # each answer three of the four criteria
    counts = {name: Rating.objects.filter(metric__name=name, phase="initial").count() for name in METRIC_NAMES}
    assert counts == dict.fromkeys(METRIC_NAMES, count * CRITERIA_PER_ANSWER // len(METRIC_NAMES))
    assert max(keys) <= MOST_KEYS
    assert sum(reveals[:8]) <= MOST_REVEALS_OF_EIGHT
