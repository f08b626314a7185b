"""Tables and components: keys are checked, and mistakes are named with what would be right."""

from typing import Annotated, Literal

import msgspec
import pytest

from mpifed.algorithms.parts.step_sizes import Constant, Step
from mpifed.core.component import Table
from mpifed.core.errors import UserError


class Oven(Table):
    """A table of every kind of value."""

    degrees: Annotated[int, msgspec.Meta(ge=0, le=300)]
    mode: Literal["fan", "grill"] = "fan"
    minutes: float | None = None
    step: Step = Constant(a=1.0)

    def __post_init__(self):
        if self.mode == "grill" and self.degrees < 200:
            raise ValueError("a grill takes at least 200 degrees")


def test_values_become_fields_and_the_rest_has_defaults():
    oven = Oven.build({"degrees": 200, "minutes": 3, "step": {"name": "constant", "a": 2.0}}, "oven")
    assert (oven.degrees, oven.mode, oven.minutes, oven.step) == (200, "fan", 3.0, Constant(a=2.0))
    assert type(oven.minutes) is float


HOT = "h" * 500


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "oven = 3 is wrong: oven is a table, so write oven.KEY = VALUE"),
        ({}, "oven.degrees is missing: it has no default"),
        ({"degree": 3}, "unknown key 'oven.degree'; did you mean 'degrees'?"),
        ({"degrees": 301}, "oven.degrees = 301 is wrong: it must be a whole number <= 300"),
        ({"degrees": "hot"}, 'oven.degrees = "hot" is wrong: it must be a whole number, not a text'),
        ({"degrees": 3, "minutes": "soon"}, 'oven.minutes = "soon" is wrong: it must be a number, not a text'),
        ({"degrees": HOT}, f'oven.degrees = "{HOT[:99]}…{HOT[:49]}" is wrong: it must be a whole number, not a text'),
        ({"degrees": 3, "mode": "steam"}, 'oven.mode = "steam" is wrong: it must be "fan" or "grill"'),
        ({"degrees": 3, "minutes": float("nan")}, "oven.minutes = nan is wrong: it must be a finite number"),
        ({"degrees": 3, "mode": "grill"}, "oven: a grill takes at least 200 degrees"),
        ({"degrees": 3, "step": "constnt"}, "unknown step 'constnt'; did you mean 'constant'?"),
        ({"degrees": 3, "step": {"name": "constant", "b": 1}}, "unknown key 'oven.step.b'; the choices are a"),
    ],
)
def test_a_mistake_is_named(table, message):
    with pytest.raises(UserError) as caught:
        Oven.build(table, "oven")
    assert str(caught.value) == message
