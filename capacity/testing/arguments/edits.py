"""Certificates after a few edits: most prove nothing, and some still prove their claim."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from capacity.errors import CertificateError
from capacity.rank import Certificate
from capacity.rank.verifier.argument_json import MODES_OF_3
from capacity.testing.choices import Choices

Data: TypeAlias = dict[str, Any]
# steps to near numbers, and numbers at the limits of the format
STEPS = (1, -1, 2, -2)
EXTREMES = (0, 2**20 + 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63))
MODULI = (2, 3, 5, 2**31 - 1, 2**61 - 1, 2**62 - 57, 2**63 - 25, 1, 0, 4, 2**31, 2**63)
FACTORS = (1 - 1e-12, 1 + 1e-6, 0.5, 1.5, -1.0, 0.0, 1e300)


@st.composite
def mutations(
    draw: st.DrawFn, certificate: Certificate, *, others: Sequence[Certificate] = ()
) -> dict[str, Any]:
    """Draw certificates after one to three edits, as JSON data.

    Numbers change, lists are cut, swapped, repeated and emptied, arguments are doubled, dropped and
    taken from other certificates, sides, quantities and primes exchanged, floats nudged, bases made
    huge or empty, modes added and dropped, keys removed. Often the claim then fits the arguments,
    or is one better. `Certificate.from_dict` and `verify` may refuse; what is proved must be true.

    Parameters
    ----------
    certificate : Certificate
        Certificate to edit; it isn't changed.
    others : sequence of Certificate, optional
        Certificates whose arguments may be inserted, or replace others.

    Returns
    -------
    SearchStrategy of dict
        Edited forms of ``certificate.to_dict()``.

    Examples
    --------
    >>> from hypothesis import find
    >>> from capacity import Database, rank_interval, verify
    >>> db = Database.from_triples([("Ada", "born_in", "London"), ("Ada", "died_in", "London")])
    >>> lower = rank_interval(db).certificates.lower
    >>> edited = find(mutations(lower), lambda data: data.get("value") == lower.value + 1)
    >>> verify(Certificate.from_dict(edited), db).proved
    False
    """
    return mutated(Choices.drawn(draw), certificate, others=others)


def mutated(
    choose: Choices, certificate: Certificate, *, others: Sequence[Certificate] = ()
) -> Data:
    """Draw from `mutations` by given choices."""
    data = certificate.to_dict()
    spare = [argument for one in others for argument in one.to_dict()["arguments"]]
    for _ in range(choose.integer(1, 3)):
        choose.one(EDITS)(choose, data, spare)
    if choose.chance(2, 3):
        _make_it_fit(data)
    if choose.chance(1, 6):
        _claim_one_more(choose, data, spare)
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all (container, key) pairs within JSON data."""
    for key in data if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list):
            yield from _places(data[key])


def _change_a_number(choose: Choices, data: Data, _: list[Data]) -> None:
    places = [
        (holder, key)
        for holder, key in _places(data["arguments"] if choose.chance(4, 5) else data)
        if isinstance(holder[key], int | float) and not isinstance(holder[key], bool)
    ]
    if not places:
        return
    holder, key = choose.one(places)
    if isinstance(holder[key], float):
        holder[key] *= choose.one(FACTORS)
    elif choose.chance(1, 6):
        holder[key] = choose.one(EXTREMES)
    else:
        holder[key] += choose.one(STEPS)


def _change_a_coefficient(choose: Choices, data: Data, spare: list[Data]) -> None:
    places = [
        (holder, key)
        for holder, key in _places(data["arguments"])
        if isinstance(holder, list) and isinstance(holder[key], str)
    ]
    if not places:
        _change_a_number(choose, data, spare)
        return
    holder, key = choose.one(places)
    holder[key] = choose.one(["1", "-1", "0", "2", "1/2", "-7/3", "1/0", "1e9", "9" * 400])


def _change_a_list(choose: Choices, data: Data, _: list[Data]) -> None:
    places = [(h, k) for h, k in _places(data) if isinstance(h[k], list) and h[k]]
    if not places:
        return
    holder, key = choose.one(places)
    items: list[Any] = holder[key]
    i, j = choose.integer(0, len(items) - 1), choose.integer(0, len(items) - 1)
    match choose.integer(0, 4):
        case 0:
            del items[i]
        case 1:
            items[i], items[j] = items[j], items[i]
        case 2:
            items.append(copy.deepcopy(items[i]))
        case 3:
            items[i] = copy.deepcopy(items[j])
        case _:
            items.clear()


def _double_an_argument(choose: Choices, data: Data, spare: list[Data]) -> None:
    arguments = data["arguments"]
    pool = arguments + spare
    if pool:
        arguments.insert(choose.integer(0, len(arguments)), copy.deepcopy(choose.one(pool)))


def _drop_an_argument(choose: Choices, data: Data, _: list[Data]) -> None:
    if data["arguments"]:
        del data["arguments"][choose.integer(0, len(data["arguments"]) - 1)]


def _replace_an_argument(choose: Choices, data: Data, spare: list[Data]) -> None:
    arguments = data["arguments"]
    if arguments and (pool := spare or arguments):
        arguments[choose.integer(0, len(arguments) - 1)] = copy.deepcopy(choose.one(pool))


def _exchange_what_it_is_about(choose: Choices, data: Data, _: list[Data]) -> None:
    if choose.chance(1, 3):
        data["side"] = {"lower": "upper"}.get(data.get("side", ""), "lower")
    else:
        data["quantity"] = {"rank": "effective_rank"}.get(data.get("quantity", ""), "rank")


