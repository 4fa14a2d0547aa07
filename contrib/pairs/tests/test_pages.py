"""Pages of comparisons."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from contrib.pairs.figures import export_pairs
from contrib.pairs.models import Pair, PairMember, PairSet, Preference
from contrib.pairs.services import import_pairs
from contrib.pairs.tests.site import pair_set_of
from evaluation.messages.explanations import explain_reason
from evaluation.models import Context, User
from tests.factories import make_answer_set, make_scored_run
from tests.pages.markup import compact
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
QUERIES = 17  # of the page of a comparison, however many pairs there are


@pytest.fixture
def world() -> World:
    return make_world()


def test_reviewer_rates_a_pair_and_sees_when_all_are_done(world: World) -> None:
    client, pk = world.client("member"), pair_set_of(world).pk
    page = client.get(reverse("pairs-rate", args=[pk])).content.decode()
    assert "Because of A." in page
    assert "Because of B." in page
    assert "alpha" not in page
    assert "beta" not in page
    pair = pair_set_of(world).pairs.get()
    form = {"pair": pair.pk, "value": "-2", "reason": "clearer", "seconds": "4.5"}
    assert client.post(reverse("pairs-prefer", args=[pk]), form).url == reverse("pairs-rate", args=[pk])
    preference = Preference.objects.get()
    assert abs(preference.value or 0) == 2
    assert (preference.reason, preference.seconds, preference.rater) == ("clearer", 4.5, world.people["member"])
    assert "compared all pairs" in client.get(reverse("pairs-rate", args=[pk])).content.decode()
    assert f"?pair={pair.pk}" in client.get(reverse("pairs-rate", args=[pk])).content.decode()


def test_missing_choice_is_reported_and_nothing_is_stored(world: World) -> None:
    pair = pair_set_of(world).pairs.get()
    response = world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk})
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert not Preference.objects.exists()


def test_refused_form_keeps_its_values(world: World) -> None:
    client, pair = world.client("member"), pair_set_of(world).pairs.get()
    address = reverse("pairs-prefer", args=[pair_set_of(world).pk])
    long_reason = "line\r\n" * 1_000  # browsers count a line break as one character and send two
    response = client.post(address, {"pair": pair.pk, "value": "-2", "reason": long_reason + "and more " * 12})
    assert response.status_code == 409
    page = compact(response.content.decode())
    assert "and more" in page
    assert 'value="-2" required checked' in page
    without_choice = client.post(address, {"pair": pair.pk, "reason": "because"})
    assert without_choice.status_code == 400
    assert ">because</textarea>" in without_choice.content.decode()
    assert not Preference.objects.exists()
    assert client.post(address, {"pair": pair.pk, "value": "-2", "reason": long_reason}).status_code == 302
    assert len(Preference.objects.get().reason) == 5_000 - 1  # without the last line break


def test_browser_draft_of_a_pair_is_personal_and_ends_with_the_preference(world: World) -> None:
    client, pair = world.client("member"), pair_set_of(world).pairs.get()
    path, me = reverse("pairs-rate", args=[pair_set_of(world).pk]), world.people["member"].pk
    assert f'data-keep="pair.{pair.pk}.{me}.0"' in client.get(path).content.decode()
    client.post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk, "value": "1"})
    preference_id = Preference.objects.get().pk
    assert f'data-keep="pair.{pair.pk}.{me}.{preference_id}"' in client.get(f"{path}?pair={pair.pk}").content.decode()


def test_lead_creates_and_reads_a_comparison_of_two_systems(world: World) -> None:
    other_run = make_scored_run(make_answer_set(world.question_set))
    User.objects.filter(pk=world.people["member"].pk).update(first_name="Maya Lindqvist")
    client = world.client("lead")
    page = client.get(reverse("pair-new"), {"run": world.run.pk}).content.decode()
    assert str(other_run) in page
    assert "Maya Lindqvist" in page
    form: dict[str, Any] = {
        "run_a": world.run.pk, "run_b": other_run.pk, "name": "Round 1", "size": 3,
        "reviewers": [world.people["member"].pk],
    }  # fmt: skip
    response = client.post(reverse("pair-new"), form)
    pair_set = PairSet.objects.get(name="Round 1")
    assert response.url == reverse("pairs", args=[pair_set.pk])
    assert "Not compared yet" in client.get(response.url).content.decode()
    repeated = client.post(reverse("pair-new"), form)
    assert "Choose another name" in repeated.content.decode()


def test_results_name_the_systems_for_leads_only(world: World) -> None:
    pair = pair_set_of(world).pairs.get()
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk, "value": "1"})
    page = world.client("lead").get(reverse("pairs", args=[pair_set_of(world).pk])).content.decode()
    assert "alpha" in page
    assert "1 person" in page
    reviewer_page = (
        world.client("member").get(reverse("pairs", args=[pair_set_of(world).pk]), follow=True).content.decode()
    )
    assert "alpha" not in reviewer_page


def test_closed_comparison_takes_no_preference_and_reopens(world: World) -> None:
    lead, pk = world.client("lead"), pair_set_of(world).pk
    lead.post(reverse("pairs-close", args=[pk]))
    pair = pair_set_of(world).pairs.get()
    response = world.client("member").post(reverse("pairs-prefer", args=[pk]), {"pair": pair.pk, "value": "1"})
    assert response.status_code == 409
    lead.post(reverse("pairs-close", args=[pk]))
    assert world.client("member").post(reverse("pairs-prefer", args=[pk]), {"pair": pair.pk, "value": "1"}).url


def test_the_number_of_queries_does_not_grow(world: World, django_assert_num_queries: Any) -> None:
    client = world.client("member")
    path = reverse("pairs-rate", args=[pair_set_of(world).pk])
    client.get(reverse("pair-list"))
    with django_assert_num_queries(8):
        client.get(path)


def test_rating_lead_sees_no_systems_or_values_before_the_last_pair(world: World) -> None:
    member, lead, pk = world.client("member"), world.client("lead"), pair_set_of(world).pk
    PairMember.objects.create(pair_set=pair_set_of(world), reviewer=world.people["lead"])
    form = {"pair": pair_set_of(world).pairs.get().pk, "value": "1"}
    member.post(reverse("pairs-prefer", args=[pk]), form)
    page = lead.get(reverse("pairs", args=[pk])).content.decode()
    assert "after you rate all your pairs" in page
    assert "alpha" not in page
    lead.post(reverse("pairs-prefer", args=[pk]), form)
    assert "alpha" in lead.get(reverse("pairs", args=[pk])).content.decode()


def test_lead_reads_every_preference_with_reason_and_progress(world: World, django_assert_num_queries: Any) -> None:
    pair = pair_set_of(world).pairs.get()
    form = {"pair": pair.pk, "value": "2", "reason": "=cmd; the other one invents"}
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), form)
    preference = Preference.objects.get()
    lead = Client(headers={"accept-language": "en"})
    lead.force_login(world.people["lead"])
    path = reverse("pairs", args=[pair_set_of(world).pk])
    page = compact(lead.get(path).content.decode())
    assert ("A much better" if preference.value == -2 else "B much better") in page
    assert "the other one invents</q>" in page
    assert "Because of A." in page
    assert f"{world.people['member'].username} 1 / 1" in page
    with django_assert_num_queries(QUERIES):
        lead.get(path)
    for number in range(30):
        Pair.objects.create(pair_set=pair.pair_set, external_id=f"x{number}", position=number + 2, question_text="Q?")
    with django_assert_num_queries(QUERIES):
        assert 'rel="next"' in lead.get(path).content.decode()
    assert lead.get(path, {"page": "2"}).content.decode().count("Both answers") == 6  # 31 pairs, 25 on a page


@pytest.mark.parametrize(("name", "default"), [("pairs-export", "csv"), ("api-pairs-export", "jsonl")])
def test_exported_preferences_can_be_imported_unchanged(world: World, name: str, default: str) -> None:
    pair, lead, path = pair_set_of(world).pairs.get(), world.client("lead"), reverse(name, args=[pair_set_of(world).pk])
    form = {"pair": pair.pk, "value": "2", "reason": "=cmd; 다른 쪽은 지어냈습니다"}
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), form)
    files = {
        file_format: b"".join(lead.get(path, {"format": file_format}).streaming_content)
        for file_format in ("csv", "xlsx", "jsonl")
    }
    assert f'"pairs-{pair_set_of(world).pk}.{default}"' in lead.get(path).headers["Content-Disposition"]
    assert files["csv"].startswith(b"\xef\xbb\xbf")
    (row,) = csv.DictReader(io.StringIO(files["csv"].decode("utf-8-sig")))
    assert (row["system_a"], row["answer_a"], row["reason"]) == (
        "alpha",
        "Because of A.",
        "'=cmd; 다른 쪽은 지어냈습니다",
    )
    sheet = openpyxl.load_workbook(io.BytesIO(files["xlsx"])).active
    assert sheet is not None
    cells = dict(zip([cell.value for cell in sheet[1]], [cell.value for cell in sheet[2]], strict=True))
    assert cells["reason"] == "'=cmd; 다른 쪽은 지어냈습니다"
    assert not any(row[f"{name}_{side}"] for name in ("contexts", "chunk_ids") for side in "ab")  # of no run
    imported = import_pairs(world.project, files["jsonl"], "pairs.jsonl", "copy")
    assert (imported.pairs, imported.human) == (1, 1)
    copy = Preference.objects.get(pair__pair_set__name="copy")
    original = Preference.objects.get(pair=pair)
    assert (copy.value, copy.reason, copy.author) == (original.value, original.reason, world.people["member"].username)


def test_exported_preferences_have_passages_and_their_ids(world: World) -> None:
    source, other_answers = (make_answer_set(world.question_set, texts=[text]) for text in ("Said.", "=Said too."))
    a, b = (answer_set.answers.order_by("question__position")[0] for answer_set in (source, other_answers))
    Context.objects.create(answer=a, position=1, text="No id.")
    Context.objects.create(answer=a, position=2, chunk_id="c3", text="Third.")
    texts = {"question_text": "Q?", "system_a": "alpha", "system_b": "beta", "text_a": a.text, "text_b": b.text}
    pair = pair_set_of(world).pairs.create(external_id="p2", position=2, answer_a=a, answer_b=b, **texts)
    Preference.objects.create(pair=pair, value=1, origin="x", author="kim")
    files = {name: b"".join(export_pairs(pair_set_of(world), name).chunks) for name in ("csv", "jsonl")}
    (row,) = csv.DictReader(io.StringIO(files["csv"].decode("utf-8-sig"), newline=""))
    assert row["contexts_a"] == "[1] Said.\n\n[2] No id.\n\n[3] Third."
    assert row["chunk_ids_a"] == "[1] c1\n[3] c3"
    assert (row["contexts_b"], row["chunk_ids_b"]) == ("[1] =Said too.", "[1] c1")
    assert [source["chunk_id"] for source in json.loads(files["jsonl"])["answer_a"]["contexts"]] == ["c1", "", "c3"]
    assert import_pairs(world.project, files["jsonl"], "pairs.jsonl", "copy").pairs == 1


def test_rating_lead_exports_nothing_before_the_last_pair(world: World) -> None:
    PairMember.objects.create(pair_set=pair_set_of(world), reviewer=world.people["lead"])
    lead, pk = world.client("lead"), pair_set_of(world).pk
    assert lead.get(reverse("pairs-export", args=[pk])).url == reverse("pairs", args=[pk])
    assert lead.get(reverse("api-pairs-export", args=[pk])).status_code == 409
    assert lead.get(reverse("pairs-export", args=[pk]), {"format": "docx"}).status_code == 404


@pytest.mark.parametrize(("language", "helps"), [("en", "Holds words of the expected answer."), ("ko", "")])
def test_workbook_has_judge_reasons_in_the_readers_language(world: World, language: str, helps: str) -> None:
    pair, reason_text = (
        pair_set_of(world).pairs.get(),
        "기대 답변의 단어가 있습니다.",
    )  # as the offline baseline says it
    judge_fields = {"pair": pair, "by_judge": True}
    Preference.objects.create(**judge_fields, value=1, author="a@1", origin="a", reason=reason_text)
    Preference.objects.create(**judge_fields, value=None, author="b@1", origin="b", failure="timeout")
    Preference.objects.create(pair=pair, value=1, author="kim", origin="c", reason=reason_text)
    with override(language):  # the file is written while it is sent, when the language may be another
        workbook_file, csv_file, failure_code = (
            export_pairs(pair_set_of(world), "xlsx"),
            export_pairs(pair_set_of(world), "csv"),
            "timeout",
        )
        expected_reasons = {"a@1": helps or reason_text, "b@1": explain_reason(failure_code), "kim": reason_text}
    sheet = openpyxl.load_workbook(io.BytesIO(b"".join(workbook_file.chunks))).active
    assert sheet is not None
    header, *rows = (dict(enumerate(cell.value for cell in row)) for row in sheet.iter_rows())
    at = {name: position for position, name in header.items()}
    assert {row[at["author"]]: row[at["reason"]] for row in rows} == expected_reasons
    table = csv.DictReader(io.StringIO(b"".join(csv_file.chunks).decode("utf-8-sig")))
    assert {row["author"]: row["reason"] for row in table} == {
        "a@1": reason_text,
        "b@1": failure_code,
        "kim": reason_text,
    }
