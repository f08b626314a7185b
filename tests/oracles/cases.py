"""The cases: every method on uneven clients with partial participation, without random draws in the local work."""

from typing import Any, NamedTuple

LEAST_SQUARES = {"name": "least-squares"}
LOGISTIC = {"name": "logistic", "mu": 0.05}
WHOLE = {"name": "logistic", "mu": 0.1, "regulariser": "whole"}
NONCONVEX = {"name": "nonconvex-logistic", "mu": 0.5}
SOFTMAX = {"name": "softmax", "lam": 0.02}
UNBIASED = {"name": "softmax", "lam": 0.1, "bias": False}
SVM = {"name": "svm", "lam": 0.05}

FULL = {"batch_size": 0}
NOISELESS = {"noise": "none"}
SMALL = {**WHOLE, "mu": 1e-3}  # so that steps are long
FLAT = {**UNBIASED, "lam": 0.01}  # so that learned Hessians are not always positive definite
THEOREM = {**WHOLE, "mu": 0.27}  # the κ of Theorem 5.2 asks for 4 gradient steps, without its factor 32 for 5
ONE = {"lam": 0.05, "eta": 0.1, "step_scale": "one"}
GRADIENT = {"name": "gd", "delta": 0.01}
EXACT = {"name": "newton", "tol": 1e-13}


class Case(NamedTuple):
    """``options`` are given to the oracle and to mpifed, ``fixed`` to mpifed only.

    ``counts``: clients that train in each round. Where a ``batch_size`` of 100 is not fixed to 0 (full) an epoch is one
    full-gradient step all the same, since no client has 100 samples.
    """

    method: str
    problem: dict[str, Any]
    options: dict[str, Any]
    fixed: dict[str, Any] | None = None
    counts: tuple[int, ...] = (3, 1, 5, 2, 4, 3)
    graph: dict[str, Any] | None = None

    def __str__(self):
        words = [f"{key}={value['name'] if isinstance(value, dict) else value}" for key, value in self.options.items()]
        return "-".join([self.method, self.problem["name"], *words, *([self.graph["name"]] if self.graph else [])])


def step(name, a):
    return {"name": name, "a": a}


def server(name, **options):
    return {"name": name, **options}


def adaptive(name):
    return server(name, lr=0.07, beta1=0.8, beta2=0.7, tau=0.05)


SAME = (3,) * 6  # where a constant of the method depends on the number of clients that take part
RING = {"name": "ring"}
GRID = {"name": "torus", "rows": 2}
LOSSY = {"name": "exponential", "loss": 0.3}
RANDOM = {"name": "erdos-renyi", "p": 0.4, "redraw": True, "loss": 0.2}
STAR = {"name": "star"}
PAIRS = (3, 2, 5, 2, 4, 3)  # dual coordinate descent needs two
FEW = (3, 1, 5, 2)  # Newton's method is at the minimiser soon, where its line search is about rounding