def _replace_a_prime(choose: Choices, data: Data, spare: list[Data]) -> None:
    with_prime = [argument for argument in data["arguments"] if "prime" in argument]
    if with_prime:
        choose.one(with_prime)["prime"] = choose.one(MODULI)
    else:
        _change_a_number(choose, data, spare)


def _sides(argument: Data) -> list[Any]:
    """Indices of a view, by mode."""
    return argument["indices"] if "indices" in argument else [
        argument.get(name, []) for name in MODES_OF_3
    ]  # fmt: skip


def _replace_a_basis(choose: Choices, data: Data, spare: list[Data]) -> None:
    with_view = [argument for argument in data["arguments"] if "bases" in argument]
    if not with_view:
        _change_a_number(choose, data, spare)
        return
    argument = choose.one(with_view)
    sides = _sides(argument)
    if not sides or len(argument["bases"]) != len(sides):
        return
    mode = choose.integer(0, len(sides) - 1)
    n = len(sides[mode])
    size = choose.one([1, 2**20, -(2**20), 2**20 + 1, 2**62])
    huge = [[size * (i == j) for j in range(n)] for i in range(n)]
    ones = [[1] * n for _ in range(choose.integer(1, 3))]
    argument["bases"][mode] = choose.one([huge, ones, [], [[]], [[0] * n], [[1] * (n + 1)]])


def _change_the_modes(choose: Choices, data: Data, _spare: list[Data]) -> None:
    """Add a mode to a view, columns or terms, or remove one, or take modes together otherwise."""
    lists: list[list[Any]] = [data["groups"]] if data.get("groups") else []
    for argument in data["arguments"]:
        if "bases" in argument:
            sides, bases = _sides(argument), argument.pop("bases")
            for name in MODES_OF_3:
                argument.pop(name, None)
            argument |= {"indices": sides, "bases": bases}
            lists += [sides, bases]
        lists += [x for name in ("columns", "terms", "fibers") for x in argument.get(name, [])]
    lists = [x for x in lists if isinstance(x, list)]
    if not lists:
        data["groups"] = choose.one([[[0], [1, 2]], [[0, 1], [2]], [[0], [1], [2]], [[0, 2], [1]]])
        return
    for indices in lists if choose.chance(1, 2) else [choose.one(lists)]:
        if indices and choose.chance(1, 2):
            del indices[choose.integer(0, len(indices) - 1)]
        else:
            indices.append(copy.deepcopy(choose.one(indices)) if indices else 0)


def _rearrange_a_minor(choose: Choices, data: Data, spare: list[Data]) -> None:
    """Change the blocks of a minor, or add a row and a column."""
    minors = [argument for argument in data["arguments"] if "blocks" in argument]
    if not minors:
        _change_a_list(choose, data, spare)
        return
    minor = choose.one(minors)
    n = len(minor.get("rows", []))
    match choose.integer(0, 3):
        case 0:
            minor["blocks"], minor["eliminated"] = [], []
        case 1:
            minor["blocks"], minor["eliminated"] = [n], [choose.integer(0, n)]
        case 2:
            first = choose.integer(0, n)
            minor["blocks"], minor["eliminated"] = [first, n - first], [choose.integer(0, first), 0]
        case _:
            minor.get("rows", []).append(choose.integer(0, n + 1))
            minor.get("columns", []).append([choose.integer(0, n), choose.integer(0, n)])
            minor["blocks"], minor["eliminated"] = [n + 1], [0]


def _change_a_group(choose: Choices, data: Data, spare: list[Data]) -> None:
    """Begin a group of removals elsewhere, or let it have a slice and a place more."""
    grouped = [argument for argument in data["arguments"] if argument.get("groups")]
    if not grouped:
        _change_a_list(choose, data, spare)
        return
    argument = choose.one(grouped)
    group, columns = choose.one(argument["groups"]), argument.get("columns")
    if not (isinstance(group, list) and len(group) == 2 and columns):
        return
    if choose.chance(1, 2):
        group[0] += choose.one(STEPS)
    else:
        group[1] += 1
        columns.insert(choose.integer(0, len(columns)), copy.deepcopy(choose.one(columns)))


def _remove_a_key(choose: Choices, data: Data, _: list[Data]) -> None:
    holder = choose.one([*data["arguments"], data])
    keys = [key for key in holder if key != "arguments"]
    if keys:
        del holder[choose.one(keys)]


Edit: TypeAlias = Callable[[Choices, Data, list[Data]], None]
# edits that keep most of the proof come first, and more often
EDITS: tuple[Edit, ...] = (
    _change_a_number, _change_a_number, _change_a_list, _change_a_list,
    _double_an_argument, _drop_an_argument, _replace_an_argument, _change_a_coefficient,
    _exchange_what_it_is_about, _rearrange_a_minor, _change_a_group, _replace_a_prime,
    _replace_a_basis, _change_the_modes, _remove_a_key,
)  # fmt: skip


def _make_it_fit(data: Data) -> None:
    """Claim the value that the arguments prove, if they can be read."""
    try:
        arguments = Certificate.from_dict(data).arguments
    except CertificateError:
        return
    data["value"] = sum(argument.value for argument in arguments)


def _claim_one_more(choose: Choices, data: Data, _: list[Data]) -> None:
    """Claim a larger lower bound, or a smaller upper one, for an argument's own value too."""
    step = 1 if data.get("side") == "lower" else -1
    own = [argument for argument in data["arguments"] if isinstance(argument.get("value"), int)]
    if own and choose.chance(2, 3):
        choose.one(own)["value"] += step
    if isinstance(data.get("value"), int):
        data["value"] += step
