"""Refusal messages about corpora and their search."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "corpus_unknown": _("The project has no corpus “%(corpus)s”. Import it, or name one as NAME@VERSION."),
    "embeddings_unknown": _("There is no endpoint “%(name)s” that embeds. Name one, or “local”."),
    "vectors_missing": _(
        "%(missing)s chunk(s) of %(corpus)s have no vector for these embeddings yet. Run index_corpus first."
    ),
    "embedding_failed": _("The chunks could not all be embedded (%(reason)s). What is done is kept; try again."),
    "corpus_empty": _("There is no text in these documents, so there is nothing to search."),
    "corpus_too_large": _("A corpus holds at most %(limit)s chunks. Split it into several, or make chunks longer."),
    "corpora_differ": _("%(old)s and %(new)s are no versions of one corpus."),
    "nothing_to_carry": _("No question of %(set)s names a chunk of %(corpus)s."),
    "passages_lost": _(
        "The words of %(count)s relevant passage(s) are not in %(corpus)s any more (%(ids)s). Mend the questions, or "
        "leave these passages out with --drop-lost."
    ),
    "document_twice": _("Two documents have the id “%(id)s”. Give each its own."),
    "chunk_twice": _("Two chunks have the id “%(id)s”. Give each its own."),
}
