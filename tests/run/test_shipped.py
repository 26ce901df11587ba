"""What the configs that come with the package say of themselves."""

from __future__ import annotations

import pytest

from smembench.run.shipped import about, shipped


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_config_is_described_by_a_sentence(name: str) -> None:
    sentence = about(shipped()[name])
    assert sentence[0].isupper()
    assert "schema" not in sentence
