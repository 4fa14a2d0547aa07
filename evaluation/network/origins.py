"""Where judges may be called: an operator's list of origins, checked on the URL and again on the resolved address.

An origin is scheme, host and port. Link-local and metadata addresses are refused always; loopback and private ones
unless the list names the address, a network that holds it, or a host name that is private by its form.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from evaluation.core.errors import Refused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\Z")
_NUMBER_LABEL = re.compile(r"(?:0x[0-9a-f]*|\d+)\Z")  # a last label that resolvers read as part of an IPv4 address
_PRIVATE_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
_METADATA = frozenset(  # instance metadata outside the link-local ranges
    ipaddress.ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host in lower case without brackets, and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """The origin of a base URL.

    :raises Refused: ``origin_invalid`` for anything but a plain http(s) URL: user information, a query, an address in
        an unusual spelling (decimal, octal, hexadecimal, short), a zone, control characters, a name not in ASCII.
    """
    if re.search(r"[\x00-\x20\x7f\\]", url) or not url.isascii():
        raise Refused("origin_invalid", url=url[:200])
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused("origin_invalid", url=url[:200]) from error
    host = _host(parts)
    if parts.scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise Refused("origin_invalid", url=_without_userinfo(parts)[:200])
    return Origin(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)


def _host(parts: SplitResult) -> str:
    """The host as it is compared, empty where it is none: a canonical address or a name."""
    host = parts.hostname or ""
    if address := _address(host):
        return host if str(address) == host else ""
    if not _NAME.match(host) or _NUMBER_LABEL.match(host.rpartition(".")[2]):
        return ""
    return host


def _without_userinfo(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _address(text: str) -> Address | None:
    """The address of its canonical spelling; ``ipaddress`` refuses octal, short and single-number forms."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, ipaddress.IPv6Address) and address.scope_id else address


class AllowList:
    """The operator's origins, and the private networks that host names on the list may resolve to.

    :raises Refused: ``origin_invalid`` for an entry that is neither an origin nor an address or network.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        origins: set[Origin] = set()
        networks: set[Network] = set()
        for entry in filter(None, (entry.strip() for entry in entries)):
            if "://" in entry:
                origins.add(origin_of(entry))
            else:
                networks.add(_network(entry))
        self.origins = frozenset(origins)
        self.networks = frozenset(networks)

    def check(self, url: str) -> Origin:
        """The origin of the URL, if calls may go there.

        :raises Refused: ``origin_invalid``; ``origin_never_allowed`` for an address that no list allows;
            ``origin_not_allowed`` when the list does not name it.
        """
        origin = origin_of(url)
        literal = _address(origin.host)
        if literal and _always_refused(literal):
            raise Refused("origin_never_allowed", origin=str(origin))
        if origin not in self.origins:
            raise Refused("origin_not_allowed", origin=str(origin))
        return origin

    def permits(self, host: str, address: str) -> bool:
        """Whether a connection to ``host``, which stands on the list, may go to this resolved address."""
        resolved = _address(address.partition("%")[0])
        if resolved is None or "%" in address or _always_refused(resolved):
            return False
        inner = _unwrapped(resolved)
        if inner.is_global:
            return True
        listed = any(inner in network for network in self.networks if network.version == inner.version)
        return listed or _private_by_form(host) or _address(host) == resolved


def _network(entry: str) -> Network:
    try:
        return ipaddress.ip_network(entry)
    except ValueError as error:
        raise Refused("origin_invalid", url=entry[:200]) from error


def _private_by_form(host: str) -> bool:
    """Names that public DNS cannot answer for: ``localhost``, a single label, ``.local`` and the like."""
    return ("." not in host and ":" not in host) or host.endswith(_PRIVATE_SUFFIXES)


def _always_refused(address: Address) -> bool:
    inner = _unwrapped(address)
    return (
        inner.is_link_local
        or inner.is_multicast
        or inner.is_unspecified
        or (inner.version == 4 and inner.is_reserved)  # in IPv6 the loopback address counts as reserved
        or inner in _METADATA
    )


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside a mapped, 6to4, Teredo or NAT64 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or address
