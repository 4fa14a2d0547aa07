"""Limits count clients by IPv4 address or IPv6 /64; mapped IPv4 addresses are IPv4."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from evaluation.core.addresses import client_network, is_in_networks


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1::", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_client_network_is_an_ipv4_address_or_an_ipv6_network_of_64_bits(address: str, network: str) -> None:
    assert client_network(address) == network


@pytest.mark.parametrize(
    ("address", "expected"),
    [("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("2001:db8::9", True), ("11.0.0.1", False), ("", False)],
)
def test_membership_in_networks_includes_mapped_addresses(address: str, expected: bool) -> None:
    assert is_in_networks(address, [ip_network("10.0.0.0/8"), ip_network("2001:db8::/64")]) == expected
