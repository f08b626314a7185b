"""Names as in print, and as the user says."""

from mpifed.report import boxplot, plot
from mpifed.report.groups import label, study
from mpifed.report.names import AS_PRINTED, letter, method, setting
from tests.helpers.figures import axes_of, grid, legend
from tests.helpers.recorded_runs import recorded


def test_settings_are_the_letters_of_the_papers_and_methods_are_spelt_as_there():
    letters = {"k0": "k₀ $k_{0}$", "rho": r"ρ $\rho$", "lam": r"λ $\lambda$", "eps0": r"ε₀ $\epsilon_{0}$"}
    letters |= {"mu0": r"μ₀ $\mu_{0}$", "H": "H $H$", "batch_size": "batch size batch size"}
    letters |= {name: f"{name} {name}" for name in ("clients", "data.alpha")}
    assert {n: f"{setting(n)} {AS_PRINTED.latex(f'algorithm.{n}', n)}" for n in letters} == letters
    assert letter("server_lr") is None
    methods = {"fedgia": "FedGiA", "scaffold": "SCAFFOLD", "pfedme": "pFedMe", "fedadmm-deep": "FedADMM (deep)"}
    methods["descent.py:GradientDescent"] = "GradientDescent"
    assert {name: method(name) for name in methods} == methods


def test_a_curve_is_called_what_the_user_says():
    for rename, labels in (
        (["k0=local steps"], ["local steps = 5", "local steps = 10"]),
        (["k₀=local steps"], ["local steps = 5", "local steps = 10"]),
        (["algorithm.k0=K"], ["K = 5", "K = 10"]),
        (["k0=5=few", "k₀ = 10=many (t = 3)"], ["few", "many (t = 3)"]),
    ):
        made = study(grid(2.0, 1.0), rename=rename)
        assert [label(group, made) for group in made.groups] == labels
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
