from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.network.origins import AllowList, parse_origin

PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://llm.example/v1", "https://llm.example:443"),
        ("HTTPS://LLM.Example:8443/v1/", "https://llm.example:8443"),
        ("http://10.1.2.3:8000", "http://10.1.2.3:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://localhost:11434/v1", "http://localhost:11434"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert str(parse_origin(url)) == origin


@pytest.mark.parametrize(
    "url",
    [
        "https://user@llm.example/v1",
        "https://llm.example:secret@evil.example/v1",
        "https://llm.example@evil.example",
        "http://2130706433/",  # 127.0.0.1 as one number
        "http://0177.0.0.1/",  # octal
        "http://0x7f.0.0.1/",  # hexadecimal
        "http://0x7f000001/",
        "http://127.1/",  # short
        "http://127.0.0.1./",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[fe80::1%25eth0]/",
        "http://１２７.0.0.1/",
        "http://llm。example/",
        "https://llm.example./v1",
        "https://llm.example\\@evil.example/",
        "https://llm.example\t/v1",
        "https://llm.example/v1?next=http://evil.example",
        "https://llm.example/v1#x",
        "https://llm.example:99999/",
        "https://llm.example:port/",
        "ftp://llm.example/",
        "file:///etc/passwd",
        "//llm.example/v1",
        "llm.example/v1",
        "https://",
        "",
    ],
)
def test_unusual_spellings_of_origins_are_refused(url: str) -> None:
    with pytest.raises(DomainError) as error:
        parse_origin(url)
    assert error.value.code == "origin_invalid"


def test_error_does_not_contain_the_password_of_a_url() -> None:
    with pytest.raises(DomainError) as error:
        parse_origin("https://me:hunter2@llm.example/v1")
    assert "hunter2" not in str(error.value)


@given(st.text(max_size=40) | st.text(max_size=30).map(lambda t: f"http://{t}/v1"))
def test_any_url_is_parsed_or_refused(url: str) -> None:
    with contextlib.suppress(DomainError):
        origin = parse_origin(url)
        assert parse_origin(str(origin)) == origin


@pytest.mark.parametrize(
    "url",
    [
        "http://llm.example/v1",  # scheme
        "https://llm.example:8443/v1",  # port
        "https://evil.example/v1",
        "https://llm.example.evil.example/v1",
        "https://api.llm.example/v1",
    ],
)
def test_url_is_allowed_if_scheme_host_and_port_are_listed(url: str) -> None:
    allowed = AllowList(["https://llm.example"])
    assert str(allowed.check("https://llm.example/v1")) == "https://llm.example:443"
    with pytest.raises(DomainError) as error:
        allowed.check(url)
    assert error.value.code == "origin_not_allowed"


def test_empty_list_allows_nothing() -> None:
    with pytest.raises(DomainError):
        AllowList([]).check("https://llm.example/v1")


@pytest.mark.parametrize(
    "origin",
    [
        "http://169.254.169.254",
        "http://[fe80::1]",
        "http://0.0.0.0",
        "http://[::ffff:169.254.169.254]",
        "http://100.100.100.200",
    ],
)
def test_metadata_and_link_local_addresses_are_refused_even_if_listed(origin: str) -> None:
    with pytest.raises(DomainError, match=r"origin_never_allowed|origin_invalid"):
        AllowList([origin]).check(origin)


def test_loopback_address_is_allowed_only_if_listed() -> None:
    assert AllowList(["http://[::1]:8000"]).check("http://[::1]:8000/v1")
    with pytest.raises(DomainError):
        AllowList(["http://127.0.0.1:8000"]).check("http://[::1]:8000/v1")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.8",
        "192.168.1.4",
        "100.64.0.1",
        "::1",
        "fd00::8",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",  # Teredo: the client's address, inverted, is 127.0.0.1
        "::127.0.0.1",  # IPv4-compatible
        "64:ff9b:1::7f00:1",  # NAT64 of a network's own
        "64:ff9b:1:7f00:0:100::",  # the same, by the layout of a /48
        "fec0::1",  # site-local
        "5f00::1",
    ],
)
def test_a_public_name_may_not_resolve_to_a_private_address(address: str) -> None:
    allowed = AllowList(["https://llm.example"])
    assert allowed.permits("llm.example", PUBLIC)
    assert not allowed.permits("llm.example", address)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1", "fe80::1%eth0", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fd00:ec2::254"),
        *("::169.254.169.254", "64:ff9b::169.254.169.254", "::", "junk"),
    ],
)
def test_forbidden_addresses_are_refused_for_any_name_or_network(address: str) -> None:
    allowed = AllowList(["http://localhost", "0.0.0.0/0", "::/0"])
    assert not allowed.permits("localhost", address)
    assert not allowed.permits("llm.example", address)


def test_names_may_resolve_into_a_listed_network() -> None:
    allowed = AllowList(["https://llm.corp.example", "10.20.0.0/16"])
    assert allowed.permits("llm.corp.example", "10.20.3.4")
    assert not allowed.permits("llm.corp.example", "10.21.3.4")


def test_address_with_a_zone_is_refused_for_any_host() -> None:
    assert AllowList(["http://localhost"]).permits("localhost", "::1")
    assert not AllowList(["http://localhost"]).permits("localhost", "::1%lo")


@pytest.mark.parametrize("host", ["localhost", "ollama", "gpu1.lan", "vllm.internal"])
def test_local_names_may_resolve_to_private_addresses(host: str) -> None:
    assert AllowList([f"http://{host}:8000"]).permits(host, "10.0.0.8")


@pytest.mark.parametrize("entry", ["llm.example", "10.0.0.1/8", "https://me@llm.example"])
def test_invalid_allow_list_entry_is_refused(entry: str) -> None:
    with pytest.raises(DomainError):
        AllowList([entry])
