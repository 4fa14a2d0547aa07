"""Whoever asks for whatever: of what a candidate said of the hold-out nothing gets out, and no figure is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evaluation.core.roles import Role
from evaluation.judges.shipping import profile_row
from evaluation.judging.calls import JudgeReply
from evaluation.models import RubricVersion, Run, Score, User
from evaluation.network.outcomes import Outcome
from evaluation.runs.making import prepare_run
from evaluation.work.lifecycle import planned_units
from review.calibration import accepting
from review.models import GoldItem, Look
from tests.evaluation.api.clients import Caller
from tests.factories import make_user
from tests.review.builders import metric, score
from tests.review.calibration.place import Place
from tests.review.gold.labelled import Scripted

pytestmark = pytest.mark.django_db
SECRET = "Only the hold-out was told this"
NO_GET = {405, 404, 403, 302, 400}


class Whispering(Scripted):
    """Says a sentence of its own of every answer that it judges by the candidate."""

    async def call(self, request: Any) -> JudgeReply:
        reply = await super().call(request)
        said = json.loads(reply.raw)
        if "LIKE IT" in request.rubric.instruction:
            for one in said.values():
                one["reason"] = SECRET
        return JudgeReply(Outcome.OK, raw=json.dumps(said))


@pytest.fixture
def version(place: Place) -> RubricVersion:
    """A candidate that was looked at and not accepted, and judged open answers in a run."""
    place.script = Whispering()
    made = place.drafted("LIKE IT")
    place.accept(made)
    return made


@pytest.fixture
def run(place: Place, version: RubricVersion) -> Run:
    """A run by the candidate: its units leave the hold-out alone."""
    about = profile_row(place.run.project, "graphrag")
    made = prepare_run(place.run.answer_set, about, judge=place.judge, rubrics=[f"answer_quality@{version.version}"])
    judged = [
        unit.answer for unit in planned_units(made) if unit.run_judge and unit.run_judge.rubric_version == version
    ]
    held = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    assert judged
    for answer in judged:
        assert answer is not None
        assert answer.pk not in held
        score(made, answer, metric("correctness"), 3, judge_version=place.judge, rubric_version=version)
    Run.objects.filter(pk=made.pk).update(state=Run.State.COMPLETED)
    return Run.objects.get(pk=made.pk)


def addresses(resolver: URLResolver | None = None, before: str = "/") -> Iterator[str]:
    """Every address that takes nothing or one number, which stands as ``%d``."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern).lstrip("^").rstrip("$").replace("\\Z", "")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            plain = (
                route.replace("<int:pk>", "%d").replace("(?P<pk>[0-9]{1,18})", "%d").replace("<path:object_id>", "%d")
            )
            if not set(plain) & set("<(?"):
                yield plain


def unpacked(body: bytes) -> bytes:
    """What a workbook's parts hold; anything else as it is."""
    if not body.startswith(b"PK"):
        return body
    with ZipFile(BytesIO(body)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_no_table_holds_it(place: Place, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    call_command("dumpdata", output=str(out))
    assert SECRET not in out.read_text(encoding="utf-8")
    assert place.script.calls  # the judge has said it


# A walk over all addresses takes seconds; those who may draft and those who lead are walked in the fast tests.
@pytest.mark.parametrize(
    "role",
    [
        Role.EVALUATOR,
        Role.LEAD,
        *(pytest.param(role, marks=pytest.mark.slow) for role in (Role.VIEWER, Role.REVIEWER, Role.ADMIN, "superuser")),
    ],
)
def test_no_address_tells_it_or_reads_it(
    place: Place, run: Run, version: RubricVersion, role: Role | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> str:
        raise AssertionError("a sealed verdict was read")

    monkeypatch.setattr(accepting, "unseal", never)
    person = make_user(Role(role), place.run.project) if role != "superuser" else make_user()
    if role == "superuser":
        User.objects.filter(pk=person.pk).update(is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(person)
    held = GoldItem.objects.filter(split="hold_out").order_by("pk")[0]
    subjects = {run.pk, held.answer_id, place.gold.pk, Look.objects.get().pk, place.judge.pk, version.pk}
    seen = 0
    for address in sorted(set(addresses())):
        for pk in sorted(subjects) if "%d" in address else [0]:
            reply = client.get(address % pk if "%d" in address else address)
            assert reply.status_code < 500, address
            body = b"".join(reply.streaming_content) if reply.streaming else reply.content
            assert SECRET.encode() not in body, (address, pk)
            seen += reply.status_code == 200
    assert seen > 20
    for form in ("json", "jsonl", "csv", "xlsx", "md", "html", "junit"):
        reply = client.get(reverse("run-report", args=[run.pk]), {"format": form})
        assert reply.status_code in {200, *NO_GET}
        body = b"".join(reply.streaming_content) if reply.streaming else reply.content
        assert SECRET.encode() not in unpacked(body), form
    assert client.get(reverse("search"), {"q": SECRET}).status_code == 200


def test_no_command_tells_it(place: Place, run: Run, version: RubricVersion, tmp_path: Path) -> None:
    number = str(run.pk)
    commands: list[list[str]] = [
        ["results", number],
        ["agreement", number, "--format", "json"],
        ["correct", number],
        ["export_report", number, "--output", str(tmp_path / "r.json")],
        ["export_records", number, "--output", str(tmp_path / "r.jsonl")],
        ["gold_set", "show", "gold", "--format", "json"],
        ["gold_set", "export", "gold", "--output", str(tmp_path / "g.jsonl")],
        ["judge_card", "judge", "--format", "json"],
        ["rubric", "list", "answer_quality", "--judge", "judge"],
        ["accept", f"answer_quality@{version.version}", "--judge", "judge", "--gold", "gold", "--dry-run"],
    ]
    out = StringIO()
    for words in commands:
        call_command(*words, stdout=out)
    written = out.getvalue() + "".join(file.read_text(encoding="utf-8") for file in tmp_path.iterdir())
    assert SECRET not in written
    held = set(GoldItem.objects.filter(split="hold_out").values_list("answer__text", flat=True))
    exported = (tmp_path / "g.jsonl").read_text(encoding="utf-8")
    assert not [text for text in held if f'"{text}"' in exported]


def test_no_figure_of_the_candidate_counts_a_held_answer(place: Place, run: Run, version: RubricVersion) -> None:
    """Nothing is there to subtract: figures of the candidate's run are of open answers, before and after a look."""
    caller = Caller(Role.LEAD, place.run.project)
    told = caller.get(f"runs/{run.pk}/agreement/", resamples=0).json()["judges"].get(str(place.judge), {})
    held = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    assert not Score.objects.filter(rubric_version=version, answer__in=held).exists()
    judged = Score.objects.filter(rubric_version=version).values("answer").distinct().count()
    assert all(of["n"] + of.get("built_on", 0) <= judged for of in told.values())
