"""Contents of a certificate: constants of a study, conditions with both sides, and the bounds of a theorem."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

RELATIONS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt, "=": operator.eq}
ROUNDING = 1e-12  # sides of >=, <= and = may differ by this share


class Condition(NamedTuple):
    """Condition of a theorem, ``left relation right``; ``holds`` is its answer, None where it cannot be decided.

    >>> mpifed.theory.Condition.of("γ ≤ 1/L", 0.1, "<=", 0.5, "Theorem 1").holds
    True
    """

    name: str
    left: float
    relation: str
    right: float
    holds: bool | None
    source: str

    @classmethod
    def of(cls, name: str, left: float, relation: str, right: float, source: str) -> Condition:
        """Return the condition with its answer, None where a side is not a number; relations: >=, >, <=, <, =.

        Sides of >=, <= and = may differ by rounding.
        """
        # Steps are often set to the bound of a theorem itself, such as γ = 2/L, and 2/L·L is not always 2 to the bit.
        holds: bool | None = None
        if not (math.isnan(left) or math.isnan(right)):
            close = relation in (">=", "<=", "=") and math.isclose(left, right, rel_tol=ROUNDING)
            holds = close or RELATIONS[relation](left, right)
        return cls(name, float(left), relation, float(right), holds, source)


class Bound(NamedTuple):
    """Bound proved by a theorem: a formula and its value for this study, nan where a constant is not known.

    ``kind`` is "factor" (per round), "bound" (after the study's rounds) or "number". ``column`` is the recorded column
    that a factor or bound is about (empty: none), and ``first`` the first round that counts.

        >>> bound = mpifed.theory.Bound("rate of f", "1 − γμ", 0.9, "Theorem 1", kind="factor", column="objective_gap")
        >>> bound.value
        0.9
    """

    name: str
    formula: str
    value: float
    source: str
    kind: str = "number"
    column: str = ""
    first: int = 0


class Constants(NamedTuple):
    """Constants of a study, nan where the problem does not tell them; ``at`` is the point of f and ∇f_i.

    Least and largest r_i (L) and lower bound of curvature (mu), L_max/mu_min, (1/m) Σ ‖∇f_i‖², ‖∇f‖² and f there, f at
    the first model.
    """

    L_min: float
    L_max: float
    mu_min: float
    mu_max: float
    condition_number: float
    heterogeneity: float
    grad_norm_sq: float
    f: float
    f_first: float
    at: str = ""


class Certificate(NamedTuple):
    """Theorem of a method with its conditions, the bounds that hold if they do, and remarks.

    ``constants`` of the study, where the certificate is of a study or a run.

        >>> certificate = mpifed.run(algorithm={"name": "fedgia", "certify": True}, rounds=1).certificate
        >>> isinstance(certificate, mpifed.theory.Certificate), len(certificate.conditions)
        (True, 5)
    """

    theorem: str
    conditions: list[Condition]
    bounds: list[Bound]
    remarks: list[str]
    constants: Constants | None = None

    @property
    def holds(self) -> bool | None:
        """Answer to all conditions; None where there are none, or one cannot be decided and no other fails."""
        # One failure decides, even where other conditions cannot be decided.
        answers = [condition.holds for condition in self.conditions]
        if False in answers:
            return False
        return None if None in answers or not answers else True


class StudyConstants(NamedTuple):
    """Constants of a study that theorems use, with m clients of d (m,) samples.

    ``r`` (m,) bounds ‖∇²f_i‖ and ``mu`` (m,) the eigenvalues of ∇²f_i from below; None: the problem does not tell.
    ``f0`` is f and ``g0`` (m,) are the ‖∇f_i‖² at the first model x⁰. ``f``, ``g``, ``largest`` = max |(∇f_i)_j| and
    ``gradient`` = ‖∇f‖² are those at the point ``at`` (x* where f is convex), whose squared distance from x⁰ is
    ``distance``. ``hessians`` (m, n, n) are the ∇²f_i there, None where they are many numbers. No upload is more
    than ``oldest`` rounds old where it is used. ``penalised``: f and f0 are those of F = f + h, ``gradient`` that of
    ‖x − prox(x − ∇f(x))‖², and x* minimises F.

        >>> class Careful(mpifed.algorithms.FedAvg, tag="careful"):
        ...     def certificate(self, known: mpifed.theory.StudyConstants):
        ...         few = mpifed.theory.Condition.of("k0 ≤ m", self.k0, "<=", known.m, "my notes")
        ...         return mpifed.theory.Certificate("my notes", [few], [], [])
        >>> mpifed.run(algorithm=Careful(certify=True), rounds=1).certificate.holds
        True
    """

    m: int
    n: int
    d: Array
    clients_per_round: int
    rounds: int
    selection: str
    logistic: bool
    r: Array | None
    mu: Array | None
    f0: float
    g0: Array
    at: str
    f: float
    g: Array
    largest: float
    gradient: float
    distance: float
    hessians: Array | None = None
    oldest: float = 0.0
    penalised: bool = False

    @property
    def convex(self) -> bool:
        """Convexity of every f_i: no lower bound of curvature is negative by more than rounding."""
        return is_convex(self.r, self.mu)

    @property
    def L_max(self) -> float:
        """Largest r_i, nan where it is not known."""
        return math.nan if self.r is None else float(self.r.max())

    @property
    def mu_min(self) -> float:
        """Least lower bound of curvature, min α_i; nan where it is not known."""
        return math.nan if self.mu is None else float(self.mu.min())

    @property
    def lower_bound(self) -> float:
        """Lower bound of f: f* for convex f, 0 for a logistic loss, else nan."""
        if self.convex:
            return self.f
        return 0.0 if self.logistic else math.nan

    def constants(self) -> Constants:
        """Return the constants that a certificate shows."""
        return Constants(
            L_min=math.nan if self.r is None else float(self.r.min()),
            L_max=self.L_max,
            mu_min=self.mu_min,
            mu_max=math.nan if self.mu is None else float(self.mu.max()),
            condition_number=self.L_max / self.mu_min if self.mu_min > 0 else math.nan,
            heterogeneity=float(self.g.mean()),
            grad_norm_sq=self.gradient,
            f=self.f,
            f_first=self.f0,
            at=self.at,
        )


def is_convex(r: Array | None, mu: Array | None) -> bool:
    """Return whether no lower bound of curvature ``mu`` is negative by more than rounding; r bounds it above."""
    return mu is not None and bool((mu >= -ROUNDING * (1.0 if r is None else r)).all())


def no_theorem(name: str, why: str = "") -> Certificate:
    """Return the certificate of a method without a theorem here."""
    return Certificate("", [], [], [f"no theorem is certified for {name}" + (f": {why}" if why else "")])


def smoothness(known: StudyConstants, source: str) -> Condition:
    """Return the condition that every ∇f_i is Lipschitz continuous: max r_i is finite."""
    return Condition.of("max r_i < ∞: every ∇f_i is Lipschitz continuous", known.L_max, "<", np.inf, source)


def strong_convexity(known: StudyConstants, source: str) -> Condition:
    """Return the condition that every f_i is strongly convex."""
    return Condition.of("min α_i > 0: every f_i is strongly convex", known.mu_min, ">", 0.0, source)
