"""The functions f_i of one client: value, gradient, Hessian and constants, written out from their formulas.

Every client has ``d`` (samples), ``n`` (parameters), ``value(x)``, ``gradient(x)``, ``lipschitz`` (r_i, a Lipschitz
constant of the gradient) and, where a method needs them, ``hessian(x)``, ``majorant`` (the Gram matrix H_i of FedGiA,
Table III) and ``convexity`` (α_i of FedDCD, Assumption 3.1).
"""

import numpy as np


class LeastSquares:
    """f_i(x) = (1/2d) ‖Ax − b‖²: FedGiA (2)."""

    def __init__(self, A, b):
        self.A, self.b = A, b
        self.d, self.n = A.shape
        self.majorant = A.T @ A / self.d
        self.lipschitz = np.linalg.eigvalsh(self.majorant)[-1]

    def hessian(self, x):
        return self.majorant

    def value(self, x):
        return np.sum((self.A @ x - self.b) ** 2) / (2 * self.d)

    def gradient(self, x):
        return self.A.T @ (self.A @ x - self.b) / self.d


class Quadratic:
    """f_i(x) = ½ xᵀQx − bᵀx: FedDCD (41), (42)."""

    def __init__(self, Q, b):
        self.majorant, self.b = Q, b
        self.d, self.n = Q.shape
        self.convexity, *_, self.lipschitz = np.linalg.eigvalsh(Q)

    def value(self, x):
        return x @ self.majorant @ x / 2 - self.b @ x

    def gradient(self, x):
        return self.majorant @ x - self.b


class Logistic:
    """f_i(x) = (1/d) Σ_j [ln(1 + e^⟨a_j, x⟩) − b_j ⟨a_j, x⟩] + weight · (1/2)‖x‖²: FedGiA (3).

    The weight is mu/d ("per-sample", FedGiA) or mu ("whole", as FedADMM and FedEPM print it).
    """

    def __init__(self, A, b, mu=1e-3, regulariser="per-sample"):
        self.A, self.b = A, b
        self.d, self.n = A.shape
        self.weight = mu / self.d if regulariser == "per-sample" else mu
        self.majorant = A.T @ A / (4 * self.d) + self.weight * np.eye(self.n)
        self.lipschitz = np.linalg.eigvalsh(self.majorant)[-1]
        self.convexity = self.weight

    def value(self, x):
        return self.loss(x) + self.weight / 2 * (x @ x)

    def gradient(self, x):
        return self.slope(x) + self.weight * x

    def hessian(self, x):
        p = self.probabilities(x)
        return (self.A.T * (p * (1 - p))) @ self.A / self.d + self.weight * self.bend(x)

    def bend(self, x):
        return np.eye(self.n)

    def loss(self, x):
        scores = self.A @ x
        return np.sum(np.logaddexp(0, scores) - self.b * scores) / self.d

    def slope(self, x):
        return self.A.T @ (self.probabilities(x) - self.b) / self.d

    def probabilities(self, x):
        return np.exp(-np.logaddexp(0, -(self.A @ x)))


class NonconvexLogistic(Logistic):
    """The logistic loss with (mu/2d) Σ_ℓ x_ℓ²/(1 + x_ℓ²): FedGiA, Example V.3."""

    def __init__(self, A, b, mu=1e-2):
        super().__init__(A, b, mu)

    def value(self, x):
        return self.loss(x) + self.weight / 2 * np.sum(x**2 / (1 + x**2))

    def gradient(self, x):
        return self.slope(x) + self.weight * x / (1 + x**2) ** 2

    def bend(self, x):
        return np.diag((1 - 3 * x**2) / (1 + x**2) ** 3)


