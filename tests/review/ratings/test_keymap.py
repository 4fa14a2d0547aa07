"""Keys of the review screen: a closed list, one key for each action, stored with the user."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from review.ratings.card import DEFAULT_KEYS, KEY_LABELS, REVEAL_ACTIONS, KeyAction, checked_keys, keys_from
from review.ratings.pages.card import user_keys
from tests.pages.world import make_world

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5)


@given(st.dictionaries(st.sampled_from([str(action) for action in KeyAction]) | st.text(), JSON) | JSON)
def test_only_keys_of_the_list_reach_a_page(stored: object) -> None:
    assert set(keys_from(stored)) == set(DEFAULT_KEYS)
    assert set(keys_from(stored).values()) <= set(KEY_LABELS)


@given(st.dictionaries(st.sampled_from([str(action) for action in KeyAction]), st.sampled_from(sorted(KEY_LABELS))))
def test_key_choice_is_stored_or_refused_for_a_key_used_twice(choices: dict[str, str]) -> None:
    keys = {action: choices.get(action, code) for action, code in DEFAULT_KEYS.items()}
    on_card = [code for action, code in keys.items() if action not in REVEAL_ACTIONS]
    if len(set(on_card)) < len(on_card):
        with pytest.raises(DomainError):
            checked_keys(choices)
    else:
        assert keys_from(checked_keys(choices)) == keys


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"skip": "KeyF"}, "key_used_twice"),
        ({"skip": "<script>"}, "unknown_key"),
        ({"skip": "Enter"}, "unknown_key"),
        ({"publish": "KeyQ"}, "unknown_key_action"),
    ],
)
def test_other_keys_are_refused_with_a_reason(choices: dict[str, str], code: str) -> None:
    with pytest.raises(DomainError) as error:
        checked_keys(choices)
    assert error.value.code == code


@pytest.mark.django_db
def test_key_choice_is_stored_and_shown_on_the_card() -> None:
    world = make_world()
    client: Client = world.client("member")
    default_choices = {f"key:{action}": code for action, code in DEFAULT_KEYS.items()}
    assert client.post(reverse("review-keys"), default_choices | {"key:skip": "KeyQ", "off": "1"}).status_code == 302
    me = world.people["member"]
    me.refresh_from_db()
    assert (me.keymap, me.keys_off) == ({"skip": "KeyQ"}, True)
    assert json.loads(user_keys(me).card)["KeyQ"] == "skip"
    page = client.get(reverse("review-item", args=[world.assignment.pk])).content.decode()
    assert '<kbd class="hide-small">q</kbd>' in page
    assert " data-keys-off" in page
    response = client.post(reverse("review-keys"), default_choices | {"key:skip": "<img src=x onerror=alert(1)>"})
    assert response.status_code == 409
    assert "<img" not in response.content.decode()
    assert client.post(reverse("review-keys"), {"usual": "1"}).status_code == 302
    me.refresh_from_db()
    assert (me.keymap, me.keys_off) == ({}, False)
