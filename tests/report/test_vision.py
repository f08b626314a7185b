"""How far apart colours look, also to readers without one kind of cone."""

import pytest

from mpifed.report import palette as vision


def test_black_and_white_are_a_hundred_apart_for_everybody_and_red_and_green_are_alike_for_some():
    assert vision.apart("#000000", "#FFFFFF") == pytest.approx(100, abs=0.01)
    assert vision.apart("#5C5000", "#5C5000") == 0
    usual, *without = vision.seen("#C00000") - vision.seen("#5C5000")
    assert (usual**2).sum() ** 0.5 > 40
    assert min((row**2).sum() ** 0.5 for row in without) == vision.apart("#C00000", "#5C5000") < 12
