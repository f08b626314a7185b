"""A plain run enters few functions, and none of features that it does not have: bounds that only go down."""

import re

import pytest

from tests.helpers import meters

# functions, files, lines of these functions, functions of features that are off; to read the machine takes more on some
BOUNDS = {"fedgia": (470, 66, 3450, 0), "fedavg": (511, 68, 3745, 0), "mlp": (510, 68, 3759, 0)}


@pytest.mark.parametrize("name", meters.RUNS)
def test_a_plain_run_enters_no_more_functions_files_and_lines_than_its_bound(name):
    widths = meters.run_widths(name)
    wider = {
        meter: (width, bound)
        for (meter, width), bound in zip(widths.items(), BOUNDS[name], strict=True)
        if width > bound
    }
    assert not wider, f"(now, bound); python -m tests.helpers.meters {name} lists the functions"


def test_the_meter_finds_functions_of_features_that_a_run_has():
    """A run with masks enters their functions: were the pattern of files wrong, plain runs would seem narrow."""
    masked = {**meters.RUNS["fedavg"], "masks": {}}
    found = {meters.file_of(code) for code in meters.entered(masked)}
    more = found - {meters.file_of(code) for code in meters.entered(meters.RUNS["fedavg"])}
    assert more
    assert [name for name in more if not meters.OFF.match(name)] == []
    files = [str(path.relative_to(meters.ROOT)) for path in meters.SOURCES]
    assert [name for name in meters.FILES_OFF.split() if not any(re.match(name, file) for file in files)] == []
