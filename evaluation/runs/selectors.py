"""What was named: the project, a question set, answers that are there, and which questions of a set."""

from __future__ import annotations

from evaluation.core.canonical import composed
from evaluation.core.errors import Refused, UnknownName
from evaluation.models import AnswerSet, Project, QuestionSet, Run, System
from evaluation.models.run_spec import RunSpec


def selected_questions(questions: QuestionSet, spec: RunSpec) -> tuple[str, ...]:
    """External ids of the questions that a run is about, in the order of the set; empty when nothing restricts.

    :raises Refused: ``no_question_selected`` when the options leave none.
    """
    if not (spec.categories or spec.tags or spec.question_ids or spec.limit):
        return ()
    ids, tags = frozenset(map(composed, spec.question_ids)), set(map(composed, spec.tags))
    categories = frozenset(map(composed, spec.categories))
    rows = questions.questions.order_by("position").values_list("external_id", "category", "spec__tags")
    chosen = [
        name
        for name, category, tags_of in rows.iterator()
        if (not ids or name in ids)
        and (not categories or category in categories)
        and (not tags or (isinstance(tags_of, list) and not tags.isdisjoint(map(str, tags_of))))
    ]
    if not chosen:
        raise Refused("no_question_selected")
    return tuple(chosen[: spec.limit])


def project_named(name: str = "") -> Project:
    """The named project, or the only one there is.

    :raises UnknownName: for a name that no project has.
    :raises Refused: ``project_needed`` when several projects exist and none is named, ``no_project`` for none.
    """
    projects = list(Project.objects.order_by("id"))
    if name:
        for project in projects:
            if project.name == name:
                return project
        raise UnknownName("project", name, [p.name for p in projects])
    if not projects:
        raise Refused("no_project")
    if len(projects) > 1:
        raise Refused("project_needed", names=", ".join(p.name for p in projects))
    return projects[0]


def question_set_named(project: Project, name: str) -> QuestionSet:
    """The newest version of a set, or ``NAME@VERSION``.

    :raises UnknownName: when the project has no such set.
    """
    name = composed(name)
    plain, _, version = name.partition("@")
    sets = QuestionSet.objects.filter(project=project)
    wanted = sets.filter(name=plain, version=int(version)) if version.isdigit() else sets.filter(name=name)
    found = wanted.order_by("-version").first()
    if found is None:
        raise UnknownName("question set", name, list(sets.values_list("name", flat=True).distinct()))
    return found


def newest_answers(question_set: QuestionSet, system: str) -> AnswerSet:
    """The newest answers of a system to a question set.

    :raises UnknownName: for a system the project does not have.
    :raises Refused: ``no_answers`` when the system has not answered this version of the set.
    """
    system = composed(system)
    systems = System.objects.filter(project_id=question_set.project_id)
    if not systems.filter(name=system).exists():
        raise UnknownName("system", system, list(systems.values_list("name", flat=True)))
    found = AnswerSet.objects.filter(question_set=question_set, system_version__system__name=system)
    newest = found.exclude(content_hash=None).order_by("-id").first()
    if newest is None:
        raise Refused("no_answers", system=system, questions=str(question_set))
    return newest


def answers_of_run(run_id: int, project: str = "", questions: str = "") -> AnswerSet:
    """The answers of an earlier run, to be judged again. Where project or questions are named, they are the run's.

    :raises UnknownName: for a project or question set that does not exist.
    :raises Refused: ``no_run`` when the run does not exist in the project, ``other_questions`` when it answered another
        question set.
    """
    rows = Run.objects.select_related("answer_set__question_set__project")
    run = rows.filter(pk=run_id, **({"project": project_named(project)} if project else {})).first()
    if run is None:
        raise Refused("no_run", run=run_id)
    if questions:
        question_set = question_set_named(run.project, questions)
        if run.answer_set.question_set_id != question_set.pk:
            raise Refused("other_questions", run=run_id, questions=str(question_set))
    return run.answer_set
