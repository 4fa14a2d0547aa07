"""Question sets that a model writes over a corpus: passages are drawn, questions written and filtered in a ledger of
calls of their own, and a lead accepts, edits or rejects each before it counts.

Needs ``contrib.corpora``.

Door: ``services.open_generation``, ``decide`` and ``make_set``; ``working.step``; ``selectors.overview``;
``kinds.KINDS``.
"""
