"""Content of the demo, written for this project; the university, the funds and every figure are invented.

The folders ``en`` and ``ko`` hold the same content in both languages under the same ids. ``corpus.jsonl`` holds the
passages and ``questions.yaml`` the questions. ``answers_graph.jsonl`` and ``answers_vector.jsonl`` hold the answers of
two systems: ``demo-graph`` is better and slower. An answer that is wrong on purpose names its fault in ``demo_fault``,
which reviewers must not see. ``ratings.jsonl`` holds example ratings by two fictitious reviewers: of every answer of
``demo-graph``, so that any draw finds ratings, and of some of ``demo-vector``."""
