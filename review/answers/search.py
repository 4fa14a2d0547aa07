"""Full-text search over questions, answers and objects of installed features."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get, signed_in_user
from evaluation.extensions import SearchHit, SearchHits, features
from evaluation.models import Answer, Question, Run, User

# Maximum length of a query.
MAX_QUERY_CHARACTERS = 200
# Newest hits per kind.
MAX_HITS = 30


@signed_in_get
def search(request: HttpRequest) -> HttpResponse:
    """Show the newest matches in the user's projects. The page reveals no judge values."""
    words = " ".join(request.GET.get("q", "").split())[:MAX_QUERY_CHARACTERS]
    searches = (find_questions, find_answers, *(feature.search for feature in features() if feature.search))
    results = [search_rows(signed_in_user(request), words, MAX_HITS) for search_rows in searches] if words else []
    return render(request, "review/answers/search.html", {"words": words, "most": MAX_HITS, "results": results})


def find_questions(user: User, words: str, limit: int) -> SearchHits:
    """Questions whose text contains the words, or whose id equals them."""
    finished = Question.objects.filter(question_set__is_unfinished=False)
    questions = access.visible(finished.select_related("question_set"), user)
    rows = questions.filter(Q(text__icontains=words) | Q(external_id__iexact=words)).order_by("-pk")[:limit]
    hits = [
        SearchHit(
            row.text, f"{row.external_id} · {row.question_set}", reverse("question-set", args=[row.question_set_id])
        )
        for row in rows
    ]
    return SearchHits(gettext("Questions"), hits, gettext("No question contains these words."))


def find_answers(user: User, words: str, limit: int) -> SearchHits:
    """Answers that contain the words. Answers without a run have no page and are omitted."""
    of_run = Exists(Run.objects.filter(answer_set=OuterRef("answer_set")))
    answers = access.visible(Answer.objects.filter(of_run, text__icontains=words), user)
    rows = answers.select_related("question", "answer_set__system_version__system").order_by("-pk")[:limit]
    hits = [
        SearchHit(
            row.text,
            f"{row.question.external_id} · {row.answer_set.system_version}",
            reverse("answer", args=[row.pk]),
        )
        for row in rows
    ]
    return SearchHits(gettext("Answers"), hits, gettext("No answer contains these words."))
