"""Names as in print, and as the user says."""

from __future__ import annotations

import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, plot
from mpifed.report.names import AS_PRINTED, letter, method, setting
from tests.helpers.figures import axes_of, grid, legend
from tests.helpers.recorded_runs import recorded


@pytest.mark.parametrize(
    ("name", "printed", "latex"),
    [
        ("k0", "k₀", "$k_{0}$"),
        ("rho", "ρ", r"$\rho$"),
        ("lam", "λ", r"$\lambda$"),
        ("eps0", "ε₀", r"$\epsilon_{0}$"),
        ("mu0", "μ₀", r"$\mu_{0}$"),
        ("H", "H", "$H$"),
        ("batch_size", "batch size", "batch size"),
        ("clients", "clients", "clients"),
        ("data.alpha", "data.alpha", "data.alpha"),
    ],
)
def test_settings_are_the_letters_of_the_papers(name, printed, latex):
    assert setting(name) == printed
    assert AS_PRINTED.latex(f"algorithm.{name}", name) == latex


def test_methods_are_spelt_as_in_their_papers():
    assert [method(name) for name in ("fedgia", "scaffold", "pfedme", "fedadmm-deep")] == [
        "FedGiA",
        "SCAFFOLD",
        "pFedMe",
        "FedADMM (deep)",
    ]
    assert method("descent.py:GradientDescent") == "GradientDescent"
    assert letter("server_lr") is None


@pytest.mark.parametrize(
    ("rename", "labels"),
    [
        (["k0=local steps"], ["local steps = 5", "local steps = 10"]),
        (["k₀=local steps"], ["local steps = 5", "local steps = 10"]),
        (["algorithm.k0=K"], ["K = 5", "K = 10"]),
        (["k0=5=few", "k₀ = 10=many (t = 3)"], ["few", "many (t = 3)"]),
    ],
)
def test_a_curve_is_called_what_the_user_says(rename, labels):
    assert legend(plot.lines(grid(2.0, 1.0), rename=rename)) == labels


def test_methods_columns_and_whole_labels_can_be_renamed():
    runs = [recorded(), recorded(name="fedavg", k0=7)]
    figure = plot.lines(runs, x="bytes", rename=["fedgia=ours", "objective=f", "bytes=traffic", "fedavg=the others"])
    assert legend(figure) == ["the others", "ours"]
    (axis,) = axes_of(figure)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("traffic (kB)", "f")
    (axis,) = axes_of(boxplot.box(runs, "algorithm", rename=["fedgia=ours", "algorithm=method"]))
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["FedAvg", "ours"]
    assert axis.get_xlabel() == "method"


@pytest.mark.parametrize(
    ("rename", "told"),
    [
        ("fedgia", "must be OLD=NEW"),
        ("=ours", "must be OLD=NEW"),
        ("fedavg=ours", "unknown name for --rename 'fedavg'"),
    ],
)
def test_a_name_that_is_not_there_is_refused(rename, told):
    with pytest.raises(UserError, match=told):
        plot.lines(grid(2.0, 1.0), rename=[rename])
