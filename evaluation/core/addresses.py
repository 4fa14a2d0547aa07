"""IP addresses of clients."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

IPNetwork = IPv4Network | IPv6Network
# A subscriber gets at least one network of this size, and may use any address in it.
IPV6_PREFIX = 64


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address, an IPv4 address that is mapped into IPv6 as IPv4; ``None`` for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def is_in_networks(text: str, networks: Iterable[IPNetwork]) -> bool:
    """Return whether the text is an address in one of the networks."""
    address = parse_address(text)
    return address is not None and any(address in network for network in networks)


def client_network(text: str) -> str:
    """Return the unit in which limits count clients: an IPv4 address, or the /64 network of an IPv6 address.

    Any other text is returned unchanged."""
    address = parse_address(text)
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address), IPV6_PREFIX), strict=False))
    return text if address is None else str(address)
