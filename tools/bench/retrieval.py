"""Retrieval alone: 939 questions of GraphRAG-Bench against a synthetic corpus in which the truth is planted.

    python -m tools.bench.retrieval [--chunks 20000]    # needs CONCORD_TEST_DATA

On PostgreSQL too with CONCORD_TEST_POSTGRES. The questions come without a corpus. Each gets one to three chunks that
hold half of the words of question and answer among others; the rest of the corpus are words of all questions in seeded
order. The reference system retrieves ten passages for each, as ``evaluate --type retrieval_only`` does, in a process of
its own: by words, then by vectors. These come from the test server, which embeds a text as the signed sums of its
hashed words: it knows no meaning, but costs the product what an endpoint's vectors of that length cost. The figures of
each run are compared with trec_eval's. Printed are the seconds of each step and the most memory that the process had
until then.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from random import Random

import numpy as np

from tests.faults.site import fresh_database
from tests.judge_server import JudgeServer

CHUNKS, K, LENGTH = 20_000, 10, 100  # words of a chunk
PROMISED = 60  # seconds, on two cores
NUMBERS = 128  # of a vector
TREC = {
    "precision_at_k": f"P_{K}",
    "recall_at_k": f"recall_{K}",
    "hit_at_k": f"success_{K}",
    "reciprocal_rank": "recip_rank",
    "ndcg_at_k": f"ndcg_cut_{K}",
    "average_precision_at_k": f"map_cut_{K}",
}


def plant_chunks(chunks: int) -> tuple[list[dict[str, str]], list[dict[str, object]]]:
    """Records of the corpus and of the questions, with the ids of the planted chunks."""
    file = Path(os.environ["CONCORD_TEST_DATA"]) / "graphrag_bench" / "novel_dev_all.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    random = Random(19)
    vocabulary = [token for row in rows for token in f"{row['question']} {row['answer']}".split()]
    corpus: list[dict[str, str]] = []
    questions: list[dict[str, object]] = []
    for row in rows:
        own = f"{row['question']} {row['answer']}".split()
        ids = []
        for number in range(random.randint(1, 3)):
            answer_words = random.sample(own, max(1, len(own) // 2))
            text = [*answer_words, *random.choices(vocabulary, k=max(0, LENGTH - len(answer_words)))]
            random.shuffle(text)
            ids.append(f"{row['id']}-{number}")
            corpus.append({"chunk_id": ids[-1], "text": f"{' '.join(text)}.", "source": row["source"]})
        about = {"id": row["id"], "question": row["question"], "expected_answer": row["answer"]}
        questions.append({**about, "category": row["question_type"], "ground_truth_chunk_ids": ids})
    for number in range(chunks - len(corpus)):
        text = " ".join(random.choices(vocabulary, k=LENGTH))
        corpus.append({"chunk_id": f"noise-{number}", "text": f"{text}.", "source": f"noise-{number // 100}"})
    random.shuffle(corpus)
    return corpus, questions


def hash_vector(text: str, _model: str) -> list[float]:
    """A text as a unit vector: each word adds or takes one at the place that its hash names."""
    vector = np.zeros(NUMBERS)
    for number in map(zlib.crc32, text.lower().encode().split()):
        vector[number % NUMBERS] += 1.0 if number & 1024 else -1.0
    return [round(float(component), 6) for component in vector / (np.linalg.norm(vector) or 1.0)]


def measure(chunks: int) -> dict[str, object]:
    """Seconds of each step and the figures, on the database that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    from evaluation.models import Endpoint
    from evaluation.runs.selectors import get_project

    call_command("migrate", verbosity=0)
    corpus, questions = plant_chunks(chunks)
    measurements: dict[str, object] = {
        "project": get_project().name,
        "questions": len(questions),
        "chunks": len(corpus),
    }
    quiet = {"stdout": open(os.devnull, "w"), "stderr": sys.stderr}  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("corpus.jsonl", "questions.jsonl", "settings.json")}
        files["corpus.jsonl"].write_text("".join(json.dumps(record) + "\n" for record in corpus))
        files["questions.jsonl"].write_text("".join(json.dumps(record) + "\n" for record in questions))
        start = time.monotonic()
        call_command("import_corpus", str(files["corpus.jsonl"]), "--name", "planted", **quiet)
        measurements["import"] = time.monotonic() - start
        call_command("import_questions", str(files["questions.jsonl"]), "--name", "novels", **quiet)
        measurements["words"] = _evaluate("words", files["settings.json"], questions, quiet)
        Endpoint.objects.create(name="hashed", base_url=os.environ["EMBEDS_AT"], embedding_model="hashed words")
        start, busy = time.monotonic(), time.process_time()
        call_command("index_corpus", "planted", "--embeddings", "hashed", **quiet)
        embedded = {"embedding": time.monotonic() - start, "embedding_busy": time.process_time() - busy}
        measurements["vectors"] = embedded | _evaluate("vectors", files["settings.json"], questions, quiet)
    return measurements


