"""Simulations find what goes wrong without a rule of commits, each from a seed that is kept."""

from __future__ import annotations

import effort
import pytest
from mutations import MUTATIONS
from simulated import SIMULATED, Simulated, findings

from icebergds.testing.simulation.findings import FindingKind


def test_only_rules_of_the_model_are_simulated() -> None:
    found = [simulated.rule for simulated in SIMULATED]
    assert found == [mutation.rule for mutation in MUTATIONS if mutation.rule in found]


@pytest.mark.parametrize("simulated", effort.some(SIMULATED, 2), ids=lambda each: each.rule)
def test_a_rule_that_is_switched_off_is_found(simulated: Simulated) -> None:
    assert set(findings(simulated, is_off=True)) - {FindingKind.UNEXPECTED_ERROR}
    if effort.IS_NIGHTLY:
        assert findings(simulated, is_off=False) == []