CASES = [
    Case("fedavg", LEAST_SQUARES, {"k0": 3, "step": step("log2", 0.05)}),
    Case("fedavg", LOGISTIC, {"k0": 2, "step": step("log2", 2.0), "scale": "1/m", "aggregate": "all"}),
    Case("fedavg", SOFTMAX, {"epochs": 4, "step": step("constant", 0.2)}, FULL),
    Case("fedavg", SVM, {"k0": 4, "step": step("sqrt-samples", 0.05)}),
    Case("fedprox", LEAST_SQUARES, {"k0": 3, "mu": 0.3, "step": step("log2", 0.05)}),
    Case("fedprox", LOGISTIC, {"k0": 2, "mu": 0.2, "inner": 2, "aggregate": "all", "step": step("constant", 0.5)}),
    Case("fedprox", SOFTMAX, {"epochs": 3, "mu": 0.5, "inner": 3, "scale": "1/m", "step": step("log2", 1.0)}, FULL),
    Case("fedprox", LOGISTIC, {"k0": 3, "mu": 0.5, "inner": 1, "begin": "own", "step": step("log2", 0.3)}),
    Case("fedpd", LEAST_SQUARES, {"k0": 3, "eta": 0.8, "step": step("log2", 0.1)}),
    Case("fedpd", NONCONVEX, {"k0": 2, "eta": 2.0, "inner": 3, "scale": "1/m", "step": step("constant", 0.4)}),
    Case("scaffold", LOGISTIC, {"k0": 4, "server_lr": 0.8, "step": step("log2", 0.8)}),
    Case("scaffold", LEAST_SQUARES, {"epochs": 3, "step": step("constant", 0.05)}, FULL),
    Case("fedvarp", LEAST_SQUARES, {"k0": 3, "step": step("log2", 0.05)}),
    Case("fedvarp", LOGISTIC, {"k0": 2, "server_lr": 0.7, "scale": "1/m", "step": step("constant", 0.5)}),
    Case("mifa", LEAST_SQUARES, {"k0": 3, "step": step("log2", 0.05)}),
    Case("mifa", SOFTMAX, {"epochs": 4, "server_lr": 0.7, "step": step("constant", 0.2)}, FULL),
    Case("fedopt", LEAST_SQUARES, {"step": step("log2", 0.05), "server": server("momentum", lr=0.9, beta=0.6)}),
    Case("fedopt", LOGISTIC, {"k0": 2, "scale": "1/m", "step": step("log2", 2.0), "server": adaptive("adagrad")}),
    Case("fedopt", SOFTMAX, {"epochs": 4, "step": step("constant", 0.2), "server": adaptive("adam")}, FULL),
    Case("fedopt", SVM, {"k0": 4, "step": step("sqrt-samples", 0.05), "server": adaptive("yogi")}),
    Case("fedopt", NONCONVEX, {"k0": 4, "step": step("constant", 0.5), "server": server("fedexp", eps=0.02)}),
    Case("fedadmm", LEAST_SQUARES, {"k0": 4, "r0": 0.3, "nu": 0.6, "eps0": 0.1, "inner_max": 4}),
    Case("fedadmm", LOGISTIC, {"k0": 3, "r0": 0.1, "nu": 0.5, "eps0": 1e-3, "inner_max": 3}),
    Case("fedadmm", WHOLE, {"r0": 0.2}),
    Case("fedadmm", LEAST_SQUARES, {"k0": 2, "r0": 1.5, "start": "-gradient"}),
    Case("fedadmm-deep", SOFTMAX, {"rho": 0.05, "lr": 0.1, "epochs": 4}, FULL),
    Case("fedadmm-deep", SVM, {"rho": 0.2, "lr": 0.05, "epochs": 2, "weight_decay": 0.1}),
    Case("fedgia", LEAST_SQUARES, {"k0": 4}),
    Case("fedgia", LEAST_SQUARES, {"k0": 2, "H": "gram", "t": 0.4}),
    Case("fedgia", LOGISTIC, {"k0": 3, "H": "gram"}),
    Case("fedgia", NONCONVEX, {"k0": 5, "t": 0.6}),
    Case("fedgia", WHOLE, {"k0": 1, "H": "zero", "t": 3.0}),
    Case("fedgia", WHOLE, {"k0": 2, "t": 0.01, "adaptive": True}),
    Case("fedgia", LEAST_SQUARES, {"k0": 1, "H": "gram", "t": 0.02, "adaptive": True}),
    Case("fedgia", LOGISTIC, {"k0": 3, "t": 7.0, "adaptive": True}),
    Case("fedgia", LOGISTIC, {"k0": 3, "t": 0.5, "start": "-gradient"}),
    Case("fedepm", LOGISTIC, {"k0": 4, "mu0": 30.0}, NOISELESS, SAME),
    Case("fedepm", LOGISTIC, {"k0": 3, "lam": 0.02, "eta": 0.3, "mu0": 2.0, "alpha": 1.05, "c": 0.7}, NOISELESS),
    Case("fedepm", WHOLE, {"k0": 5, **ONE, "mu0": 0.5}, NOISELESS),
    Case("sfedavg", LOGISTIC, {"k0": 3, "step": step("sqrt-samples", 0.1)}, NOISELESS),
    Case("sfedavg", LEAST_SQUARES, {"k0": 2, "step": step("constant", 0.05), "average": "new"}, NOISELESS),
    Case("sfedprox", LOGISTIC, {"k0": 3, "step": step("sqrt-samples", 0.05), "mu": 0.5}, NOISELESS),
    Case("sfedprox", WHOLE, {"k0": 2, "inner": 4, "mu": 0.3, "step": step("log2", 0.5), "average": "new"}, NOISELESS),
    Case("feddcd", UNBIASED, {"eta": 0.9, "solver": EXACT, "dual": True}, None, PAIRS),
    Case("feddcd", {"name": "logistic", "mu": 1.5}, {"solver": EXACT}, None, PAIRS),
    Case("feddcd", UNBIASED, {"eta": 0.25, "solver": {"name": "gd", "steps": 7}}, None, PAIRS),
    Case("feddcd", THEOREM, {"eta": 0.25, "solver": {"name": "gd", "delta": "theorem"}}, None, SAME),
    Case("feddcd", LOGISTIC, {"scaling": "own", "eta": step("log2", 0.9), "solver": EXACT}, None, PAIRS),
    Case("accfeddcd", UNBIASED, {"solver": EXACT, "dual": True}, None, SAME),
    Case("accfeddcd", LOGISTIC, {"scaling": "own", "eta": 0.8, "kappa": 0.3, "solver": EXACT}, None, SAME),
    Case("accfeddcd", WHOLE, {"eta": 0.7, "r": 0.4, "kappa": 0.03, "solver": GRADIENT}, None, SAME),
    Case("flame", SOFTMAX, {"rho": 0.03, "lam": 1.5, "lr": 0.1, "epochs": 4, "weight_decay": 0.1}, FULL),
    Case("flame", SOFTMAX, {"rho": 0.1, "lam": 0.8, "lr": 0.2, "epochs": 3, "center": "local"}, FULL),
    Case("flame", SVM, {"epochs": 2}),
    Case("flame-dp", SOFTMAX, {"clip": 0.3, "noise_multiplier": 0, "rho": 0.05, "lr": 0.1, "epochs": 4}, FULL),
    Case("flame-dp", LEAST_SQUARES, {"clip": 0.02, "noise_multiplier": 0, "rho": 1.0, "epochs": 3}, FULL),
    Case("pfedme", SOFTMAX, {"lam": 1.5, "eta": 0.3, "lr": 0.1, "epochs": 4}, FULL),
    Case("pfedme", SOFTMAX, {"lam": 1.5, "eta": 0.3, "lr": 0.1, "epochs": 4, "begin": "server"}, FULL),
    Case("ditto", SOFTMAX, {"k0": 3, "lam": 1.5, "lr": 0.1, "inner": 4, "step": step("log2", 0.8)}),
    Case("ditto", LEAST_SQUARES, {"k0": 2, "lam": 0.3, "aggregate": "all", "scale": "1/m", "step": step("log2", 0.4)}),
    Case("fedrep", SOFTMAX, {"k0": 3, "head_steps": 2, "step": step("log2", 0.8)}),
    Case("fedrep", LOGISTIC, {"epochs": 3, "scale": "1/m", "step": step("constant", 0.9)}, FULL),
    Case("apfl", SOFTMAX, {"k0": 4, "alpha": 0.7, "step": step("log2", 0.8)}),
    Case("apfl", LOGISTIC, {"epochs": 3, "alpha": 0.3, "scale": "1/m", "step": step("constant", 0.9)}, FULL),
    Case("pfedme", LOGISTIC, {"lam": 4.0, "lr": 0.05, "epochs": 2, "weight_decay": 0.2}),
    Case("gd", LEAST_SQUARES, {}),
    Case("gd", SVM, {"gamma": 0.3}),
    Case("local-gd", LOGISTIC, {"k0": 4}),
    Case("local-gd", SOFTMAX, {"k0": 3, "gamma": 0.4}),
    Case("fednova", LOGISTIC, {"k0": 4, "step": step("log2", 0.8)}),
    Case("fednova", LEAST_SQUARES, {"k0": 3, "step": step("sqrt-samples", 0.02)}),
    Case("fednova", SOFTMAX, {"k0": 5, "step": step("log2", 0.3), "optimizer": {"name": "momentum", "beta": 0.7}}),
    Case("proxskip", WHOLE, {}),
    Case("proxskip", LEAST_SQUARES, {"p": 0.4, "gamma": 0.06}),
    Case("proxskip", LOGISTIC, {"p": 0.3, "gamma": 0.7}, None, (8,) * 6),
    Case("feddyn", LOGISTIC, {"k0": 4, "alpha": 0.3, "step": step("log2", 0.8)}),
    Case("feddyn", LEAST_SQUARES, {"epochs": 3, "alpha": 2.0, "step": step("sqrt-samples", 0.02)}),
    Case("ef21", LEAST_SQUARES, {"compressor": {"name": "topk", "k": 2}}),
    Case("ef21", SOFTMAX, {"compressor": {"name": "topk", "k": 7}, "gamma": 0.6}),
    Case("ef21", LOGISTIC, {"compressor": {"name": "randk", "k": 2}}),
    Case("ef21", SOFTMAX, {"compressor": {"name": "topk", "k": 7}, "start": "full"}, None, SAME),
    Case("ef21-hb", LOGISTIC, {"compressor": {"name": "topk", "k": 2}, "eta": 0.7}, None, SAME),
    Case("ef21-hb", SOFTMAX, {"compressor": {"name": "randk", "k": 7}, "gamma": 0.3, "start": "full"}),
    Case("ef21-bc", LOGISTIC, {"compressor": {"name": "topk", "k": 2}, "down": {"name": "topk", "k": 3}}),
    Case("ef21-bc", SOFTMAX, {"compressor": {"name": "randk", "k": 7}, "down": {"name": "topk", "k": 9}, "gamma": 0.3}),
    Case("ef21-sgd", WHOLE, {"compressor": {"name": "topk", "k": 2}, "batch_size": 4, "gamma": 0.2}),
    Case("ef21-sgd", LEAST_SQUARES, {"compressor": {"name": "topk", "k": 2}, "batch_size": 6}, None, SAME),
    Case("ef21-page", LEAST_SQUARES, {"compressor": {"name": "topk", "k": 2}, "batch_size": 4}, None, SAME),
    Case("ef21-page", WHOLE, {"compressor": {"name": "topk", "k": 3}, "batch_size": 5, "p": 0.4, "start": "full"}),
    Case("diana", LOGISTIC, {"compressor": {"name": "randk", "k": 2}}),
    Case("diana", SOFTMAX, {"compressor": {"name": "randseqk", "k": 5}, "gamma": 0.1}),
    Case("marina", LEAST_SQUARES, {"compressor": {"name": "randk", "k": 3}}),
    Case("marina", NONCONVEX, {"compressor": {"name": "randseqk", "k": 2}, "p": 0.3, "gamma": 0.2}),
    Case("fedadmm-insa", WHOLE, {"r0": 0.3, "memory": 0.05}),
    Case("fedadmm-insa", LEAST_SQUARES, {"r0": 1.4, "mu": 1.5, "tau": 1.7, "c": 0.3, "inner_max": 4}),
    Case("fedadmm-insa", LOGISTIC, {"r0": 0.2, "mu": 1e9, "memory": 0, "inner_max": 30}),
    Case("sisa", LOGISTIC, {"rho": 2.0, "beta": 0.8}),
    Case("sisa", LEAST_SQUARES, {"sigma": 1.5, "rho": 0.3, "gamma": 0.9}),
    Case("sisa", SOFTMAX, {"preconditioner": "smoothness", "rho": 0.7, "gamma": 0.95}),
    Case("sisa", NONCONVEX, {"rho": 0, "sigma": 2.5}),
    Case("fedgia-async", LEAST_SQUARES, {"k0": 3, "H": "gram", "t": 0.4}),
    Case("fedgia-async", LOGISTIC, {"k0": 4, "H": "zero", "t": 1.1}),
    Case("ad-admm", LOGISTIC, {"rho": 0.3}),
    Case("ad-admm", UNBIASED, {"gamma": 0.7}),
    Case("fedbuff", LOGISTIC, {"k0": 3, "lr": 0.4, "server_lr": 0.8}),
    Case("fedbuff", SOFTMAX, {"epochs": 3, "lr": 0.1}),
    Case("malenia", LEAST_SQUARES, {}),
    Case("malenia", SOFTMAX, {"gamma": 0.2}),
    Case("ringleader", LEAST_SQUARES, {}),
    Case("ringleader", SOFTMAX, {"gamma": 0.2}),
    Case("ringmaster", LEAST_SQUARES, {"R": 3}),
    Case("ringmaster", SOFTMAX, {"gamma": 0.2}),
    Case("rennala", LOGISTIC, {}),
    Case("rennala", SOFTMAX, {"gamma": 0.2}),
    Case("aggregated-lbfgs", LOGISTIC, {"memory": 2}),
    Case("aggregated-lbfgs", LEAST_SQUARES, {"gamma": 0.05, "damping": 0.0}),
    Case("lbfgs", LOGISTIC, {}),
    Case("lbfgs", LEAST_SQUARES, {"memory": 2, "c": 0.3}),
    Case("nesterov", LEAST_SQUARES, {}),
    Case("nesterov", LOGISTIC, {"mu": "mean"}),
    Case("nesterov", SOFTMAX, {"mu": 0.02, "gamma": 0.7}),
    Case("q-fedavg", LOGISTIC, {"q": 2.0, "lr": 0.5}),
    Case("q-fedavg", SOFTMAX, {"q": 0.5, "k0": 3, "lr": 0.2}),
    Case("q-fedavg", LEAST_SQUARES, {"k0": 1, "lr": 0.05}),
    Case("newton", LOGISTIC, {}, None, FEW),
    Case("newton", UNBIASED, {"c": 0.3}, None, FEW),
    Case("newton", NONCONVEX, {}, None, FEW),
    Case("fednew", LOGISTIC, {"rho": 0.3}),
    Case("fednew", WHOLE, {"alpha": 0.2, "period": 2}),
    Case("fednew", LEAST_SQUARES, {"period": 0, "compressor": {"name": "randseqk", "k": 3}}),
    Case("fedns", WHOLE, {"k": 4}, None, FEW),
    Case("fedns", LEAST_SQUARES, {"k": 9, "mu": 0.5}, None, FEW),
    Case("fedns", LOGISTIC, {"k": 7, "regulariser": "inside"}, None, FEW),
    Case("fednl", WHOLE, {"compressor": {"name": "topk", "k": 4}, "alpha": 0.7}),
    Case("fednl", UNBIASED, {"compressor": {"name": "identity"}}),
    Case("fednl", WHOLE, {"compressor": {"name": "topk", "k": "2n"}, "option": "A", "line_search": True}, None, FEW),
    Case("fednl", SMALL, {"compressor": {"name": "rank", "r": 1}, "option": "A", "alpha": 0.9}),
    Case("fednl", FLAT, {"compressor": {"name": "rank", "r": 4}, "option": "A", "line_search": True}, None, FEW),
    Case("fednl", LEAST_SQUARES, {"compressor": {"name": "topk", "k": 3}, "line_search": True}, None, FEW[:2]),
    Case("fednl-pp", WHOLE, {"compressor": {"name": "topk", "k": 5}, "alpha": 0.8}),
    Case("fednl-pp", SMALL, {"compressor": {"name": "rank", "r": 2}}),
    Case("fednl-pp", UNBIASED, {"compressor": {"name": "identity"}, "alpha": 0.95}),
    Case("dgd", LOGISTIC, {}, graph=RING),
    Case("dgd", LEAST_SQUARES, {"gamma": 0.03}, graph=RANDOM),
    Case("dgd", SOFTMAX, {"gamma": 0.1, "order": "adapt-combine", "k0": 3}, graph=LOSSY),
    Case("extra", LEAST_SQUARES, {}, graph=STAR),
    Case("extra", LOGISTIC, {"gamma": 0.4}, graph=GRID),
    Case("gradient-tracking", LOGISTIC, {"gamma": 0.3}, graph=GRID),
    Case("gradient-tracking", LEAST_SQUARES, {"gamma": 0.02}, graph=RANDOM),
    Case("gradient-tracking", LOGISTIC, {"gamma": 0.3, "order": "adapt-combine"}, graph=LOSSY),
    Case("nids", LEAST_SQUARES, {}, graph=STAR),
    Case("nids", LOGISTIC, {"gamma": 0.4}, graph=GRID),
    Case("led", LEAST_SQUARES, {"tau": 3}, graph=STAR),
    Case("led", LOGISTIC, {"alpha": 0.2, "beta": 0.3}, graph=GRID),
    Case("k-gt", LEAST_SQUARES, {"gamma": 0.02, "k0": 3}, graph=STAR),
    Case("k-gt", LOGISTIC, {"gamma": 0.1, "k0": 2, "eta": 0.8}, graph=RANDOM),
    Case("aug-dgm", LOGISTIC, {"gamma": 0.3}, graph=GRID),
    Case("aug-dgm", LEAST_SQUARES, {"gamma": 0.02}, graph=RANDOM),
    Case("choco", LEAST_SQUARES, {"gamma": 0.3, "compressor": {"name": "topk", "k": 2}}, graph=STAR),
    Case("choco", LOGISTIC, {"gamma": 0.5, "eta": 0.2, "compressor": {"name": "randk", "k": 2}}, graph=GRID),
    Case("beer", LEAST_SQUARES, {"gamma": 0.3, "compressor": {"name": "randseqk", "k": 3}}, graph=STAR),
    Case("beer", LOGISTIC, {"gamma": 0.5, "eta": 0.2, "compressor": {"name": "topk", "k": 3}}, graph=GRID),
    Case("motef", LEAST_SQUARES, {"gamma": 0.3, "lam": 0.4, "compressor": {"name": "topk", "k": 3}}, graph=STAR),
    Case("motef", SOFTMAX, {"gamma": 0.5, "lam": 0.8, "compressor": {"name": "randk", "k": 6}}, graph=RING),
    Case("lt-admm", LEAST_SQUARES, {"tau": 3}, graph=STAR),
    Case("lt-admm", LOGISTIC, {"gamma": 0.3, "beta": 0.05}, graph=GRID),
    Case("fedgia-graph", LEAST_SQUARES, {"k0": 3}, graph=STAR),
    Case("fedgia-graph", LOGISTIC, {"k0": 2, "H": "gram", "t": 0.3}, graph=GRID),
    Case("fedgia-graph", LEAST_SQUARES, {"k0": 1, "H": "zero", "t": 1.5}, graph=RING),
    Case("fedgia-graph", NONCONVEX, {"k0": 4, "t": 0.6, "average": "plain"}, graph=RING),
    Case("fedepm-graph", LOGISTIC, {"k0": 3, "mu0": 9.0, "c": 0.1, "lam": 0.01, "eta": 0.05}, NOISELESS, graph=RING),
    Case("fedepm-graph", LEAST_SQUARES, {"k0": 2, **ONE, "mu0": 4.0, "alpha": 1.1}, NOISELESS, graph=GRID),
]
