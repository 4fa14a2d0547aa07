"""Write and read files with other tools' packages, in their environment: ``write FOLDER`` has each package write files,
``read FOLDER`` has each read the files of ``export_records`` and prints the rows. Imports nothing of the product.

Every writer gets two questions; the second has no answer yet, if the tool can express that."""

from __future__ import annotations

import datetime
import json
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NOW = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
ROWS: list[dict[str, Any]] = [
    {
        "id": "q1",
        "question": "Who wrote it, and when?",
        "expected": "Kim, in 1999.",
        "answer": "It's by Kim.",
        "passages": ['It\'s "his" book,\nof 1999', "둘째 구절"],
        "ids": ["d1", "d2"],
        "wanted": ["d1"],
        "category": "authors",
    },
    {
        "id": "q2",
        "question": "환불은 며칠 안에?",
        "expected": "14일",
        "answer": "14일 안에",
        "passages": [],
        "ids": [],
        "wanted": ["d9"],
        "category": "policy",
    },
]
Writer = Callable[[Path], None]
WRITERS: list[Writer] = []
READERS: dict[str, Callable[[Path], Any]] = {}


def writes(function: Writer) -> Writer:
    WRITERS.append(function)
    return function


def reads(form: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    def keep(function: Callable[[Path], Any]) -> Callable[[Path], Any]:
        READERS[form] = function
        return function

    return keep


def _lines(path: Path, rows: Iterator[str]) -> None:
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


@writes
def ragas(folder: Path) -> None:
    from ragas import EvaluationDataset

    names = {
        "user_input": "question",
        "response": "answer",
        "reference": "expected",
        "retrieved_contexts": "passages",
        "retrieved_context_ids": "ids",
        "reference_context_ids": "wanted",
    }
    dataset = EvaluationDataset.from_list(
        [{field_name: row[row_key] for field_name, row_key in names.items()} for row in ROWS]
    )
    dataset.to_jsonl(folder / "ragas.to_jsonl.jsonl")
    dataset.to_csv(folder / "ragas.to_csv.csv")
    frame = dataset.to_pandas()
    frame.to_csv(folder / "pandas.to_csv.csv")
    frame.to_json(folder / "pandas.to_json.json")
    frame.to_parquet(folder / "pandas.to_parquet.parquet")
    frame.to_feather(folder / "pandas.to_feather.feather")
    frame.to_csv(folder / "pandas.utf16.csv", index=False, encoding="utf-16")
    hub = dataset.to_hf_dataset()
    hub.to_csv(folder / "datasets.to_csv.csv")
    hub.to_json(folder / "datasets.to_json.jsonl")
    hub.to_parquet(folder / "datasets.to_parquet.parquet")
    hub.save_to_disk(folder / "hub")
    (folder / "hub" / "data-00000-of-00001.arrow").rename(folder / "datasets.save_to_disk.arrow")

    import polars

    table = polars.DataFrame(hub.to_list())
    table.write_ndjson(folder / "polars.write_ndjson.jsonl")
    table.write_parquet(folder / "polars.write_parquet.parquet")
    table.write_ipc(folder / "polars.write_ipc.arrow")


@writes
def deepeval(folder: Path) -> None:
    from deepeval.dataset import EvaluationDataset, Golden

    goldens = [
        Golden(
            input=row["question"],
            expected_output=row["expected"],
            actual_output=row["answer"] if row["passages"] else None,
            retrieval_context=row["passages"] or None,
            additional_metadata={"category": row["category"]},
        )
        for row in ROWS
    ]
    for ending in ("json", "csv", "jsonl"):
        dataset = EvaluationDataset(goldens=goldens)
        dataset.save_as(file_type=ending, directory=str(folder), file_name="deepeval.save_as")


@writes
def langfuse(folder: Path) -> None:
    from langfuse.api import DatasetItem

    items = [
        DatasetItem(
            id=row["id"],
            status="ACTIVE",
            input={"question": row["question"]},
            expected_output={"answer": row["expected"]},
            metadata={"category": row["category"], "ground_truth_chunk_ids": row["wanted"]},
            source_trace_id=None,
            source_observation_id=None,
            dataset_id="d",
            dataset_name="n",
            created_at=NOW,
            updated_at=NOW,
            media_references=[],
        )
        for row in ROWS
    ]
    _lines(folder / "langfuse.DatasetItem.jsonl", (item.json() for item in items))


@writes
def langsmith(folder: Path) -> None:
    from langsmith.schemas import Example, Run

    examples = [
        Example(
            id=uuid.uuid5(uuid.NAMESPACE_URL, row["id"]),
            dataset_id=uuid.uuid4(),
            inputs={"question": row["question"]},
            outputs={"answer": row["expected"]},
            metadata={"category": row["category"]},
            created_at=NOW,
        )
        for row in ROWS
    ]
    _lines(folder / "langsmith.Example.jsonl", (example_row.model_dump_json() for example_row in examples))
    runs = [
        Run(
            id=uuid.uuid4(),
            name="chain",
            start_time=NOW,
            run_type="chain",
            trace_id=uuid.uuid4(),
            reference_example_id=example.id,
            inputs=example.inputs,
            outputs={"answer": row["answer"], "contexts": row["passages"]},
        )
        for example, row in zip(examples, ROWS, strict=True)
    ]
    _lines(folder / "langsmith.Run.jsonl", (example_row.model_dump_json() for example_row in runs))


@writes
def phoenix(folder: Path) -> None:
    from phoenix.client.resources.datasets import Dataset

    examples = [
        {
            "id": row["id"],
            "input": {"question": row["question"]},
            "output": {"answer": row["expected"]},
            "metadata": {"category": row["category"]},
            "updated_at": NOW.isoformat(),
        }
        for row in ROWS
    ]
    about = {"id": "1", "name": "n", "description": None, "metadata": {}}
    moments = {"created_at": NOW.isoformat(), "updated_at": NOW.isoformat()}
    dataset = Dataset({**about, **moments}, {"dataset_id": "1", "version_id": "v", "examples": examples})
    (folder / "phoenix.to_dict.json").write_text(json.dumps(dataset.to_dict()), encoding="utf-8")
    dataset.to_dataframe().to_csv(folder / "phoenix.to_dataframe.csv")


@writes
def mlflow(folder: Path) -> None:
    from mlflow.entities.dataset_record import DatasetRecord

    records = [
        DatasetRecord(
            dataset_record_id=row["id"],
            dataset_id="d",
            inputs={"question": row["question"]},
            outputs={"response": row["answer"]},
            expectations={
                "expected_response": row["expected"],
                "expected_retrieved_context": [{"doc_uri": chunk_id} for chunk_id in row["wanted"]],
            },
            tags={"category": row["category"]},
            created_time=1,
            last_update_time=2,
        )
        for row in ROWS
    ]
    _lines(folder / "mlflow.DatasetRecord.jsonl", (json.dumps(chunk_id.to_dict(), default=str) for chunk_id in records))


@writes
def opik(folder: Path) -> None:
    from opik.api_objects.dataset import converters, dataset_item

    items = [
        dataset_item.DatasetItem(
            id=row["id"], input=row["question"], expected_output=row["expected"], category=row["category"]
        )
        for row in ROWS
    ]
    (folder / "opik.to_json.json").write_text(converters.to_json(items, keys_mapping={}), encoding="utf-8")
    converters.to_pandas(items, keys_mapping={}).to_csv(folder / "opik.to_pandas.csv")


@writes
def inspect(folder: Path) -> None:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelOutput

    samples = [
        Sample(id=row["id"], input=row["question"], target=row["expected"], metadata={"category": row["category"]})
        for row in ROWS
    ]
    _lines(folder / "inspect.Sample.jsonl", (sample_row.model_dump_json() for sample_row in samples))
    logged = [
        EvalSample(
            id=row["id"],
            epoch=1,
            input=row["question"],
            target=row["expected"],
            metadata={"category": row["category"]},
            output=ModelOutput.from_content("model", row["answer"]),
        ).model_dump(mode="json")
        for row in ROWS
    ]
    (folder / "inspect.EvalSample.json").write_text(json.dumps({"status": "success", "samples": logged}), "utf-8")


@writes
def llamaindex(folder: Path) -> None:
    from llama_index.core.llama_dataset import CreatedBy, CreatedByType, LabelledRagDataExample, LabelledRagDataset

    created_by = CreatedBy(type=CreatedByType.HUMAN)
    examples = [
        LabelledRagDataExample(
            query=row["question"],
            query_by=created_by,
            reference_contexts=row["passages"],
            reference_answer=row["expected"],
            reference_answer_by=created_by,
        )
        for row in ROWS
    ]
    LabelledRagDataset(examples=examples).save_json(str(folder / "llamaindex.save_json.json"))


@writes
def trec(folder: Path) -> None:
    _lines(folder / "trec.topics.txt", (f"{row['id']}\t{row['question']}" for row in ROWS))
    run = [(row["id"], chunk_id, rank) for row in ROWS for rank, chunk_id in enumerate(row["ids"], start=1)]
    _lines(folder / "trec.run.txt", (f"{topic} Q0 {chunk_id} {rank} {9 - rank} rag" for topic, chunk_id, rank in run))


@reads("ragas")
def _(path: Path) -> Any:
    from ragas import EvaluationDataset

    return [sample.model_dump() for sample in EvaluationDataset.from_jsonl(path).samples]


@reads("deepeval")
def _(path: Path) -> Any:
    from deepeval.dataset import EvaluationDataset

    dataset = EvaluationDataset()
    dataset.add_goldens_from_jsonl_file(str(path))
    return [golden.model_dump() for golden in dataset.goldens]


@reads("langfuse")
def _(path: Path) -> Any:
    return _rows(path)  # its client takes input, expectedOutput and metadata one by one


@reads("mlflow")
def _(path: Path) -> Any:
    from mlflow.entities.dataset_record import DatasetRecord

    dataset_fields = {"dataset_id": "d", "created_time": 1, "last_update_time": 2}
    return [DatasetRecord.from_dict({**row, **dataset_fields}).to_dict() for row in _rows(path)]


@reads("inspect_samples")
def _(path: Path) -> Any:
    from inspect_ai.dataset import json_dataset

    return [sample.model_dump() for sample in json_dataset(str(path.rename(path.with_suffix(".jsonl"))))]


@reads("llamaindex")
def _(path: Path) -> Any:
    from llama_index.core.llama_dataset import LabelledRagDataset

    return [example.model_dump() for example in LabelledRagDataset.from_json(str(path)).examples]


@reads("concord")
def _(path: Path) -> Any:
    from datasets import load_dataset

    return list(load_dataset("json", data_files=str(path), split="train", cache_dir=str(path.parent / "cache")))


@reads("trec_run")
def _(path: Path) -> Any:
    import ir_measures

    return [qrel._asdict() for qrel in ir_measures.read_trec_run(str(path))]


@reads("trec_qrels")
def _(path: Path) -> Any:
    import ir_measures

    return [qrel._asdict() for qrel in ir_measures.read_trec_qrels(str(path))]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(verb: str, folder: Path) -> int:
    """Write or read with every package; report those that fail, and return their number."""
    failures = []
    if verb == "write":
        for writer in WRITERS:
            try:
                writer(folder)
            except Exception:  # noqa: BLE001 - whatever a package of others raises, the others go on
                failures.append(writer.__name__)
                traceback.print_exc(limit=3)
    else:
        returned_rows = {}
        for form, reader in READERS.items():
            try:
                returned_rows[form] = reader(folder / f"{form}.jsonl")
            except Exception:  # noqa: BLE001
                failures.append(form)
                traceback.print_exc(limit=3)
        (folder / "read.json").write_text(json.dumps(returned_rows, default=str), encoding="utf-8")
    print(f"failed: {', '.join(failures)}" if failures else "all of them did", file=sys.stderr)
    return len(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
