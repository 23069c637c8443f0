"""Mathematics as MathML, which browsers show without a script and without a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Say how formulas are written."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None),
                               block_renderers=(block, None))  # fmt: skip
    app.config.html_math_renderer_name = "mathml"
    return {"parallel_read_safe": True}
