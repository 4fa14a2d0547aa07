"""Sample files of every known shape, as other products write them, with their expected contents."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """``question``: (id or empty, text, references, ids of passages). ``answer``: (question id, text, passages)."""

    name: str
    data: str
    shape: str
    question: tuple[str, str, tuple[str, ...], tuple[str, ...]] | None = None
    answer: tuple[str, str, tuple[str, ...] | None] | None = None


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


QUESTION_TEXT = "Who wrote it?"
SAMPLES = [
    Sample(
        "ragas.jsonl",
        _lines(
            {
                "user_input": QUESTION_TEXT,
                "response": "He",
                "reference": "Kim",
                "retrieved_contexts": ["p"],
                "reference_context_ids": ["d"],
            }
        ),
        "Ragas",
        ("", QUESTION_TEXT, ("Kim",), ("d",)),
        ("", "He", ("p",)),
    ),
    Sample(
        "deepeval.jsonl",
        _lines({"input": QUESTION_TEXT, "actual_output": "He", "expected_output": "Kim", "retrieval_context": "p|r"}),
        "DeepEval",
        ("", QUESTION_TEXT, ("Kim",), ()),
        ("", "He", ("p", "r")),
    ),
    Sample(
        "deepeval.json",
        json.dumps(
            [{"input": QUESTION_TEXT, "actual_output": "He", "expected_output": "Kim", "retrieval_context": ["p|r"]}]
        ),
        "DeepEval",
        ("", QUESTION_TEXT, ("Kim",), ()),
        ("", "He", ("p|r",)),
    ),
    Sample(
        "langfuse.json",
        json.dumps(
            {
                "data": [
                    {
                        "id": "1",
                        "input": {"question": QUESTION_TEXT},
                        "expectedOutput": {"answer": "Kim"},
                        "datasetId": "d",
                    }
                ]
            }
        ),
        "Langfuse",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "langsmith.jsonl",
        _lines({"id": "1", "dataset_id": "d", "inputs": {"question": QUESTION_TEXT}, "outputs": {"answer": "Kim"}}),
        "LangSmith examples",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "runs.jsonl",
        _lines(
            {
                "id": "r",
                "run_type": "chain",
                "reference_example_id": "1",
                "inputs": {"question": QUESTION_TEXT},
                "outputs": {"answer": "He", "contexts": ["p"]},
            }
        ),
        "LangSmith runs",
        None,
        ("1", "He", ("p",)),
    ),
    Sample(
        "phoenix.csv",
        f"example_id,input,output,metadata\n1,{{'question': '{QUESTION_TEXT}'}},{{'answer': 'Kim'}},{{'k': 'v'}}\n",
        "Phoenix",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "mlflow.json",
        json.dumps(
            [
                {
                    "dataset_record_id": "1",
                    "inputs": {"question": QUESTION_TEXT},
                    "outputs": {"response": "He"},
                    "expectations": {
                        "expected_response": "Kim",
                        "expected_retrieved_context": [{"doc_uri": "d"}],
                    },
                }
            ]
        ),
        "MLflow",
        ("1", QUESTION_TEXT, ("Kim",), ("d",)),
        ("1", "He", None),
    ),
    Sample(
        "opik.json",
        json.dumps([{"id": "1", "input": {"question": QUESTION_TEXT}, "expected_output": {"answer": "Kim"}}]),
        "Opik",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "inspect.jsonl",
        _lines({"id": 1, "input": [{"role": "user", "content": QUESTION_TEXT}], "target": ["Kim", "Lee"]}),
        "Inspect samples",
        ("1", QUESTION_TEXT, ("Kim", "Lee"), ()),
    ),
    Sample(
        "log.json",
        json.dumps(
            {
                "status": "success",
                "samples": [
                    {
                        "id": 1,
                        "epoch": 1,
                        "input": QUESTION_TEXT,
                        "target": "Kim",
                        "output": {"completion": "He"},
                        "error": None,
                    }
                ],
            }
        ),
        "Inspect log",
        ("1", QUESTION_TEXT, ("Kim",), ()),
        ("1", "He", None),
    ),
    Sample(
        "promptfooconfig.yaml",
        f"prompts: ['{{{{question}}}}']\ntests:\n- vars:\n    question: {QUESTION_TEXT}\n"
        "  assert:\n  - type: equals\n    value: Kim\n  - type: latency\n    threshold: 5\n",
        "promptfoo tests",
        ("", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "promptfoo.csv",
        f"question,__expected\n{QUESTION_TEXT},similar(0.8):Kim\n",
        "promptfoo table",
        ("", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "results.json",
        json.dumps(
            {
                "results": {
                    "results": [{"vars": {"question": QUESTION_TEXT}, "response": {"output": "He"}, "success": True}]
                }
            }
        ),
        "promptfoo results",
        None,
        ("", "He", None),
    ),
    Sample(
        "qa.jsonl",
        _lines({"qid": "1", "query": QUESTION_TEXT, "retrieval_gt": [["d"]], "generation_gt": ["Kim"]}),
        "AutoRAG",
        ("1", QUESTION_TEXT, ("Kim",), ("d",)),
    ),
    Sample(
        "checking.json",
        json.dumps(
            {
                "results": [
                    {
                        "query_id": "1",
                        "query": QUESTION_TEXT,
                        "gt_answer": "Kim",
                        "response": "He",
                        "retrieved_context": [{"doc_id": "d", "text": "p"}],
                    }
                ]
            }
        ),
        "RAGChecker",
        ("1", QUESTION_TEXT, ("Kim",), ()),
        ("1", "He", ("p",)),
    ),
    Sample(
        "rag_dataset.json",
        json.dumps({"examples": [{"query": QUESTION_TEXT, "reference_contexts": ["p"], "reference_answer": "Kim"}]}),
        "LlamaIndex",
        ("", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "evals.jsonl",
        _lines(
            {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": QUESTION_TEXT}], "ideal": "Kim"}
        ),
        "OpenAI evals",
        ("", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "KorQuAD.json",
        json.dumps(
            {
                "data": [
                    {
                        "paragraphs": [
                            {
                                "context": "p",
                                "qas": [{"id": "1", "question": QUESTION_TEXT, "answers": [{"text": "Kim"}]}],
                            }
                        ]
                    }
                ]
            }
        ),
        "SQuAD and KorQuAD",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "squad.csv",
        "id,title,context,question,answers\n"
        f"1,t,p,{QUESTION_TEXT},\"{{'text': array(['Kim'], dtype=object), 'answer_start': array([5])}}\"\n",
        "SQuAD and KorQuAD",
        ("1", QUESTION_TEXT, ("Kim",), ()),
    ),
    Sample(
        "queries.jsonl",
        _lines({"_id": "1", "text": QUESTION_TEXT, "metadata": {}}),
        "BEIR queries",
        ("1", QUESTION_TEXT, (), ()),
    ),
    Sample("corpus.jsonl", _lines({"_id": "d", "title": "t", "text": "p"}), "BEIR corpus"),
    Sample("test.tsv", "query-id\tcorpus-id\tscore\n1\td\t1\n", "relevance judgements (qrels)"),
]
