"""Pieces of a file for Lean 4: statements with their proofs, to be filled with numbers.

Numbers are integers and rational ones, about which the kernel of Lean decides. What it decides is
then cast to the field.
"""

from __future__ import annotations

HEAD = """/-
  {what}

  Written by capacity; not run in Lean there. The theorems are those of `BilinearComplexity`,
  https://github.com/thatnealpatel/proofs. In a clone of it:
  lake exe cache get
  lake build BilinearComplexity.Flattening BilinearComplexity.KoszulFlattening
  lake env lean FILE
-/
import Mathlib
import BilinearComplexity.Flattening
import BilinearComplexity.KoszulFlattening

set_option autoImplicit false
set_option maxRecDepth 100000

namespace «{name}»

open BilinearComplexity

def entries : Tensor Int {shape} :=
  {entries}

/-- The tensor. -/
noncomputable def tensor : Tensor {k} {shape} := fun i j l => (entries i j l : {k})
"""
UPPER = """
def A : Fin {r} → Fin {a} → Rat :=
  {A}

def B : Fin {r} → Fin {b} → Rat :=
  {B}

def C : Fin {r} → Fin {c} → Rat :=
  {C}

theorem terms : ∀ i j l, (entries i j l : Rat) = ∑ s, A s i * B s j * C s l := by
  decide +kernel

/-- The tensor is a sum of {r} simple tensors. -/
theorem rank_le : RankLE tensor {r} := by
  refine ⟨fun s i => (A s i : {k}), fun s j => (B s j : {k}), fun s l => (C s l : {k}), ?_⟩
  funext i j l
  simpa [tensor] using congrArg (Rat.cast : Rat → {k}) (terms i j l)
"""
# the modes in another order
PERMUTED = """
theorem {name} {{a b c r : Nat}} {{T : Tensor {k} a b c}} (h : RankLE T r) :
    RankLE (fun {order} => T i j l) r := by
  obtain ⟨u, v, w, rfl⟩ := h
  refine ⟨{factors}, ?_⟩
  funext {order}
  exact Finset.sum_congr rfl fun s _ => by ring
"""
MAPPED = """
/-- The first mode is mapped by a matrix, and becomes the last one. -/
theorem mapped {{a a' b c r : Nat}} {{T : Tensor {k} a b c}} (P : Fin a' → Fin a → {k})
    (h : RankLE T r) : RankLE (fun j l i => ∑ x, P i x * T x j l) r := by
  obtain ⟨u, v, w, rfl⟩ := h
  refine ⟨v, w, fun s i => ∑ x, P i x * u s x, ?_⟩
  funext j l i
  simp only [Finset.mul_sum]
  rw [Finset.sum_comm]
  refine Finset.sum_congr rfl fun s _ => Finset.sum_congr rfl fun x _ => ?_
  ring
"""
MATRIX = """
def {letter} : Fin {rows} → Fin {columns} → Int :=
  {matrix}
"""
PART = """
def partEntries : Tensor Int {shape} :=
  {entries}

/-- {what} -/
noncomputable def part : Tensor {k} {shape} := fun i j l => (partEntries i j l : {k})

theorem part_entries : ∀ i j l, {entry} = partEntries i j l := by
  decide +kernel

theorem rank_part_le {{r : Nat}} (h : RankLE tensor r) : RankLE part r := by
  refine Eq.mp (congrArg (fun T : Tensor {k} {shape} => RankLE T r) ?_)
    ({moved})
  funext i j l
  simpa [tensor, part] using congrArg (Int.cast : Int → {k}) (part_entries i j l)
"""
MINOR = """
def rows : Fin {m} → {row_type} :=
  {rows}

def columns : Fin {m} → {column_type} :=
  {columns}

/-- The minor of the {flattening}. -/
def minor : Matrix (Fin {m}) (Fin {m}) Rat :=
  {minor}

def inverse : Matrix (Fin {m}) (Fin {m}) Rat :=
  {inverse}

theorem minor_entries : ∀ i j, {entry} = minor i j := by
  decide +kernel

theorem products : ∀ i j, ∑ x, minor i x * inverse x j = if i = j then 1 else 0 := by
  decide +kernel

theorem minor_mul_inverse : minor * inverse = 1 := by
  ext i j
  rw [Matrix.mul_apply, Matrix.one_apply]
  exact products i j

theorem minor_det_ne_zero : (({linear}).submatrix rows columns).det ≠ 0 := by
  have same : ({linear}).submatrix rows columns = minor.map (Rat.castHom {k}) := by
    ext i j
    rw [Matrix.map_apply, ← minor_entries i j]
    {unfold}
  rw [same, ← RingHom.mapMatrix_apply, ← RingHom.map_det]
  exact (map_ne_zero _).mpr (Matrix.det_ne_zero_of_right_inverse minor_mul_inverse)

/-- The tensor is no sum of {r} simple tensors. -/
theorem not_rank_le : ¬ RankLE tensor {r} := by
  intro h
  exact (show ¬ RankLE {of} {r} from
    {theorem} minor_det_ne_zero (by decide)) {given}
"""
EQUAL = """
theorem rank_eq : BilinearComplexity.rank tensor = {r} := by
  refine le_antisymm (rank_le_of_rankLE rank_le) ?_
  by_contra fewer
  exact not_rank_le (rankLE_of_rank_le (by omega))
"""
