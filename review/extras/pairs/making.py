"""Sets of pairs from two runs over the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from django.db import transaction
from django.utils import timezone

from evaluation.accounts import access, audit
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import Answer, Run, User
from review.evidence.order import new_seed
from review.models import Pair, PairMember, PairSet


@transaction.atomic
def make_pairs(
    run_a: Run,
    run_b: Run,
    *,
    name: str,
    reviewers: Sequence[User],
    size: int = 30,
    guideline: str = "",
    seed: int | None = None,
    by: User | None = None,
) -> PairSet:
    """Draw so many questions at random that both runs answered, and pair their answers. Everybody named rates each
    pair. Of several samples the first is compared.

    :raises Refused: ``pairs_same_answers``, ``several_projects``, ``no_shared_answers``, ``no_reviewers``,
        ``not_in_project``, ``pair_set_exists``.
    """
    people = list(dict.fromkeys(reviewers))
    _check(run_a, run_b, people, name)
    chosen = _draw(run_a, run_b, size, seed := new_seed() if seed is None else seed)
    made = PairSet.objects.create(
        project_id=run_a.project_id, name=name, guideline=guideline, run_a=run_a, run_b=run_b, seed=seed, created_by=by
    )
    PairMember.objects.bulk_create(PairMember(pair_set=made, reviewer=person) for person in people)
    Pair.objects.bulk_create(_pair(made, place, a, b) for place, (a, b) in enumerate(chosen, start=1))
    audit.record(by, "pairs_made", made, runs=[run_a.pk, run_b.pk], pairs=len(chosen))
    return made


def close_pairs(found: PairSet, *, by: User) -> None:
    """Take no further preferences."""
    found.closed_at = timezone.now()
    found.save(update_fields=["closed_at"])
    audit.record(by, "pairs_closed", found)


def reopen_pairs(found: PairSet, *, by: User) -> None:
    """Take preferences again."""
    found.closed_at = None
    found.save(update_fields=["closed_at"])
    audit.record(by, "pairs_reopened", found)


def _check(run_a: Run, run_b: Run, people: Sequence[User], name: str) -> None:
    if run_a.answer_set_id == run_b.answer_set_id:
        raise Refused("pairs_same_answers")
    if run_a.project_id != run_b.project_id:
        raise Refused("several_projects")
    if not people:
        raise Refused("no_reviewers")
    outside = [one.username for one in people if not access.may(one, run_a.project_id, Action.RATE)]
    if outside:
        raise Refused("not_in_project", people=", ".join(outside))
    if PairSet.objects.filter(project=run_a.project_id, name=name).exists():
        raise Refused("pair_set_exists", name=name)


def _draw(run_a: Run, run_b: Run, size: int, seed: int) -> list[tuple[Answer, Answer]]:
    theirs = _answers(run_b)
    shared = [(answer, theirs[key]) for key, answer in sorted(_answers(run_a).items()) if key in theirs]
    if not shared:
        raise Refused("no_shared_answers")
    return Random(f"pairs {seed}").sample(shared, min(size, len(shared)))


def _answers(run: Run) -> dict[str, Answer]:
    """The first answer to each question by the question's id."""
    answers = Answer.objects.filter(answer_set=run.answer_set_id, status="ok").order_by("-sample", "round")
    chosen = answers.select_related("question", "answer_set__system_version__system")
    return {answer.question.external_id: answer for answer in chosen}  # the lowest sample and its last round stay


def _pair(made: PairSet, place: int, a: Answer, b: Answer) -> Pair:
    references = a.question.read().references
    return Pair(
        pair_set=made,
        external_id=a.question.external_id,
        position=place,
        question=a.question,
        answer_a=a,
        answer_b=b,
        question_text=a.question.read().text,
        reference=references[0] if references else "",
        system_a=a.answer_set.system_version.system.name,
        system_b=b.answer_set.system_version.system.name,
        text_a=a.text,
        text_b=b.text,
    )