class Linear:
    """What linear classifiers share: x = [W row-major, classes × features | bias], scores W a + bias."""

    def __init__(self, A, b, classes, lam=0.0, bias=True):
        self.A, self.b = A, b.astype(int)
        self.classes = classes
        self.lam = lam
        self.bias = bias
        self.d, self.features = A.shape
        self.n = classes * (self.features + bias)

    def split(self, x):
        """W and the bias."""
        cut = self.classes * self.features
        return x[:cut].reshape(self.classes, self.features), x[cut:] if self.bias else np.zeros(self.classes)

    def scores(self, x):
        W, bias = self.split(x)
        return self.A @ W.T + bias

    def value(self, x):
        W, _ = self.split(x)
        return self.losses(self.scores(x)).sum() / self.d + self.lam / 2 * np.sum(W**2)

    def gradient(self, x):
        W, _ = self.split(x)
        S = self.slopes(self.scores(x)) / self.d
        inner = (S.T @ self.A + self.lam * W).ravel()
        return np.concatenate([inner, S.sum(axis=0)]) if self.bias else inner


class Softmax(Linear):
    """f_i = mean cross-entropy + (lam/2)‖W‖²: FedDCD, section 8.1 (without bias); FLAME, section 5 (MLR)."""

    def __init__(self, A, b, classes, lam=0.0, bias=True):
        super().__init__(A, b, classes, lam, bias)
        inputs = np.column_stack([A, np.ones(self.d)]) if bias else A
        self.lipschitz = np.linalg.eigvalsh(inputs.T @ inputs)[-1] / (2 * self.d) + lam
        self.convexity = lam

    def losses(self, scores):
        rows = np.arange(self.d)
        return np.logaddexp.reduce(scores, axis=1) - scores[rows, self.b]

    def slopes(self, scores):
        p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        p[np.arange(self.d), self.b] -= 1
        return p

    def hessian(self, x):
        """Without bias: block (k, l) is (1/d) Σ_j p_jk ([k = l] − p_jl) a_j a_jᵀ, and lam I is added."""
        H = self.lam * np.eye(self.n)
        scores = self.scores(x)
        p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        for k in range(self.classes):
            for l in range(self.classes):
                weights = p[:, k] * ((k == l) - p[:, l]) / self.d
                rows, columns = (slice(c * self.features, (c + 1) * self.features) for c in (k, l))
                H[rows, columns] += (self.A.T * weights) @ self.A
        return H


class Svm(Linear):
    """f_i = mean of (1/C) Σ_{k≠b} max(0, 1 − z_b + z_k) over samples + (lam/2)‖W‖²: FLAME, section 5 (SVM)."""

    def losses(self, scores):
        rows = np.arange(self.d)
        margins = np.maximum(0, 1 - scores[rows, self.b][:, None] + scores)
        return (margins.sum(axis=1) - 1) / self.classes  # the class b itself has margin 1

    def slopes(self, scores):
        rows = np.arange(self.d)
        S = (1 - scores[rows, self.b][:, None] + scores > 0).astype(float)
        S[rows, self.b] = 0
        S[rows, self.b] = -S.sum(axis=1)
        return S / self.classes


class Regression:
    """f_i(x) = (1/d) Σ_j ℓ(⟨a_j, x⟩, b_j) + (lam/2) Σ x_l², without x_n where it is a bias."""

    def __init__(self, A, b, lam=0.0, bias=True):
        self.A, self.b, self.lam = A, b, lam
        self.d, self.n = A.shape
        self.penal = np.append(np.ones(self.n - 1), 0.0 if bias else 1.0)

    def value(self, x):
        return sum(self.loss(a @ x, b) for a, b in zip(self.A, self.b, strict=True)) / self.d + self.penalty(x)

    def penalty(self, x):
        return self.lam / 2 * np.sum(self.penal * x**2)

    def gradient(self, x):
        terms = [self.slope(a @ x, b) * a for a, b in zip(self.A, self.b, strict=True)]
        return np.sum(terms, axis=0) / self.d + self.lam * self.penal * x


