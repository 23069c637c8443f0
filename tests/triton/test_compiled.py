"""The kernel compiles ahead of time for three chips, and fits their registers. No GPU is needed."""

# triton isn't where the types are checked
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportFunctionMemberAccess=false, reportArgumentType=false

import subprocess
import tempfile
from itertools import product
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from capacity.layer.engines.triton import kernel, launches
from capacity.layer.engines.triton.packing import Shape

# A100, H100 and H200, B200
CHIPS = (80, 90, 100)
# of the paper's layers and of databases of up to 256 tokens
PAPER = [Shape(tokens, 8, 4, 8) for tokens in (64, 128, 256)]
# without held moments 229 were found. With them it is all that a thread of two programs can have,
# and that nothing is spilled is what shows that they fit
MOST_REGISTERS = {False: 240, True: 255}
INTEGERS = {
    "subjects", "predicates", "target_starts", "targets", "subject_starts", "subject_rows",
    "predicate_starts", "predicate_rows", "sizes", "epochs", "going", "known",
}  # fmt: skip
NUMBERS = {"enough", "beta2", "decay"}


def compiled(shape: Shape, chip: int, *, decoupled: bool, decays: bool) -> bytes:
    """Machine code of the kernel, as a launch would make it."""
    rows, tokens = launches.blocks(shape)
    constants = {
        "TOKENS": shape.tokens, "D": shape.d_model, "HEADS": shape.n_heads, "E": shape.d_head,
        "ROWS_A_BLOCK": rows, "TOKENS_A_BLOCK": tokens, "DECOUPLED": decoupled, "DECAYS": decays,
        "MOVES": True, "HELD": launches.holds_moments(shape),
    }  # fmt: skip
    names = kernel.train.arg_names
    kinds: dict[str, str] = {}
    for name in names:
        if name in constants:
            kinds[name] = "constexpr"
        elif name in NUMBERS:
            kinds[name] = "fp32"
        elif name in kernel.LENGTHS:
            kinds[name] = "i32"
        else:
            kinds[name] = "*i32" if name in INTEGERS else "*fp32"
    aligned = [i for i, name in enumerate(names) if kinds[name].startswith("*")]
    source = ASTSource(
        fn=kernel.train,
        signature=kinds,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in aligned},
    )
    target = GPUTarget("cuda", chip, 32)
    return triton.compile(source, target=target, options=dict(launches.OPTIONS)).asm["cubin"]


def resources(code: bytes) -> dict[str, int]:
    """What the chip needs for a program: REG, STACK, LOCAL and others."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        )
    (line,) = (line for line in done.stdout.splitlines() if "REG:" in line)
    return {name: int(n) for name, n in (part.split(":") for part in line.split())}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shape", PAPER, ids=lambda shape: f"{shape.tokens} tokens")
def test_the_paper_s_layers_fit_the_registers(shape: Shape, chip: int) -> None:
    # the moments that registers hold leave room for all else
    assert launches.holds_moments(shape) == (shape.tokens <= 128)
    for decoupled, decays in product([False, True], repeat=2):
        found = resources(compiled(shape, chip, decoupled=decoupled, decays=decays))
        assert found["REG"] <= MOST_REGISTERS[launches.holds_moments(shape)]
        # nothing is spilled to memory
        assert (found["STACK"], found["LOCAL"]) == (0, 0)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shape", [Shape(512, 16, 8, 16), Shape(512, 8, 16, 8)], ids=str)
def test_the_largest_layers_compile(shape: Shape, chip: int) -> None:
    # a program of 128 threads can't have more; what is beyond is spilled
    assert resources(compiled(shape, chip, decoupled=False, decays=False))["REG"] <= 255
