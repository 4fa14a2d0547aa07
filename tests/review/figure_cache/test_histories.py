"""Whatever happens to a run, in whatever order: what is kept and holds is what is made from nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random

import pytest
from django.core.management import call_command

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import MetricDefinition, User
from review.calibration.versions import freeze
from review.decisions.adjudication import adjudicate, rule_on
from review.decisions.assumptions import current_acceptance, set_acceptance
from review.decisions.overrides import override, override_many, revert
from review.evidence.rating_input import RatingInput
from review.figure_cache import builders
from review.figure_cache.builders import differing_kinds
from review.figure_cache.selectors import agreement_figures, headlines_of, run_figures
from review.models import Assignment, ItemEvent, PendingInvalidation, ReviewQueue
from review.ratings.import_files import import_ratings
from review.ratings.leases import next_assignment
from review.ratings.reveals import RatingUpdate, finalise, rate_again, reveal
from review.ratings.submitting import escalate, flag, release, skip, submit, undo
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user, unique
from tests.review.builders import decide

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
STEPS = 30


class History:
    """A run with a queue, three reviewers and a lead, and everything that can be done with it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        questions = make_question_set(specs=9)
        self.run = make_scored_run(make_answer_set(questions))
        self.other = make_scored_run(make_answer_set(questions))  # its answers are the same
        project = self.run.project
        self.people = [make_user(Role.REVIEWER, project) for _ in range(3)]
        self.lead = make_user(Role.LEAD, project)
        self.queue = make_queue(self.run, self.people, reviews_needed=2, reveal="always", strategy="uniform", size=7)
        self.metrics = list(MetricDefinition.objects.filter(scores__run=self.run).distinct().order_by("pk"))
        self.verbs: Sequence[Callable[[], object]] = (
            *(self.rate, self.rate, self.rate, self.finish, self.again, self.take_back, self.pass_on, self.put_down),
            *(self.say_wrong, self.rule, self.decide, self.decide_many, self.revert, self.settle, self.bring),
            *(self.accept, self.draw, self.freeze),
        )

    def step(self) -> str:
        """Something, or nothing where it is refused now."""
        verb = self.chance.choice(self.verbs)
        with suppress(DomainError):
            verb()
        return verb.__name__

    def person(self) -> User:
        return self.chance.choice(self.people)

    def value(self) -> RatingInput:
        return RatingInput(value=float(self.chance.randint(1, 5)))

    def held(self) -> Assignment:
        if (found := next_assignment(self.queue, self.person())) is None:
            raise DomainError("nothing")
        return found

    def one(self, *states: str) -> Assignment:
        rows = list(Assignment.objects.filter(state__in=states).select_related("item__queue", "reviewer"))
        if not rows:
            raise DomainError("nothing")
        return self.chance.choice(rows)

    def rate(self) -> None:
        mine = self.held()
        given = {metric.name: self.value() for metric in self.metrics}
        if self.chance.random() < 0.2:
            given[self.metrics[0].name] = RatingInput(cannot_judge=True)
        submit(mine, given, idempotency_key=unique("key"), by=mine.reviewer)

    def finish(self) -> None:
        mine = self.one("submitted")
        reveal(mine)
        changes = {self.metrics[0].name: RatingUpdate(value=3.0, reason_code="judge_too_lenient")}
        finalise(mine, changes if self.chance.random() < 0.5 else {}, by=mine.reviewer)

    def again(self) -> None:
        mine = self.one("finished")
        change = RatingUpdate(value=float(self.chance.randint(1, 5)), reason_code="judge_too_lenient")
        rate_again(mine, {self.metrics[0].name: change}, by=mine.reviewer, idempotency_key=unique("again"))

    def take_back(self) -> None:
        mine = self.one("submitted", "finished", "skipped")
        undo(mine, by=mine.reviewer)

    def pass_on(self) -> None:
        skip(self.held(), "not mine")

    def put_down(self) -> None:
        release(self.held())

    def say_wrong(self) -> None:
        if self.chance.random() < 0.5:
            flag(self.held(), "bad_question", "twice")
        else:
            escalate(self.held(), "hard")

    def rule(self) -> None:
        events = ItemEvent.objects.filter(verb__in=["flag", "escalate"], rulings=None)
        for event in events[:1]:
            rule_on(event, upheld=self.chance.random() < 0.7, reason="seen", by=self.lead)

    def decide(self) -> None:
        answer = self.chance.choice(list(self.run.answer_set.answers.all()))
        override(answer, self.metrics[0], value=float(self.chance.randint(1, 5)), reason="known", by=self.lead)

    def decide_many(self) -> None:
        ids = self.chance.sample(list(self.run.answer_set.answers.values_list("pk", flat=True)), 3)
        override_many(self.run, self.metrics[1], ids, value=2.0, reason="known", by=self.lead)

    def revert(self) -> None:
        answer = self.chance.choice(list(self.run.answer_set.answers.all()))
        revert(answer, self.metrics[0], reason="not so", by=self.lead)

    def settle(self) -> None:
        answer = self.chance.choice(list(self.run.answer_set.answers.all()))
        adjudicate(answer, self.metrics[0], value=4.0, reason="decided", seen=None, by=self.lead)

    def bring(self) -> None:
        question = self.chance.choice(list(self.run.answer_set.question_set.questions.all()))
        author = self.chance.choice(("human", "judge"))
        row = {"question_id": question.external_id, "metric": self.metrics[0].name, "value": self.chance.randint(1, 5)}
        told = row | {"rater": author, "author": f"{author}@1", "reason": unique("why")}
        import_ratings(self.run, json.dumps(told).encode(), "elsewhere.jsonl")

    def accept(self) -> None:
        set_acceptance(self.run, accepted=current_acceptance(self.run) is None, by=self.lead)

    def draw(self) -> None:
        if ReviewQueue.objects.count() < 3:
            make_queue(self.run, self.people, strategy="uniform", size=4)

    def freeze(self) -> None:
        freeze(self.run, "gold", by=self.lead)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_kept_and_holds_is_what_is_made_from_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "cached_agreement", partial(builders.cached_agreement, resamples=10))
    history = History(seed)
    done = []
    for _ in range(STEPS):
        for run in (history.run, history.other):
            run_figures(run)
            agreement_figures(run)
        done.append(history.step())
        assert differing_kinds(history.run) == [], done
        assert differing_kinds(history.other) == [], done
    assert len(set(done)) > 8
    assert headlines_of([history.run])[history.run.pk].answers > 0


def test_a_change_behind_its_back_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A decision that nobody said to be one: what stands is taken for true, and the command finds it."""
    history = History(0)
    run_figures(history.run)
    call_command("verify_report", history.run.pk)
    decide(history.run.answer_set.answers.first(), history.metrics[0], 1.0)
    PendingInvalidation.objects.all().delete()
    with pytest.raises(SystemExit):
        call_command("verify_report", history.run.pk, "--format", "json")
    told = capsys.readouterr().out
    assert '"figures"' in told[told.index("{") :]
