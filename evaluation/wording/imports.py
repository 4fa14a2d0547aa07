"""The sentences about what an import made, found or could not place (codes of ``questions/importing`` and ``runs``)."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

QUESTION_SETS = {
    "set_created": _("Imported as %(set)s with %(questions)s question(s)."),
    "set_next_version": _("Imported as %(set)s with %(questions)s question(s); it follows %(before)s."),
    "set_unchanged": _("Nothing new: %(set)s has exactly this content and is used."),
    "set_selected": _(
        "%(set)s has exactly this content and is used, although it is not the newest version (%(newest)s)."
    ),
    "metadata_not_taken_over": _("Metadata that differs and was not taken over: %(keys)s."),
    "upload_confirmed_before": _("This upload was confirmed before; it became %(set)s."),
}

ANSWERS = {
    "question_unknown": _("The question set has no question with the id “%(id)s”."),
    "question_unknown_near": _("The question set has no question with the id “%(id)s”. Near: %(near)s."),
    "question_text_unknown": _("The question set has no question “%(question)s”. Give its question_id."),
    "question_ambiguous": _("Several questions have this text (%(ids)s). Give the question_id."),
    "answers_missing": _("%(questions)s question(s) have no answer: %(ids)s."),
    "question_text_differs": _(
        "%(rows)s row(s) hold a question text that differs from the one in the question set under their id."
    ),
    "answers_unchanged": _("Nothing new: answer set %(answers)s has exactly these answers; its run is %(run)s."),
    "system_differs": _("The file names the system “%(file_says)s”; the answers were imported for “%(given)s”."),
}

RATINGS = {
    "question_unanswered": _("The run has no answer to a question with the id “%(id)s”."),
    "sample_unknown": _("The run has no such answer to “%(id)s”. Name its “sample”; there are: %(samples)s."),
    "parts_without_value": _("Give a value beside the parts: “%(metric)s” has no formula that would compute it."),
    "pairs_not_here": _("Comparisons of two answers (pair_id) belong to no run. Import them with import_pairs."),
    "pair_id_missing": _("The row names no pair (pair_id). Ratings of single answers belong to import_ratings."),
    "pair_differs": _("The pair %(id)s has other texts or systems in an earlier row or import."),
}

SENTENCES = {**QUESTION_SETS, **ANSWERS, **RATINGS}
