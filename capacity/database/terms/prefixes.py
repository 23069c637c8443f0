"""Prefixes that names may have though a file doesn't declare them.

They are those of rdflib, of Wikidata's dumps, and the common ones of prefix.cc. A prefix that the
file declares wins. A few denote two namespaces, as ``schema`` does, which vocabularies have
written with ``http`` and with ``https``: a name is then looked for in both.

References
----------
rdflib.namespace; Wikibase, RDF Dump Format, section on prefixes; prefix.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_W3 = "http://www.w3.org/"
_WIKIDATA = "http://www.wikidata.org/"
_PURL = "http://purl.org/"
_OBO = "http://purl.obolibrary.org/obo/"
# of each prefix its namespaces, the usual one first
WELL_KNOWN: dict[str, tuple[str, ...]] = {
    # the languages of RDF
    "rdf": (f"{_W3}1999/02/22-rdf-syntax-ns#",),
    "rdfs": (f"{_W3}2000/01/rdf-schema#",),
    "owl": (f"{_W3}2002/07/owl#",),
    "xsd": (f"{_W3}2001/XMLSchema#",),
    "sh": (f"{_W3}ns/shacl#",),
    "skos": (f"{_W3}2004/02/skos/core#",),
    "skosxl": (f"{_W3}2008/05/skos-xl#",),
    "swrl": (f"{_W3}2003/11/swrl#",),
    "rr": (f"{_W3}ns/r2rml#",),
    # vocabularies for anything
    "schema": ("http://schema.org/", "https://schema.org/"),
    "sdo": ("https://schema.org/", "http://schema.org/"),
    "dc": (f"{_PURL}dc/elements/1.1/",),
    "dcterms": (f"{_PURL}dc/terms/",),
    "dct": (f"{_PURL}dc/terms/",),
    "dcmitype": (f"{_PURL}dc/dcmitype/",),
    "dcam": (f"{_PURL}dc/dcam/",),
    "foaf": ("http://xmlns.com/foaf/0.1/",),
    "doap": ("http://usefulinc.com/ns/doap#",),
    "vcard": (f"{_W3}2006/vcard/ns#",),
    "org": (f"{_W3}ns/org#",),
    "sioc": ("http://rdfs.org/sioc/ns#",),
    "prov": (f"{_W3}ns/prov#",),
    "pav": (f"{_PURL}pav/",),
    "void": ("http://rdfs.org/ns/void#",),
    "vann": (f"{_PURL}vocab/vann/",),
    "dcat": (f"{_W3}ns/dcat#",),
    "adms": (f"{_W3}ns/adms#",),
    "qb": (f"{_PURL}linked-data/cube#",),
    "csvw": (f"{_W3}ns/csvw#",),
    "odrl": (f"{_W3}ns/odrl/2/",),
    "cc": ("http://creativecommons.org/ns#",),
    "prof": (f"{_W3}ns/dx/prof/",),
    "oa": (f"{_W3}ns/oa#",),
    "as": (f"{_W3}ns/activitystreams#",),
    "ldp": (f"{_W3}ns/ldp#",),
    "hydra": (f"{_W3}ns/hydra/core#",),
    "time": (f"{_W3}2006/time#",),
    "geo": (f"{_W3}2003/01/geo/wgs84_pos#", "http://www.opengis.net/ont/geosparql#"),
    "wgs": (f"{_W3}2003/01/geo/wgs84_pos#",),
    "wgs84": (f"{_W3}2003/01/geo/wgs84_pos#",),
    "geosparql": ("http://www.opengis.net/ont/geosparql#",),
    "gn": ("http://www.geonames.org/ontology#",),
    "gr": (f"{_PURL}goodrelations/v1#",),
    "bibo": (f"{_PURL}ontology/bibo/",),
    "mo": (f"{_PURL}ontology/mo/",),
    "ssn": (f"{_W3}ns/ssn/",),
    "sosa": (f"{_W3}ns/sosa/",),
    "qudt": ("http://qudt.org/schema/qudt/",),
    "unit": ("http://qudt.org/vocab/unit/",),
    "brick": ("https://brickschema.org/schema/Brick#",),
    "ontolex": (f"{_W3}ns/lemon/ontolex#",),
    "obo": (_OBO,),
    "oboInOwl": ("http://www.geneontology.org/formats/oboInOwl#",),
    # DBpedia
    "dbo": ("http://dbpedia.org/ontology/",),
    "dbr": ("http://dbpedia.org/resource/",),
    "dbp": ("http://dbpedia.org/property/",),
    "dbc": ("http://dbpedia.org/resource/Category:",),
    "yago": ("http://yago-knowledge.org/resource/", "http://dbpedia.org/class/yago/"),
    # Wikidata
    "wikibase": ("http://wikiba.se/ontology#",),
    "wd": (f"{_WIKIDATA}entity/",),
    "wds": (f"{_WIKIDATA}entity/statement/",),
    "wdt": (f"{_WIKIDATA}prop/direct/",),
    "wdtn": (f"{_WIKIDATA}prop/direct-normalized/",),
    "wdno": (f"{_WIKIDATA}prop/novalue/",),
    "wdv": (f"{_WIKIDATA}value/",),
    "wdref": (f"{_WIKIDATA}reference/",),
    "wdata": (f"{_WIKIDATA}wiki/Special:EntityData/",),
    "p": (f"{_WIKIDATA}prop/",),
    "ps": (f"{_WIKIDATA}prop/statement/",),
    "psv": (f"{_WIKIDATA}prop/statement/value/",),
    "psn": (f"{_WIKIDATA}prop/statement/value-normalized/",),
    "pq": (f"{_WIKIDATA}prop/qualifier/",),
    "pqv": (f"{_WIKIDATA}prop/qualifier/value/",),
    "pqn": (f"{_WIKIDATA}prop/qualifier/value-normalized/",),
    "pr": (f"{_WIKIDATA}prop/reference/",),
    "prv": (f"{_WIKIDATA}prop/reference/value/",),
    "prn": (f"{_WIKIDATA}prop/reference/value-normalized/",),
}
# a prefix, and a name that isn't the rest of an IRI
_PREFIXED = re.compile(r"([^\s:/<>\"]*):(?!//)(.*)", re.DOTALL)


def shown_prefixes(declared: Mapping[str, str], namespaces: Iterable[str] = ()) -> dict[str, str]:
    """Return the prefixes by which IRIs are shown: those of the file, and the well-known ones.

    A well-known prefix is omitted if the file uses it for something else, or has another one for
    its namespace.

    Parameters
    ----------
    declared : mapping of str to str
        Prefixes of the file.
    namespaces : iterable of str
        Namespaces or IRIs that are to be shown, which choose between two of one prefix.

    Examples
    --------
    >>> shown = shown_prefixes({"dc": "http://purl.org/dc/terms/"}, ["https://schema.org/name"])
    >>> "dcterms" in shown, shown["schema"], shown["dc"]
    (False, 'https://schema.org/', 'http://purl.org/dc/terms/')
    """
    iris, taken = tuple(namespaces), set(declared.values())
    found: dict[str, str] = {}
    # of two prefixes for one namespace, the first is shown
    for name, every in WELL_KNOWN.items():
        usual, *others = every
        used = (one for one in (usual, *others) if any(iri.startswith(one) for iri in iris))
        chosen = next(used, usual) if others else usual
        if chosen not in taken and name not in declared:
            found[name] = chosen
            taken.add(chosen)
    return {**found, **declared}


def namespaces_of(prefix: str, declared: Mapping[str, str]) -> tuple[str, ...]:
    """Return the namespaces that a prefix denotes; none if it is unknown.

    Examples
    --------
    >>> namespaces_of("wdt", {})
    ('http://www.wikidata.org/prop/direct/',)
    >>> namespaces_of("wdt", {"wdt": "http://example.org/"}), namespaces_of("wtd", {})
    (('http://example.org/',), ())
    """
    return (declared[prefix],) if prefix in declared else WELL_KNOWN.get(prefix, ())


def expanded(name: object, declared: Mapping[str, str]) -> tuple[str, ...]:
    """Return the IRIs that a prefixed name may denote; none if its prefix is unknown.

    Examples
    --------
    >>> expanded("schema:name", {})
    ('http://schema.org/name', 'https://schema.org/name')
    >>> expanded("name", {}), expanded("http://schema.org/name", {})
    ((), ())
    """
    found = _PREFIXED.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        return ()
    return tuple(iri + found[2] for iri in namespaces_of(found[1], declared))


def prefix_hint(name: object, declared: Mapping[str, str]) -> str:
    """State that the prefix of a name is unknown, with the nearest; empty if it is known or none.

    Examples
    --------
    >>> prefix_hint("wtd:P31", {})
    ' The prefix wtd: is unknown. Did you mean `wdt`?'
    >>> prefix_hint("wdt:P31", {}), prefix_hint("P31", {})
    ('', '')
    """
    found = _PREFIXED.fullmatch(name) if isinstance(name, str) else None
    if found is None or not found[1] or namespaces_of(found[1], declared):
        return ""
    known = [*declared, *WELL_KNOWN]
    # in names of three letters two that changed places are nearer than one that is missing
    changed = [one for one in known if sorted(one) == sorted(found[1])]
    # one letter of three is a third
    near = changed or get_close_matches(found[1][:60], known, n=1, cutoff=0.6)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f" The prefix {found[1][:60]}: is unknown.{hint}"
