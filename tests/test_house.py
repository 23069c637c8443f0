"""The house is in order: modules and folders that a reader can take in (CONTRIBUTING, "Code")."""

from pathlib import Path

import pytest

from tools import house


@pytest.mark.slow
def test_no_module_has_more_code_than_one_may() -> None:
    assert house.too_long(house.modules()) == {}


def test_no_folder_has_more_than_a_dozen_files() -> None:
    assert house.crowded(house.modules()) == {}


def test_code_is_counted_and_not_prose(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    # four lines of code: the import, the definition, and two of its body
    path.write_text('"""One.\n\nTwo.\n"""\n\nimport os\n\n\n# three\ndef f():\n    """Four."""\n'
                    "    return os.path.join(\n        'a')\n")  # fmt: skip
    module = house.Module(path)
    assert (module.code, len(module.docstrings)) == (4, 5)
