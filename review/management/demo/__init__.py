"""The demo's content, written for this project; the university, the funds and every figure are invented.

``corpus.jsonl`` holds the passages, ``questions.yaml`` the questions, ``answers_graph.jsonl`` and
``answers_vector.jsonl`` what two systems answered: ``demo-graph`` is the better and slower one. An answer written
to be wrong names its fault in ``demo_fault``; nothing that a reviewer sees may show it. ``ratings.jsonl`` holds
example ratings by two fictitious reviewers: every answer of ``demo-graph``, so that any draw of it finds its ratings,
and some of ``demo-vector``.
"""
