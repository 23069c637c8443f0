"""The scores of each family, and what each task asks of them, with dense tensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity.embedding.queries import Task


def scores(
    model: str, factors: Mapping[str, np.ndarray], D: np.ndarray, *, shared: bool
) -> np.ndarray:
    """The scores of a model, as its formula has them, in Python's integers.

    D has a place for all subjects, relations and objects that score.
    """
    f = {name: x.astype(object) for name, x in factors.items()}
    k = len(D)

    def subject(name: str) -> np.ndarray:
        return f[name][:k]

    def obj(name: str) -> np.ndarray:
        return f[name] if shared else f[name][k:]

    if model == "CP":
        return np.einsum("sr,qr,or->sqo", f["a"], f["b"], f["c"])
    if model == "DistMult":
        return np.einsum("sr,qr,or->sqo", subject("e"), f["w"], obj("e"))
    if model == "ComplEx":
        x, y, z, t = subject("x"), subject("y"), obj("x"), obj("y")
        terms = [(x, f["u"], z, 1), (x, f["v"], t, 1), (y, f["u"], t, 1), (y, f["v"], z, -1)]
        return np.sum(
            [sign * np.einsum("sr,qr,or->sqo", a, b, c) for a, b, c, sign in terms], axis=0
        )
    if model == "SimplE":
        there = np.einsum("sr,qr,or->sqo", subject("a"), f["v"], obj("b"))
        return there + np.einsum("or,qr,sr->sqo", obj("a"), f["w"], subject("b"))
    W = f["W"] if model == "RESCAL" else np.einsum("qk,kij->qij", f["w"], f["W"])
    return np.einsum("si,qij,oj->sqo", subject("e"), W, obj("e"))


def does(T: np.ndarray, D: np.ndarray, task: Task) -> bool:
    """Tell if scores do a task for the facts D, by its definition."""
    if task == "signs":
        return bool((np.where(D, T, -T) > 0).all())
    views = [D] if task == "ranking" else [D, D.transpose(2, 1, 0)]
    of = [T] if task == "ranking" else [T, T.transpose(2, 1, 0)]
    return all(
        min(row[true]) > max(row[~true])
        for facts, numbers in zip(views, of, strict=True)
        for true, row in zip(
            facts.reshape(-1, facts.shape[2]), numbers.reshape(-1, facts.shape[2]), strict=True
        )
        if true.any() and not true.all()
    )
