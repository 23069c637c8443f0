"""Pieces of a file for Lean 4: statements with their proofs, to be filled with numbers."""

from __future__ import annotations

HEAD = """/-
  {what}

  Written by capacity; not run in Lean there. The theorems are those of `BilinearComplexity`,
  https://github.com/thatnealpatel/proofs.
-/
import BilinearComplexity.Flattening
import BilinearComplexity.KoszulFlattening

set_option autoImplicit false
set_option maxHeartbeats 4000000

namespace {name}

open BilinearComplexity

/-- The tensor. -/
noncomputable def tensor : Tensor {k} {shape} :=
  {tensor}
"""
UPPER = """
/-- The tensor is a sum of {r} simple tensors. -/
theorem rank_le : RankLE tensor {r} := by
  refine ⟨
    {A},
    {B},
    {C}, ?_⟩
  funext i j l
  fin_cases i <;> fin_cases j <;> fin_cases l <;>
    norm_num [tensor, Fin.sum_univ_succ]
"""
TURNED = """
theorem turned {{a b c r : Nat}} {{T : Tensor {k} a b c}} (h : RankLE T r) :
    RankLE (fun j l i => T i j l) r := by
  obtain ⟨u, v, w, rfl⟩ := h
  refine ⟨v, w, u, ?_⟩
  funext j l i
  exact Finset.sum_congr rfl fun s _ => by ring
"""
SWAPPED = """
theorem swapped {{a b c r : Nat}} {{T : Tensor {k} a b c}} (h : RankLE T r) :
    RankLE (fun i l j => T i j l) r := by
  obtain ⟨u, v, w, rfl⟩ := h
  refine ⟨u, w, v, ?_⟩
  funext i l j
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
PART = """
/-- {what} -/
noncomputable def part : Tensor {k} {shape} :=
  {part}

theorem rank_part_le {{r : Nat}} (h : RankLE tensor r) : RankLE part r := by
  refine Eq.mp (congrArg (RankLE · r) ?_) ({moved})
  funext i j l
  fin_cases i <;> fin_cases j <;> fin_cases l <;>
    norm_num [{names}, Fin.sum_univ_succ]
"""
MINOR = """
def rows : Fin {m} → {row_type} :=
  {rows}

def columns : Fin {m} → {column_type} :=
  {columns}

/-- The minor of the {flattening}. -/
noncomputable def minor : Matrix (Fin {m}) (Fin {m}) {k} :=
  {minor}

noncomputable def inverse : Matrix (Fin {m}) (Fin {m}) {k} :=
  {inverse}

theorem minor_mul_inverse : minor * inverse = 1 := by
  ext i j
  simp only [Matrix.mul_apply]
  fin_cases i <;> fin_cases j <;>
    norm_num [minor, inverse, Fin.sum_univ_succ]

theorem minor_det_ne_zero : (({linear}).submatrix rows columns).det ≠ 0 := by
  have same : ({linear}).submatrix rows columns = minor := by
    ext i j
    fin_cases i <;> fin_cases j <;>
      norm_num [rows, columns, {of}, minor, {definition}]
  rw [same]
  exact Matrix.det_ne_zero_of_right_inverse minor_mul_inverse

/-- The tensor is no sum of {r} simple tensors. -/
theorem not_rank_le : ¬ RankLE tensor {r} := by
  intro h
  exact {theorem} minor_det_ne_zero (by decide) {given}
"""
EQUAL = """
theorem rank_eq : rank tensor = {r} := by
  refine le_antisymm (rank_le_of_rankLE rank_le) ?_
  by_contra fewer
  exact not_rank_le (rankLE_of_rank_le (by omega))
"""
