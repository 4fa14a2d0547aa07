"""Question sets that a model writes over a corpus.

Passages are drawn, and questions are written and filtered in separately recorded calls. A lead accepts, edits or
rejects each question before it counts. Needs ``contrib.corpora``."""
