"""Compare cached figures with figures built from scratch after random sequences of actions."""

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
    """A run with a queue, three reviewers and a lead, and all actions on it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        questions = make_question_set(specs=9)
        self.run = make_scored_run(make_answer_set(questions))
        self.second_run = make_scored_run(make_answer_set(questions))  # its answers are the same
        project = self.run.project
        self.reviewers = [make_user(Role.REVIEWER, project) for _ in range(3)]
        self.lead = make_user(Role.LEAD, project)
        self.queue = make_queue(self.run, self.reviewers, reviews_needed=2, reveal="always", strategy="uniform", size=7)
        self.metrics = list(MetricDefinition.objects.filter(scores__run=self.run).distinct().order_by("pk"))
        self.verbs: Sequence[Callable[[], object]] = (
            *(
                self.rate,
                self.rate,
                self.rate,
                self.finish,
                self.rerate,
                self.undo_rating,
                self.skip_item,
                self.release_lease,
            ),
            *(
                self.flag_or_escalate,
                self.rule_on_event,
                self.decide,
                self.decide_many,
                self.revert,
                self.adjudicate_answer,
                self.import_rating,
            ),
            *(self.accept, self.make_second_queue, self.freeze),
        )

    def step(self) -> str:
        """Do a random action; ignore a refusal."""
        verb = self.chance.choice(self.verbs)
        with suppress(DomainError):
            verb()
        return verb.__name__

    def random_reviewer(self) -> User:
        return self.chance.choice(self.reviewers)

    def random_rating(self) -> RatingInput:
        return RatingInput(value=float(self.chance.randint(1, 5)))

    def lease_next(self) -> Assignment:
        if (assignment := next_assignment(self.queue, self.random_reviewer())) is None:
            raise DomainError("nothing")
        return assignment

    def random_assignment(self, *states: str) -> Assignment:
        rows = list(Assignment.objects.filter(state__in=states).select_related("item__queue", "reviewer"))
        if not rows:
            raise DomainError("nothing")
        return self.chance.choice(rows)

    def rate(self) -> None:
        assignment = self.lease_next()
        ratings = {metric.name: self.random_rating() for metric in self.metrics}
        if self.chance.random() < 0.2:
            ratings[self.metrics[0].name] = RatingInput(cannot_judge=True)
        submit(assignment, ratings, idempotency_key=unique("key"), by=assignment.reviewer)

    def finish(self) -> None:
        assignment = self.random_assignment("submitted")
        reveal(assignment)
        changes = {self.metrics[0].name: RatingUpdate(value=3.0, reason_code="judge_too_lenient")}
        finalise(assignment, changes if self.chance.random() < 0.5 else {}, by=assignment.reviewer)

    def rerate(self) -> None:
        assignment = self.random_assignment("finished")
        change = RatingUpdate(value=float(self.chance.randint(1, 5)), reason_code="judge_too_lenient")
        rate_again(assignment, {self.metrics[0].name: change}, by=assignment.reviewer, idempotency_key=unique("again"))

    def undo_rating(self) -> None:
        assignment = self.random_assignment("submitted", "finished", "skipped")
        undo(assignment, by=assignment.reviewer)

    def skip_item(self) -> None:
        skip(self.lease_next(), "not mine")

    def release_lease(self) -> None:
        release(self.lease_next())

    def flag_or_escalate(self) -> None:
        if self.chance.random() < 0.5:
            flag(self.lease_next(), "bad_question", "twice")
        else:
            escalate(self.lease_next(), "hard")

    def rule_on_event(self) -> None:
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

    def adjudicate_answer(self) -> None:
        answer = self.chance.choice(list(self.run.answer_set.answers.all()))
        adjudicate(answer, self.metrics[0], value=4.0, reason="decided", seen=None, by=self.lead)

    def import_rating(self) -> None:
        question = self.chance.choice(list(self.run.answer_set.question_set.questions.all()))
        author = self.chance.choice(("human", "judge"))
        row = {"question_id": question.external_id, "metric": self.metrics[0].name, "value": self.chance.randint(1, 5)}
        rating = row | {"rater": author, "author": f"{author}@1", "reason": unique("why")}
        import_ratings(self.run, json.dumps(rating).encode(), "elsewhere.jsonl")

    def accept(self) -> None:
        set_acceptance(self.run, accepted=current_acceptance(self.run) is None, by=self.lead)

    def make_second_queue(self) -> None:
        if ReviewQueue.objects.count() < 3:
            make_queue(self.run, self.reviewers, strategy="uniform", size=4)

    def freeze(self) -> None:
        freeze(self.run, "gold", by=self.lead)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_cached_figures_equal_rebuilt_figures_after_any_history(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "cached_agreement", partial(builders.cached_agreement, resamples=10))
    history = History(seed)
    actions = []
    for _ in range(STEPS):
        for run in (history.run, history.second_run):
            run_figures(run)
            agreement_figures(run)
        actions.append(history.step())
        assert differing_kinds(history.run) == [], actions
        assert differing_kinds(history.second_run) == [], actions
    assert len(set(actions)) > 8
    assert headlines_of([history.run])[history.run.pk].answers > 0


def test_verify_report_finds_an_unrecorded_change(capsys: pytest.CaptureFixture[str]) -> None:
    """A decision stored without invalidation leaves stale figures, and the command finds them."""
    history = History(0)
    run_figures(history.run)
    call_command("verify_report", history.run.pk)
    decide(history.run.answer_set.answers.first(), history.metrics[0], 1.0)
    PendingInvalidation.objects.all().delete()
    with pytest.raises(SystemExit):
        call_command("verify_report", history.run.pk, "--format", "json")
    output = capsys.readouterr().out
    assert '"figures"' in output[output.index("{") :]
