"""XML in the encoding that it declares, or in UTF-16, as the same text in UTF-8.

An XML document states its encoding itself, in ASCII, and without a statement it is UTF-8 or UTF-16.
A text that is UTF-8 stays as it is, whatever it declares: the reader of RDF/XML refuses the
contradiction, for one of the two is wrong.

References
----------
XML 1.0, section 4.3.3 and appendix F (detection of encodings).
"""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(r"""(<\?xml\s[^>]*?\sencoding\s*=\s*)(["'])([A-Za-z][\w.-]*)\2""", re.ASCII)
# of a declaration in an encoding that has ASCII in it
_LONGEST = 512
_BEGINNINGS = {
    b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be",
    b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be",
}  # fmt: skip
# an IRI of N-Triples begins as a tag does
_BEGINS = re.compile(r"\s*<(?:\?xml\s|!--|!DOCTYPE\s|[^<>]*\bxmlns\b)")
_OF_UTF_16 = re.compile(r"utf-?16.*|(?:iso-10646-)?ucs-2", re.IGNORECASE)


def xml_as_utf_8(data: bytes, *, whole: bool = True) -> bytes:
    r"""Write XML of another encoding in UTF-8, and declare this; the same bytes for all others.

    Parameters
    ----------
    data : bytes
        A file.
    whole : bool
        Whether it is all of the file: the beginning of one may end within a character.

    Returns
    -------
    bytes
        The text; what is broken in its encoding, or of one that isn't known, stays as it is.

    Examples
    --------
    >>> xml_as_utf_8(b"<?xml version='1.0' encoding='latin1'?><a>\xe9</a>").decode()
    "<?xml version='1.0' encoding='UTF-8'?><a>é</a>"
    """
    beginning = next((one for one in _BEGINNINGS if data.startswith(one)), None)
    if beginning is not None:
        return _of_utf_16(data, _BEGINNINGS[beginning], whole)
    if not data.startswith(b"<?xml"):
        return data
    declared = _DECLARED.match(data[:_LONGEST].decode("latin-1"))
    codec = None if declared is None else _single_bytes(declared[3])
    if codec is None or _is_utf_8(data, whole):
        return data
    try:
        return _redeclared(data.decode(codec))
    except UnicodeDecodeError:
        return data


def _of_utf_16(data: bytes, codec: str, whole: bool) -> bytes:
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, whole).removeprefix("\ufeff")
        if not _BEGINS.match(text):
            return data
        declared = _DECLARED.match(text)
        if declared is None or _OF_UTF_16.fullmatch(declared[3]):
            return _redeclared(text)
    except UnicodeError:
        pass
    return data


def _redeclared(text: str) -> bytes:
    return _DECLARED.sub(r"\1\2UTF-8\2", text, count=1).encode()


def _single_bytes(encoding: str) -> str | None:
    """Return the codec of an encoding of single bytes, with ASCII in it; None of others."""
    try:
        found = codecs.lookup(encoding)
        text = bytes(range(256)).decode(encoding, "replace")
    except (LookupError, ValueError):
        return None
    has_ascii = text[:128] == bytes(range(128)).decode()
    return found.name if has_ascii and len(text) == 256 and found.name != "utf-8" else None


def _is_utf_8(data: bytes, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True
