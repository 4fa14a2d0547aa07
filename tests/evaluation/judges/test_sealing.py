"""Stored keys: only the same secret and the same origin open them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.judges.secrets import seal, unseal
from evaluation.network.origins import parse_origin

HERE = parse_origin("https://llm.example:8000/v1")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_a_sealed_key_opens_again_and_does_not_show(key: str) -> None:
    sealed = seal(key, origin=HERE, secret="s" * 50)
    assert unseal(sealed, origin=HERE, secrets=["s" * 50]) == key
    assert len(key) < 8 or key not in sealed


def test_the_same_key_is_sealed_differently_each_time() -> None:
    assert seal("sk-1", origin=HERE, secret="s") != seal("sk-1", origin=HERE, secret="s")


@pytest.mark.parametrize("url", ["http://llm.example:8000", "https://llm.example:8001", "https://other.example:8000"])
def test_another_scheme_host_or_port_does_not_open_it(url: str) -> None:
    sealed = seal("sk-1", origin=HERE, secret="s")
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(sealed, origin=parse_origin(url), secrets=["s"])


def test_a_secret_used_before_still_opens_it_and_a_foreign_one_does_not() -> None:
    sealed = seal("sk-1", origin=HERE, secret="old")
    assert unseal(sealed, origin=HERE, secrets=["new", "old"]) == "sk-1"
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(sealed, origin=HERE, secrets=["new"])


@given(st.integers(0, 200), st.integers(0, 7))
def test_a_flipped_bit_never_opens(place: int, bit: int) -> None:
    sealed = seal("sk-1", origin=HERE, secret="s")
    raw = bytearray(base64.urlsafe_b64decode(sealed[2:]))
    raw[place % len(raw)] ^= 1 << bit
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal("1." + base64.urlsafe_b64encode(raw).decode(), origin=HERE, secrets=["s"])


@pytest.mark.parametrize("text", ["", "1.", "1.AAAA", "2.AAAA", "no dot", "1.not base64!", "1.한글"])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(text, origin=HERE, secrets=["s"])
