"""e^t and the logistic function, made of additions and products."""

import numpy as np
import pytest

from mpifed.data.cuda.arithmetic import LEAST, exponential, sigmoid


@pytest.mark.parametrize("number", LEAST)
def test_the_exponential_is_right_to_about_a_unit_of_the_last_place(number):
    T = np.concatenate([np.linspace(LEAST[number], 0, 1000), -np.logspace(-20, 0, 100)]).astype(number)
    found = np.array([exponential(t) for t in T])
    assert found.dtype == number
    expected = np.exp(T.astype(np.longdouble))
    assert np.abs(found - expected).max(initial=0, where=T > -1) < 1.5 * np.finfo(number).eps
    np.testing.assert_allclose(found, expected.astype(float), rtol=2 * np.finfo(number).eps)


@pytest.mark.parametrize("number", LEAST)
def test_the_exponential_has_an_end_below_and_keeps_nan(number):
    least = exponential(number(LEAST[number]))
    assert exponential(number(-np.inf)) == exponential(number(2 * LEAST[number])) == least > 0
    assert np.isnan(exponential(number(np.nan)))
    assert exponential(number(0)) == exponential(number(-0.0)) == 1


@pytest.mark.parametrize("number", LEAST)
def test_the_logistic_function_is_right_everywhere(number):
    Z = np.linspace(-60, 60, 500).astype(number)
    found = np.array([sigmoid(z, number(1)) for z in Z])
    assert found.dtype == number
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-Z.astype(float))), rtol=4 * np.finfo(number).eps)
    assert sigmoid(number(np.inf), number(1)) == 1
    assert sigmoid(number(-np.inf), number(1)) < 1e-37
    assert np.isnan(sigmoid(number(np.nan), number(1)))
