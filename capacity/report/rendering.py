"""HTML pages from the templates of this package: each a single file that loads nothing.

Every value is escaped, and shown as `capacity.visible` has it. A policy in the page itself (CSP)
allows its one style and its one script by their hashes, and pictures that are written in it, so
that a browser runs and loads nothing else even if the escaping had a fault.
"""

from __future__ import annotations

import base64
import hashlib
import math
from typing import Any

from capacity import __version__
from capacity.display import percent
from capacity.optional import needed_by
from capacity.visible import visible


def rendered(template: str, **values: object) -> str:
    """Fill a template of this package in.

    Parameters
    ----------
    template : str
        Its name, such as ``database.html.j2``.
    **values
        What the template calls by these names; all of it, or rendering fails.

    Returns
    -------
    str
        The page. The same values give the same page.

    Raises
    ------
    MissingExtraError
        Without jinja2 (extra ``report``).
    """
    with needed_by("A report"):
        import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("capacity.report", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent}
    style, script = (_source(environment, name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    )
    return environment.get_template(template).render(
        **values, style=style, script=script, policy=policy, version=__version__
    )


def number(value: object) -> str:
    """Write a number for people: integers whole, others by three digits after the point.

    Examples
    --------
    >>> number(4103), number(0.5), number("open")
    ('4,103', '0.500', 'open')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "without limit"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _shown(value: object) -> object:
    """Texts of others as they are shown; what is HTML already, such as a macro's, stays."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _source(environment: Any, name: str) -> Any:
    """Text of a style or script of this package, which is no user's, and so isn't escaped."""
    from markupsafe import Markup

    return Markup(environment.loader.get_source(environment, name)[0])


def _hash(text: str) -> str:
    """The source of a policy that allows a text by its SHA-256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