def _evaluate(retriever, settings, questions, quiet):  # type: ignore[no-untyped-def]
    """An evaluation by words or vectors: seconds, memory so far, figures."""
    from django.core.management import call_command

    from evaluation.models import Run, Score

    settings.write_text(json.dumps({"corpus": "planted@1", "retriever": retriever, "embeddings": "hashed"}))
    call_command("add_system", retriever, "--connector", "corpus", "-f", str(settings), **quiet)
    evaluate = ["evaluate", "--questions", "novels", "--system", retriever, "--type", "retrieval_only"]
    start, busy = time.monotonic(), time.process_time()
    call_command(*evaluate, "--k", str(K), "--no-judge", "--profile", "generation", "--format", "json", **quiet)
    seconds = {"retrieval_only": time.monotonic() - start, "busy": time.process_time() - busy}
    run = Run.objects.select_related("answer_set").latest("pk")
    figures, furthest = _compare_with_trec(run, questions, Score)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds | {"state": run.state, "megabytes": megabytes, "figures": figures, "furthest_from_trec": furthest}


def _compare_with_trec(run, questions, scores):  # type: ignore[no-untyped-def]
    """Means of the run, and the largest difference of any question's figure from trec_eval's."""
    import pytrec_eval

    relevant = {str(question["id"]): dict.fromkeys(question["ground_truth_chunk_ids"], 1) for question in questions}
    retrieved = {
        id_: {chunk: float(-rank) for rank, chunk in enumerate(ids)}
        for id_, ids in run.answer_set.answers.values_list("question__external_id", "retrieved_ids")
    }
    measures = {name.rpartition("_")[0] + f".{K}" if name != "recip_rank" else name for name in TREC.values()}
    trec_values = pytrec_eval.RelevanceEvaluator(relevant, measures).evaluate(retrieved)
    mean_values, furthest = {}, 0.0
    for name, key in TREC.items():
        rows = scores.objects.filter(run=run, metric__name=name, status="scored")
        run_values = dict(rows.values_list("answer__question__external_id", "value"))
        furthest = max(
            furthest, *(abs(value - trec_values[id_][key]) for id_, value in run_values.items() if id_ in trec_values)
        )
        mean_values[name] = sum(run_values.values()) / len(run_values)
    return mean_values, furthest


def run_on(kind: str, chunks: int) -> None:
    """Measure on a fresh database of this kind, in a process of its own, and print."""
    temporary_folder = tempfile.TemporaryDirectory()
    with temporary_folder as name, fresh_database(kind, Path(name)) as url, JudgeServer(keep_log=False) as server:
        server.vector_of = hash_vector
        command = [sys.executable, "-m", "tools.bench.retrieval", "--chunks", str(chunks), "--here"]
        environment = {"DATABASE_URL": url, "EMBEDS_AT": server.base_url, "CONCORD_JUDGE_ORIGINS": server.origin}
        completed = subprocess.run(
            command, env={**os.environ, **environment}, check=True, stdout=subprocess.PIPE, text=True
        )
    measurements = json.loads(completed.stdout.splitlines()[-1])
    print(f"{kind}: {measurements['questions']} questions, {measurements['chunks']} chunks")
    print(f"  import of the corpus: {measurements['import']:.1f} s")
    for retriever in ("words", "vectors"):
        step, promised = measurements[retriever], f" of {PROMISED} s promised" if retriever == "words" else ""
        print(f"  by {retriever}: {step['state']}")
        if "embedding" in step:
            print(
                f"    vectors of {NUMBERS} numbers made: {step['embedding']:.1f} s "
                f"({step['embedding_busy']:.1f} s busy)"
            )
        print(f"    retrieval_only: {step['retrieval_only']:.1f} s{promised}")
        print(f"    processor time: {step['busy']:.1f} s")
        print(f"    most memory: {step['megabytes']:.0f} MB")
        print("    " + ", ".join(f"{name} {value:.3f}" for name, value in step["figures"].items()))
        print(f"    furthest from trec_eval: {step['furthest_from_trec']:.1e}")


def main() -> None:
    """Both databases where there is a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.retrieval")
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--here", action="store_true", help="measure on DATABASE_URL and print JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.chunks)))
        return
    if not os.environ.get("CONCORD_TEST_DATA"):
        print("skipped: CONCORD_TEST_DATA is not set")
        return
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        run_on(kind, options.chunks)


if __name__ == "__main__":
    main()
