"""The page that finds questions, answers and other rows of installed features by their words."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_get
from evaluation.extensions import Hit, Hits, features
from evaluation.models import Answer, Question, Run, User

LONGEST = 200  # characters of what is looked for
MOST = 30  # of each kind; the newest


@signed_in_get
def search(request: HttpRequest) -> HttpResponse:
    """The newest rows of the person's projects that have the words in their text, as they stand. It tells nothing that
    a judge said."""
    words = " ".join(request.GET.get("q", "").split())[:LONGEST]
    searches = (find_questions, find_answers, *(feature.search for feature in features() if feature.search))
    found = [search_rows(person(request), words, MOST) for search_rows in searches] if words else []
    return render(request, "review/answers/search.html", {"words": words, "most": MOST, "found": found})


def find_questions(user: User, words: str, most: int) -> Hits:
    """Questions that have the words, or have them as their id."""
    questions = access.visible(Question.objects.select_related("question_set"), user)
    rows = questions.filter(Q(text__icontains=words) | Q(external_id__iexact=words)).order_by("-pk")[:most]
    hits = [
        Hit(row.text, f"{row.external_id} · {row.question_set}", reverse("question-set", args=[row.question_set_id]))
        for row in rows
    ]
    return Hits(gettext("Questions"), hits, gettext("No question has these words."))


def find_answers(user: User, words: str, most: int) -> Hits:
    """Answers that have the words; those that no run is over have no page and are not found."""
    of_run = Exists(Run.objects.filter(answer_set=OuterRef("answer_set")))
    answers = access.visible(Answer.objects.filter(of_run, text__icontains=words), user)
    rows = answers.select_related("question", "answer_set__system_version__system").order_by("-pk")[:most]
    hits = [
        Hit(
            row.text,
            f"{row.question.external_id} · {row.answer_set.system_version}",
            reverse("answer", args=[row.pk]),
        )
        for row in rows
    ]
    return Hits(gettext("Answers"), hits, gettext("No answer has these words."))
