"""The page that finds questions, answers and passages of corpora by their words."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.corpora.coverage import newest_corpora
from evaluation.models import Answer, Chunk, Question, Run

LONGEST = 200  # characters of what is looked for
MOST = 30  # of each kind; the newest


@signed_in_get
def search(request: HttpRequest) -> HttpResponse:
    """The newest questions, answers and passages of the person's projects that have the words in their text, as they
    stand. Answers that no run is over have no page and are not found, nor are passages of earlier versions of a corpus.
    It tells nothing that a judge said."""
    words = " ".join(request.GET.get("q", "").split())[:LONGEST]
    questions = access.visible(Question.objects.select_related("question_set"), request.user)
    of_run = Exists(Run.objects.filter(answer_set=OuterRef("answer_set")))
    answers = access.visible(Answer.objects.filter(of_run), request.user).select_related(
        "question", "answer_set__system_version__system"
    )
    passages = access.visible(Chunk.objects.filter(corpus__in=newest_corpora()), request.user, path="corpus__project")
    asked = Q(text__icontains=words) | Q(external_id__iexact=words)
    shown = {
        "words": words,
        "most": MOST,
        "questions": questions.filter(asked).order_by("-pk")[:MOST] if words else [],
        "answers": answers.filter(text__icontains=words).order_by("-pk")[:MOST] if words else [],
        "passages": passages.filter(text__icontains=words).select_related("document__corpus").order_by("-pk")[:MOST]
        if words
        else [],
    }
    return render(request, "review/search.html", shown)
