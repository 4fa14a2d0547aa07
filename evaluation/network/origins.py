"""Allow-list of origins for outgoing calls, checked on the URL and again on the resolved address.

An origin is scheme, host and port. Link-local and metadata addresses are always refused. Loopback and private addresses
need an entry for the address, its network, or a host name that is private by its form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from evaluation.core.errors import DomainError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\Z")
# A last label that resolvers read as part of an IPv4 address.
_NUMBER_LABEL = re.compile(r"(?:0x[0-9a-f]*|\d+)\Z")
_PRIVATE_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
# Instance metadata outside the link-local ranges.
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
# Addresses whose last 32 bits are an IPv4 address: NAT64, and the deprecated IPv4-compatible ones.
_IPV4_IN_IPV6 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# The only public addresses of IPv6. `is_global` is also true of site-local ones and of a network's own NAT64.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, lower-case host without brackets, and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_origin(url: str) -> Origin:
    """Parse the origin of a base URL.

    :raises DomainError: ``origin_invalid`` for anything but a plain http(s) URL: user information, a query, an
    unusually spelled address (decimal, octal, hexadecimal, short), a zone, control characters, a non-ASCII name."""
    if re.search(r"[\x00-\x20\x7f\\]", url) or not url.isascii():
        raise DomainError("origin_invalid", url=url[:200])
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise DomainError("origin_invalid", url=url[:200]) from error
    host = _valid_host(parts)
    if parts.scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise DomainError("origin_invalid", url=_without_userinfo(parts)[:200])
    return Origin(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)


def _valid_host(parts: SplitResult) -> str:
    """Host if it is a canonical address or a valid name; else an empty string."""
    host = parts.hostname or ""
    if address := _parse_address(host):
        return host if str(address) == host else ""
    if not _NAME.match(host) or _NUMBER_LABEL.match(host.rpartition(".")[2]):
        return ""
    return host


def _without_userinfo(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parse_address(text: str) -> Address | None:
    """Parse a canonical address; ``ipaddress`` refuses octal, short and single-number forms."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, ipaddress.IPv6Address) and address.scope_id else address


class AllowList:
    """The operator's origins, and the private networks that listed host names may resolve to.

    :raises DomainError: ``origin_invalid`` for an entry that is no origin, address or network."""

    def __init__(self, entries: Iterable[str]) -> None:
        origins: set[Origin] = set()
        networks: set[Network] = set()
        for entry in filter(None, (entry.strip() for entry in entries)):
            if "://" in entry:
                origins.add(parse_origin(entry))
            else:
                networks.add(_parse_network(entry))
        self.origins = frozenset(origins)
        self.networks = frozenset(networks)

    def check(self, url: str) -> Origin:
        """Return the origin of the URL if calls to it are allowed.

        :raises DomainError: ``origin_invalid``; ``origin_never_allowed`` for an address that no list can allow;
        ``origin_not_allowed`` for an unlisted origin."""
        origin = parse_origin(url)
        literal = _parse_address(origin.host)
        if literal and _is_always_refused(literal):
            raise DomainError("origin_never_allowed", origin=str(origin))
        if origin not in self.origins:
            raise DomainError("origin_not_allowed", origin=str(origin))
        return origin

    def permits(self, host: str, address: str) -> bool:
        """Return whether a connection to the listed ``host`` may use this resolved address."""
        resolved = _parse_address(address.partition("%")[0])
        if resolved is None or "%" in address or _is_always_refused(resolved):
            return False
        unwrapped = _unwrap(resolved)
        if unwrapped.is_global and (unwrapped.version == 4 or unwrapped in _GLOBAL_UNICAST):
            return True
        in_listed_network = any(
            unwrapped in network for network in self.networks if network.version == unwrapped.version
        )
        return in_listed_network or _is_private_name(host) or _parse_address(host) == resolved


def _parse_network(entry: str) -> Network:
    try:
        return ipaddress.ip_network(entry)
    except ValueError as error:
        raise DomainError("origin_invalid", url=entry[:200]) from error


def _is_private_name(host: str) -> bool:
    """Return whether public DNS cannot resolve the name: ``localhost``, a single label, ``.local`` and the like."""
    return ("." not in host and ":" not in host) or host.endswith(_PRIVATE_SUFFIXES)


def _is_always_refused(address: Address) -> bool:
    unwrapped = _unwrap(address)
    return (
        unwrapped.is_link_local
        or unwrapped.is_multicast
        or unwrapped.is_unspecified
        # In IPv6 the loopback address counts as reserved.
        or (unwrapped.version == 4 and unwrapped.is_reserved)
        or unwrapped in _METADATA
    )


def _unwrap(address: Address) -> Address:
    """IPv4 address inside a mapped, compatible, 6to4, Teredo or NAT64 address."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if any(address in network for network in _IPV4_IN_IPV6):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or address
