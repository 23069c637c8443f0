"""Formats that are recognised and not read, with what converts them.

A file is recognised by its first bytes, so that a message can name what it is, and not only that it
is no RDF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROBOT = "Convert it to Turtle: robot convert --input FILE --output facts.ttl."
_RDFLIB = (
    'Read it with rdflib: from_rdflib(rdflib.Dataset().parse(FILE, format="{}")), with from_rdflib '
    "of capacity.database."
)
_UNPACK = "Unpack it ({}), and pass the file of facts in it."
_TABLE = "Read it with pandas: capacity.database.from_pandas({})."
# options of pandas that keep cells as they stand: 007, NA and null are labels
AS_TEXT = "dtype=str, keep_default_na=False"
_SPARQL = "Ask the endpoint for text/tab-separated-values, or for RDF by CONSTRUCT."


@dataclass(frozen=True)
class Foreign:
    """A format that isn't read.

    Attributes
    ----------
    what : str
        What the file is, as in "it is ...".
    advice : str
        What converts it.
    """

    what: str
    advice: str


_EXCEL = Foreign("an Excel file", _TABLE.format(f"pd.read_excel(FILE, {AS_TEXT})"))
_MATLAB = "Save an array of it, which is a tensor: np.save('T.npy', scipy.io.loadmat(FILE)[NAME])."
_HDF5 = Foreign(
    "an HDF5 file, as of MATLAB 7.3",
    # which stores an array with its axes in the opposite order
    "Save an array of it, which is a tensor: np.save('T.npy', h5py.File(FILE)[NAME][()].T).",
)
_IMAGE = Foreign("an image", "Pass a file of facts: RDF, TSV or CSV.")
# by the first bytes of files that aren't text
_MAGIC = {
    b"7z\xbc\xaf\x27\x1c": Foreign("a 7z archive", _UNPACK.format("7z x FILE")),
    b"Rar!\x1a\x07": Foreign("a RAR archive", _UNPACK.format("unrar x FILE")),
    b"\x04\x22\x4d\x18": Foreign("compressed by LZ4", "Decompress it first: lz4 -d FILE."),
    b"SQLite format 3\0": Foreign(
        "an SQLite database", 'Export a table: sqlite3 -csv FILE "select s, p, o from t" > t.csv.'
    ),
    b"ARROW1": Foreign("an Arrow file", _TABLE.format("pd.read_feather(FILE)")),
    b"MATLAB 5.0 MAT-file": Foreign("a MATLAB file", _MATLAB),
    b"MATLAB 7.3 MAT-file": _HDF5,
    b"\x89HDF": _HDF5,
    b"$HDT": Foreign("an HDT file", "Convert it to N-Triples: hdt2rdf FILE facts.nt."),
    b"\x93NUMPY": Foreign(
        "an array of numpy",
        "It is read as a tensor by capacity.tensor.read_tensor, and by capacity rank if its name "
        "ends in .npy; one of zeros and ones as facts by capacity.database.from_numpy.",
    ),
    b"\xd0\xcf\x11\xe0": _EXCEL,
    b"%PDF-": Foreign("a PDF file", "Pass a file of facts: RDF, TSV or CSV."),
    b"\x89PNG": _IMAGE,
    b"GIF8": _IMAGE,
    b"\xff\xd8\xff": _IMAGE,
}
_OPENKE = Foreign(
    "a list of numbered facts as OpenKE has it: a count, then head, tail and relation",
    'Read it with pandas: capacity.database.from_pandas(pd.read_csv(FILE, sep=r"\\s+", skiprows=1, '
    f"header=None, {AS_TEXT}), columns=[0, 2, 1]).",
)
_LFS = Foreign("a pointer of git-LFS, and not the file itself", "Fetch the file: git lfs pull.")
_OWL_XML = Foreign("OWL in OWL/XML", _ROBOT)
_OBO_GRAPHS = Foreign("an ontology in OBO Graphs JSON", _ROBOT)
# by the first element of an XML document
_ROOTS = {
    "TriX": Foreign("TriX", _RDFLIB.format("trix")),
    "Ontology": _OWL_XML,
    "sparql": Foreign("a SPARQL result in XML", _SPARQL),
    "svg": Foreign("an SVG image", "Pass a file of facts: RDF, TSV or CSV."),
    "graphml": Foreign(
        "GraphML",
        "Read it with networkx: capacity.database.from_networkx(nx.read_graphml(FILE)).",
    ),
    "rss": Foreign("an RSS feed", "Pass a file of facts: RDF, TSV or CSV."),
}
# by the beginning of the text
_TEXTS = (
    (re.compile(r"version https://git-lfs\.github\.com/spec/"), _LFS),
    (re.compile(r"\d+[ \t]*\r?\n(?:\d+[ \t]+\d+[ \t]+\d+[ \t]*(?:\r?\n|\Z))"), _OPENKE),
    (
        re.compile(r"(?:Prefix|Ontology|Import|Annotation|Declaration)\s*\("),
        Foreign("OWL in functional syntax", _ROBOT),
    ),
    (
        re.compile(r"(?:Prefix|Ontology|Import|Class|ObjectProperty|Individual|Namespace):\s"),
        Foreign("OWL in Manchester syntax", _ROBOT),
    ),
    (
        re.compile(r"format-version:\s*\d|\[Term\]\s*\r?\nid:"),
        Foreign("an ontology in OBO format", _ROBOT),
    ),
    (
        re.compile(
            r'\[\s*"[^"\n]*"\s*,\s*"[^"\n]*"\s*,\s*"(?:[^"\\\n]|\\.)*+"\s*(?:,\s*"[^"\n]*"\s*){3}\]'
        ),
        Foreign("HexTuples", _RDFLIB.format("hext")),
    ),
    (
        re.compile(r'\{\s*"[^"\n]*"\s*:\s*\{\s*"[^"\n]*"\s*:\s*\[\s*\{\s*"(?:value|type)"\s*:'),
        Foreign(
            "RDF/JSON, which is not JSON-LD",
            "Convert it: riot --syntax rdf/json --output turtle FILE.",
        ),
    ),
    (
        # graphs first, or the nodes or edges of one
        re.compile(
            r'\{\s*"graphs"\s*:\s*\[\s*\{\s*"(?:id|lbl|meta|nodes|edges|equivalentNodesSets|'
            r'logicalDefinitionAxioms|domainRangeAxioms|propertyChainAxioms)"\s*:'
        ),
        _OBO_GRAPHS,
    ),
    (
        re.compile(r'\{\s*"head"\s*:\s*\{\s*"(?:vars|link)"'),
        Foreign("a SPARQL result in JSON", _SPARQL),
    ),
)
_NODE_LINK = Foreign(
    "a graph in JSON, as lists of nodes and links",
    "Read it with networkx: capacity.database.from_networkx(nx.node_link_graph(json.load("
    "open(FILE)))).",
)
_RDFA = re.compile(r"\s(?:typeof|property|about|resource|vocab)\s*=\s*[\"']")
_JSON_LD_IN_HTML = re.compile(r"<script[^<>]*application/ld\+json", re.IGNORECASE)


def foreign_bytes(data: bytes) -> Foreign | None:
    """Recognise a file that isn't text; None if nothing is known of it.

    Examples
    --------
    >>> foreign_bytes(b"SQLite format 3" + bytes(9)).what
    'an SQLite database'
    """
    if data.startswith(b"PK\x03\x04"):
        if b"xl/" in data[:4096]:
            return _EXCEL
        if data[26:30] and b".npy" in data[30:4096]:
            return Foreign(
                "an archive of arrays of numpy", "It is read as a tensor if its name ends in .npz."
            )
        if data[26:30] and b"/data.pkl" in data[30:4096]:
            return Foreign("a file of torch", "A tensor is read from it if its name ends in .pt.")
        return Foreign("a zip archive", _UNPACK.format("unzip FILE"))
    if data[257:262] == b"ustar":
        return Foreign("a tar archive", _UNPACK.format("tar -xf FILE"))
    if data.startswith(b"PAR1") and 0 in data[:65536]:
        return Foreign("a Parquet file that is cut off", "Fetch it again.")
    if data[8:12] == b"DUCK":
        return Foreign(
            "a DuckDB database",
            "Count its facts where they are: capacity rank FILE --out-of-core --table NAME; or "
            "export a table: duckdb FILE 'copy t to \"t.csv\"'.",
        )
    if data.startswith((b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")):
        return Foreign("compressed twice", "Decompress it once first.")
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def is_parquet(data: bytes) -> bool:
    r"""Return whether bytes begin and end as a Parquet file does.

    Examples
    --------
    >>> is_parquet(b"PAR1 ... PAR1"), is_parquet(b"PAR1\tis\ta label")
    (True, False)
    """
    return len(data) > 8 and data.startswith(b"PAR1") and data.endswith(b"PAR1")


def foreign_text(text: str) -> Foreign | None:
    """Recognise the beginning of a text that is none of the formats read.

    Examples
    --------
    >>> foreign_text("format-version: 1.2").what
    'an ontology in OBO format'
    >>> foreign_text("@prefix : <x:> .") is None
    True
    """
    bare = re.sub(r"\A(?:\s+|#[^\n]*\n)+", "", text)
    if found := next((kind for form, kind in _TEXTS if form.match(bare)), None):
        return found
    if not bare.startswith("<"):
        return None
    bare = re.sub(r"<!--.*?(?:-->|\Z)", "", bare, flags=re.DOTALL)
    root = re.search(r"<(?:([\w.-]+):)?([A-Za-z][\w.-]*)(?=[\s/>])([^>]*)", bare)
    if root is None:
        return None
    if root[2].lower() == "html" or re.match(r"<!DOCTYPE\s+html", bare, re.IGNORECASE):
        return _page(bare)
    if not bare.startswith(("<?xml", "<!")) and "xmlns" not in root[3]:
        # an IRI of Turtle or N-Triples
        return None
    found = _ROOTS.get(root[2])
    if found is _OWL_XML and "http://www.w3.org/2002/07/owl#" not in root[3]:
        return None
    # an element of RDF/XML may have any name
    return None if "22-rdf-syntax-ns#" in root[3] and root[2] != "svg" else found


def foreign_json(document: object) -> Foreign | None:
    """Recognise a document of JSON that is another format; None if nothing is known of it.

    Examples
    --------
    >>> foreign_json({"meta": {}, "graphs": [{"id": "x:a", "nodes": []}]}).what
    'an ontology in OBO Graphs JSON'
    """
    if not isinstance(document, dict):
        return None
    graphs = document.get("graphs")
    if isinstance(graphs, list) and any(_has_list(graph, "nodes", "edges") for graph in graphs):
        return _OBO_GRAPHS
    if not (_has_list(document, "nodes") and _has_list(document, "links", "edges")):
        return None
    # one graph of OBO alone
    edges = document.get("edges") or []
    is_obo = any(isinstance(edge, dict) and {"sub", "pred", "obj"} <= edge.keys() for edge in edges)
    return _OBO_GRAPHS if is_obo else _NODE_LINK


def _has_list(document: object, *keys: str) -> bool:
    return isinstance(document, dict) and any(isinstance(document.get(k), list) for k in keys)


def _page(text: str) -> Foreign:
    if _JSON_LD_IN_HTML.search(text):
        return Foreign(
            "an HTML page with JSON-LD",
            "Copy the text of its element <script type='application/ld+json'> to a .jsonld file.",
        )
    if _RDFA.search(text):
        return Foreign(
            "an HTML page, perhaps with RDFa",
            "Extract the RDFa as Turtle first (pyRdfa3 and others do), or download the RDF file.",
        )
    return Foreign("an HTML page", "Download the RDF file itself.")
