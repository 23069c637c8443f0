"""The address of an endpoint, and the credentials that may be sent to it.

Credentials come from the environment alone, and go to the endpoint's own host alone, over https or
to this machine. Neither they nor the query part of the address, which may hold a key, are ever
shown or stored.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError

USER, PASSWORD, TOKEN = "CAPACITY_SPARQL_USER", "CAPACITY_SPARQL_PASSWORD", "CAPACITY_SPARQL_TOKEN"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Endpoint:
    """An address of http or https.

    Attributes
    ----------
    url : str
        The whole address.
    name : str
        The address without its query part, for messages and for `Source`.
    """

    url: str = field(repr=False)
    name: str

    @property
    def parts(self) -> SplitResult:
        """The address in parts."""
        return urlsplit(self.url)

    @property
    def host(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        parts = self.parts
        return parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme]

    @property
    def target(self) -> str:
        """Path and query part, which a request asks the host for."""
        parts = self.parts
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def keeps_secrets(self) -> bool:
        """True over https, and for this machine, whose network nobody else reads."""
        scheme, host, _ = self.host
        return scheme == "https" or _is_this_machine(host)

    def is_at(self, other: Endpoint) -> bool:
        """Return True if both are on one host; https may take the place of http there."""
        (scheme, host, port), there = self.host, other.host
        upgraded = ("https", host, 443 if port == 80 else port)
        return there == (scheme, host, port) or (scheme == "http" and there == upgraded)


def endpoint_at(url: object) -> Endpoint:
    """Check the address of an endpoint.

    Raises
    ------
    InvalidTypeError
        If it is no str.
    InvalidArgumentError
        Unless it is an address of http or https with a host, and without a user or a password.

    Examples
    --------
    >>> endpoint_at("https://example.org/sparql?key=secret")
    Endpoint(name='https://example.org/sparql')
    """
    if not isinstance(url, str):
        raise InvalidTypeError(
            f"`endpoint` must be the address of an endpoint as a str; got {shown(url)}."
        )
    needed = "`endpoint` must be an address such as https://example.org/sparql"
    try:
        parts = urlsplit(url)
        secret = parts.username is not None or parts.password is not None
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # the reason may repeat a password
        raise InvalidArgumentError(f"{needed}; got one without a valid host or port.") from None
    if secret:
        raise InvalidArgumentError(
            f"{needed}, without a user or a password, which addresses show to others. Set the "
            f"environment variables {USER} and {PASSWORD}, or {TOKEN}."
        )
    if parts.scheme not in _PORTS or not valid or re.search(r"[^!-~]", url):
        raise InvalidArgumentError(
            f"{needed}, with http or https, a host, and other characters percent-encoded; got "
            f"{shown(url.partition('?')[0])}."
        )
    where = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return Endpoint(url.partition("#")[0], f"{parts.scheme}://{where}{port}{parts.path}")


def is_address(text: str) -> bool:
    """Return True if a text is meant as an address of http or https, and not as a file's name.

    Examples
    --------
    >>> is_address("https://example.org/sparql"), is_address("facts.ttl")
    (True, False)
    """
    return re.match(r"https?:", text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Credentials:
    """The credentials of a request.

    Attributes
    ----------
    header : str
        Value of the header Authorization; empty if the environment has no credentials.
    secrets : tuple of str
        What no message may show.
    """

    header: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hidden(self, text: str) -> str:
        """Return a text without the secrets in it."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def credentials_of(environment: Mapping[str, str] | None = None) -> Credentials:
    """Read the credentials of the environment.

    Raises
    ------
    InvalidArgumentError
        For a user without a password, for both kinds at once, or for characters that no header
        holds. The message has none of them.

    Examples
    --------
    >>> credentials_of({"CAPACITY_SPARQL_TOKEN": "abc"}).header
    'Bearer abc'
    """
    known = os.environ if environment is None else environment
    user, password, token = (known.get(name, "") for name in (USER, PASSWORD, TOKEN))
    if bool(user) != bool(password):
        raise InvalidArgumentError(
            f"The environment variables {USER} and {PASSWORD} must be set together; got one of "
            "them. Set both, or neither."
        )
    if token and user:
        raise InvalidArgumentError(
            f"The environment must hold either {TOKEN}, or {USER} and {PASSWORD}; got all of them. "
            "Unset those that aren't meant."
        )
    if token:
        if re.search(r"[^!-~]", token):
            raise InvalidArgumentError(
                f"The environment variable {TOKEN} must hold printable ASCII without spaces; got "
                "other characters. Set it again."
            )
        return Credentials(f"Bearer {token}", (token,))
    if user:
        if ":" in user or not (user + password).isprintable():
            raise InvalidArgumentError(
                f"{USER} must hold no colon, and {USER} and {PASSWORD} no control characters; "
                "got some. Set them again."
            )
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return Credentials(f"Basic {encoded}", (password, encoded))
    return Credentials()


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
