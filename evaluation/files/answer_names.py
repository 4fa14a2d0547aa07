"""The names under which answer files, here and elsewhere, hold what a system gave."""

from __future__ import annotations

QUESTION_ID = ("question_id", "query_id", "qid", "input_id", "test_case_id")
ANSWER = ("answer", "response", "output", "actual_output", "generated_answer")
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "sources")
RETRIEVED_IDS = ("retrieved_context_ids", "retrieved_chunk_ids")

# ``answer`` itself is not among them: in a question set it may be the reference.
SYSTEM_FIELDS = (*ANSWER[1:], *CONTEXTS, *RETRIEVED_IDS, "question_id", "latency_seconds", "confidence", "system")
