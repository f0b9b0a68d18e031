from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from glyphline.training.config import LoopConfig
from glyphline.training.loop.schedules import learning_rate, learning_rate_factor, sampling_share


def test_the_learning_rate_rises_stays_and_falls() -> None:
    def factor(progress: float) -> float:
        return learning_rate_factor(progress, 0.1, 0.4)

    assert factor(0) == pytest.approx(0.01)
    assert factor(0.05) == pytest.approx(0.505)
    assert factor(0.1) == factor(0.59) == 1
    assert factor(0.8) == pytest.approx(0.505)
    assert factor(1) == factor(1.1) == pytest.approx(0.01)


def test_a_cosine_falls_from_the_end_of_the_warm_up() -> None:
    def factor(progress: float) -> float:
        return learning_rate_factor(progress, 0.2, 0.9, "cosine")

    assert factor(0.1) == pytest.approx(0.505)
    assert factor(0.2) == 1
    assert factor(0.6) == pytest.approx(0.505)
    assert factor(1) == pytest.approx(0.01)


def test_one_cycle_is_that_of_torch() -> None:
    steps, warm_up = 2000, 0.3
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 1.0, total_steps=steps, pct_start=warm_up, cycle_momentum=False
    )
    for step in range(steps):
        ours = learning_rate_factor(step / (steps - 1), warm_up, 0.4, "one-cycle")
        assert ours == pytest.approx(optimiser.param_groups[0]["lr"], abs=2e-3)
        optimiser.step()
        if step + 1 < steps:
            scheduler.step()


@given(
    st.floats(0, 1.2), st.floats(0, 0.9), st.floats(0, 1), st.sampled_from(["plateau-cosine", "cosine", "one-cycle"])
)
def test_no_rate_is_above_the_peak_or_nothing(progress: float, warm_up: float, decay: float, schedule: str) -> None:
    loop = LoopConfig.model_validate({"learning_rate": 2.0, "warm_up": warm_up, "decay": decay, "schedule": schedule})
    assert 0 < learning_rate(progress, loop) <= 2.0 + 1e-9


def test_scheduled_sampling_rises_in_a_straight_line() -> None:
    loop = LoopConfig(sampling=0.4, sampling_ramp=(0.2, 0.6))
    shares = [sampling_share(progress, loop) for progress in (0, 0.2, 0.3, 0.4, 0.6, 1.0)]
    assert shares == pytest.approx([0, 0, 0.1, 0.2, 0.4, 0.4])
    assert sampling_share(0, LoopConfig(sampling=0.4, sampling_ramp=(0, 0))) == 0.4
    assert sampling_share(0.5, LoopConfig()) == 0
    with pytest.raises(ValidationError, match="sampling_ramp"):
        LoopConfig(sampling_ramp=(0.6, 0.2))
