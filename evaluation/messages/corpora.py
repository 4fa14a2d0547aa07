"""Refusal messages about corpora and their search."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "corpus_unknown": _("The project has no corpus “%(corpus)s”. Import it, or specify another as NAME@VERSION."),
    "embeddings_unknown": _("No endpoint “%(name)s” provides embeddings. Specify another, or “local”."),
    "vectors_missing": _(
        "%(missing)s chunk(s) of %(corpus)s have no vector for these embeddings. Run index_corpus first."
    ),
    "embedding_failed": _("Some chunks couldn't be embedded (%(reason)s). Finished ones are kept. Try again."),
    "corpus_empty": _("These documents contain no text to search."),
    "corpus_too_large": _("A corpus can have at most %(limit)s chunks. Split the corpus or make chunks longer."),
    "corpora_differ": _("%(old)s and %(new)s aren't versions of the same corpus."),
    "nothing_to_carry": _("No question in %(set)s refers to a chunk of %(corpus)s."),
    "passages_lost": _(
        "The text of %(count)s relevant passage(s) is no longer in %(corpus)s (%(ids)s). Fix the "
        "questions, or drop these passages with --drop-lost."
    ),
    "document_twice": _("Two documents have the id “%(id)s”. Use a different id for each."),
    "chunk_twice": _("Two chunks have the id “%(id)s”. Use a different id for each."),
}