class Poisson(Regression):
    """ℓ(z, b) = e^z − b z."""

    def loss(self, z, b):
        return np.exp(z) - b * z

    def slope(self, z, b):
        return np.exp(z) - b


class Gamma(Regression):
    """ℓ(z, b) = z + b e^{−z}."""

    def loss(self, z, b):
        return z + b * np.exp(-z)

    def slope(self, z, b):
        return 1 - b * np.exp(-z)


class Huber(Regression):
    """ℓ(z, b) = r²/2 where r = |z − b| <= delta, else delta(r − delta/2)."""

    def __init__(self, A, b, lam=0.0, bias=True, delta=1.345):
        super().__init__(A, b, lam, bias)
        self.delta = delta
        self.majorant = A.T @ A / self.d + lam * np.eye(self.n)
        self.lipschitz = np.linalg.eigvalsh(self.majorant)[-1]

    def loss(self, z, b):
        r = abs(z - b)
        return r**2 / 2 if r <= self.delta else self.delta * (r - self.delta / 2)

    def slope(self, z, b):
        return z - b if abs(z - b) <= self.delta else self.delta * np.sign(z - b)


class Cox:
    """Minus the logarithm of the partial likelihood over d, event by event, + (lam/2)‖x‖²."""

    def __init__(self, A, b, lam=0.0, ties="efron"):
        self.A, self.b, self.lam, self.ties = A, b, lam, ties
        self.d, self.n = A.shape
        self.times = np.abs(b)
        spans = A - A.mean(axis=0)
        most = [max(span @ span for span in spans[self.times >= t]) for t in b[b > 0]]
        self.lipschitz = sum(most) / self.d + lam

    def events(self, x):
        """Of each event its features and the weights e^{z_j} of all samples in its sum, 0 where not at risk."""
        for t in np.unique(self.b[self.b > 0]):
            now = np.flatnonzero(self.b == t)
            for l, k in enumerate(now):
                weights = np.exp(self.A @ x) * (self.times >= t)
                weights[now] *= 1 - l / len(now) * (self.ties == "efron")
                yield self.A[k], weights

    def value(self, x):
        return -sum(a @ x - np.log(w.sum()) for a, w in self.events(x)) / self.d + self.lam / 2 * (x @ x)

    def gradient(self, x):
        return -sum(a - w @ self.A / w.sum() for a, w in self.events(x)) / self.d + self.lam * x


PROBLEMS = {
    "least-squares": LeastSquares,
    "quadratic": Quadratic,
    "logistic": Logistic,
    "nonconvex-logistic": NonconvexLogistic,
    "softmax": Softmax,
    "svm": Svm,
    "poisson": Poisson,
    "gamma": Gamma,
    "huber": Huber,
    "cox": Cox,
}
CLASSES = 3


def function(problem, A, b):
    """The f_i of a problem, a table with its name and options."""
    kind = PROBLEMS[problem["name"]]
    options = {"classes": CLASSES} if issubclass(kind, Linear) else {}
    return kind(A, b, **options | {key: value for key, value in problem.items() if key != "name"})


def trajectory(clients, models):
    """What is compared: f = (1/m) Σ f_i and ‖∇f‖² at every model, and the models (rounds + 1, n)."""
    everywhere = [[x] * len(clients) for x in models]
    objective = np.array([mean_value(clients, points) for points in everywhere])
    slopes = np.array([gradients(clients, points).mean(axis=0) for points in everywhere])
    return {"objective": objective, "grad_norm_sq": np.vecdot(slopes, slopes), "x": np.array(models)}


def mean_value(clients, points):
    """(1/m) Σ f_i(θ_i)."""
    return sum(client.value(point) for client, point in zip(clients, points, strict=True)) / len(clients)


def gradients(clients, points):
    """∇f_i(θ_i), a row a client."""
    return np.array([client.gradient(point) for client, point in zip(clients, points, strict=True)])


def zeros(clients):
    """A vector 0 a client."""
    return [np.zeros(client.n) for client in clients]
