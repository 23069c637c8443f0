"""Mutations of a sweep's files, seeded: bytes that were hit, and values that nobody wrote.

Each function takes the bytes of a whole file and gives those of a damaged one; they may be the same
by chance. What reads them must answer as if the file were whole, or raise a `CapacityError`.
"""

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DEPTH = 100_000
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, -5, 2**63, -(2**70), 10**4000, 0.5, 1e308, float("nan"),
    float("inf"), "", "many", "\0", "../../x", "é\ud800", "x" * 100_000, [], [1], [[1]], {},
    {"a": {"b": []}}, ["00000-0000000000000000.parquet"],
]  # fmt: skip


def mutate_manifest(data: bytes, rng: random.Random) -> bytes:
    """A damaged ``manifest.json``."""
    return rng.choice((bytes_hit, bytes_hit, value_replaced, value_replaced, _odd_json))(data, rng)


def mutate_ranks(data: bytes, rng: random.Random) -> bytes:
    """A damaged file of ``DIR/ranks``."""
    return mutate_manifest(data, rng)


def mutate_table(data: bytes, rng: random.Random) -> bytes:
    """A damaged shard, unfinished shard or ``runs.parquet``."""
    return rng.choice((bytes_hit, bytes_hit, _table_changed))(data, rng)


def bytes_hit(data: bytes, rng: random.Random) -> bytes:
    """Some bytes flipped, cut, added, zeroed, doubled or exchanged."""
    if not data:
        return b"\0"
    hit = bytearray(data)
    i, j = sorted(rng.randrange(len(data) + 1) for _ in "ab")
    match rng.randrange(7):
        case 0:
            for _ in range(rng.choice((1, 1, 2, 20))):
                hit[rng.randrange(len(hit))] ^= 1 << rng.randrange(8)
        case 1:
            del hit[i:]
        case 2:
            del hit[i:j]
        case 3:
            hit[i:i] = rng.randbytes(rng.choice((1, 8, 1000)))
        case 4:
            hit[i:j] = bytes(j - i)
        case 5:
            hit[i:i] = hit[i:j]
        case _:
            hit = hit[j:] + hit[i:j] + hit[:i]
    return bytes(hit)


def value_replaced(data: bytes, rng: random.Random) -> bytes:
    """JSON in which one value, however deep, is another, is gone, or moved to another key."""
    held = json.loads(data)
    places = list(_places(held))
    inside, key = rng.choice(places)
    what = rng.randrange(4)
    if what == 0 and isinstance(inside, dict):
        del inside[key]
    elif what == 1 and isinstance(inside[key], int):
        inside[key] += rng.choice((-1, 1, 999))
    elif what == 2:
        other, there = rng.choice(places)
        if there in other if isinstance(other, dict) else there < len(other):
            inside[key] = json.loads(json.dumps(other[there]))
    else:
        inside[key] = rng.choice(VALUES)
    return json.dumps(held).encode()


def _places(held: Any) -> Any:
    """All (object or list, key) below a value."""
    keys = list(held) if isinstance(held, dict) else range(len(held))
    for key in keys:
        yield held, key
        if isinstance(held[key], dict | list):
            yield from _places(held[key])


def _odd_json(data: bytes, rng: random.Random) -> bytes:
    """Other texts than JSON objects, and objects that try the parser."""
    key = rng.choice(list(json.loads(data))).encode()
    return rng.choice((
        b"", b"null", b"3", b"[]", b"{}", b'"x"', b"\xef\xbb\xbf" + data,
        data.decode().encode("utf-16"), b"[" * DEPTH, b"[" * DEPTH + b"]" * DEPTH,
        b'{"' + key + b'":' + b"[" * DEPTH,
        b'{"a":' * DEPTH + b"1" + b"}" * DEPTH, b'{"' + key + b'":' + b"1" * 5000 + b"}",
        data.replace(b'"' + key + b'"', b'"' + key + b'": 7, "' + key + b'"'), data * 2,
    ))  # fmt: skip


def _table_changed(data: bytes, rng: random.Random) -> bytes:
    """A valid parquet file with other rows, columns or metadata, most under the old digest."""
    table = pq.read_table(io.BytesIO(data))
    changes: list[Callable[[pa.Table, random.Random], pa.Table]] = [
        _cell_changed, _cell_changed, _cell_changed,
        lambda t, _: t.slice(0, t.num_rows - 1),
        lambda t, _: t.slice(0, 0),
        lambda t, _: pa.concat_tables([t, t.slice(0, 1)]),
        lambda t, _: pa.concat_tables([t] * 1000),
        lambda t, _: t.take(pa.array(range(t.num_rows - 1, -1, -1))),
        lambda t, r: t.drop_columns([r.choice(t.column_names)]),
        lambda t, r: t.rename_columns(r.sample(t.column_names, t.num_columns)),
        lambda t, _: t.replace_schema_metadata(),
        lambda t, _: t.replace_schema_metadata({"of": "x" * 1000, "rows_sha256": b"\xff"}),
    ]  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(rng.choice(changes)(table, rng), sink, compression="zstd")
    return sink.getvalue()


def _cell_changed(table: pa.Table, rng: random.Random) -> pa.Table:
    if not table.num_rows:
        return table
    i, row = rng.randrange(table.num_columns), rng.randrange(table.num_rows)
    field, values = table.schema.field(i), table.column(i).to_pylist()
    other = {pa.string(): "0" * 64, pa.int64(): 999, pa.float64(): 0.123, pa.bool_(): True}[
        field.type
    ]
    values[row] = rng.choice((other, rng.choice(values)))
    return table.set_column(i, field, pa.array(values, field.type))
