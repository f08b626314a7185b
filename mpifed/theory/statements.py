"""What a certificate says: constants of a study, conditions with their two sides, and what the theorem then proves."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

RELATIONS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt, "=": operator.eq}
ROUNDING = 1e-12  # sides of >=, <= and = may differ by this share


class Condition(NamedTuple):
    """A condition of a theorem: ``left relation right``, and whether it holds; None: that cannot be decided.

    >>> mpifed.Condition.of("γ ≤ 1/L", 0.1, "<=", 0.5, "Theorem 1").holds
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
        """The condition with its answer, None where a side is not a number; relations are >=, >, <=, < and =.

        Sides of >=, <= and = may differ by rounding.
        """
        # Steps are often set to the bound of a theorem itself, such as γ = 2/L, and 2/L·L is not always 2 to the bit.
        holds: bool | None = None
        if not (math.isnan(left) or math.isnan(right)):
            close = relation in (">=", "<=", "=") and math.isclose(left, right, rel_tol=ROUNDING)
            holds = close or RELATIONS[relation](left, right)
        return cls(name, float(left), relation, float(right), holds, source)


class Bound(NamedTuple):
    """What a theorem proves, as a formula and as a number for this study, nan where a constant is not known.

    ``kind`` is "factor" (per round), "bound" (after the study's rounds) or "number". ``column`` is the recorded column
    that a factor or bound is about (empty: none), and ``first`` the first round that counts.

        >>> mpifed.Bound("rate of f − f*", "1 − γμ", 0.9, "Theorem 1", kind="factor", column="objective_gap").value
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
    """The constants of a study, nan where the problem does not tell, and the point ``at`` which f and ∇f_i are taken.

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
    """Which theorem was looked at, its conditions, what it proves where they hold, and what else has to be said.

    ``constants`` of the study, where the certificate is of a study or a run.

        >>> certificate = mpifed.run(algorithm={"name": "fedgia", "certify": True}, rounds=1).certificate
        >>> isinstance(certificate, mpifed.Certificate), len(certificate.conditions)
        (True, 5)
    """

    theorem: str
    conditions: list[Condition]
    bounds: list[Bound]
    remarks: list[str]
    constants: Constants | None = None

    @property
    def holds(self) -> bool | None:
        """Whether all conditions hold; None where one cannot be decided and no other fails, or where there are none."""
        # One that fails decides, whatever cannot be decided beside it.
        answers = [condition.holds for condition in self.conditions]
        if False in answers:
            return False
        return None if None in answers or not answers else True


class Known(NamedTuple):
    """The constants of a study, m clients with d (m,) samples, that theorems speak of.

    ``r`` (m,) bounds ‖∇²f_i‖ and ``mu`` (m,) the eigenvalues of ∇²f_i from below; None: the problem does not tell.
    ``f0`` is f and ``g0`` (m,) are the ‖∇f_i‖² at the first model x⁰. ``f``, ``g``, ``largest`` = max |(∇f_i)_j| and
    ``gradient`` = ‖∇f‖² are those at the point ``at`` (x* where f is convex), whose squared distance from x⁰ is
    ``distance``. ``hessians`` (m, n, n) are the ∇²f_i there, None where they are many numbers. No upload is more
    than ``oldest`` rounds old where it is used. ``penalised``: f and f0 are those of F = f + h, ``gradient`` that of
    ‖x − prox(x − ∇f(x))‖², and x* minimises F.

        >>> class Careful(mpifed.algorithms.FedAvg, tag="careful"):
        ...     def certificate(self, known: mpifed.Known):
        ...         few = mpifed.Condition.of("k0 ≤ m", self.k0, "<=", known.m, "my notes")
        ...         return mpifed.Certificate("my notes", [few], [], [])
        >>> mpifed.run(algorithm=Careful(certify=True), rounds=1).certificate.holds
        True
    """

    m: int
    n: int
    d: Array
    cohort: int
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
        """Whether every f_i is convex: no bound of curvature from below is negative by more than rounding."""
        return is_convex(self.r, self.mu)

    @property
    def most(self) -> float:
        """max r_i, nan where it is not known."""
        return math.nan if self.r is None else float(self.r.max())

    @property
    def least(self) -> float:
        """min α_i, the least lower bound of curvature, nan where it is not known."""
        return math.nan if self.mu is None else float(self.mu.min())

    @property
    def below(self) -> float:
        """A lower bound of f: f* where f is convex, 0 for a logistic loss, else not known."""
        if self.convex:
            return self.f
        return 0.0 if self.logistic else math.nan

    def constants(self) -> Constants:
        """What a certificate shows of these."""
        return Constants(
            L_min=math.nan if self.r is None else float(self.r.min()),
            L_max=self.most,
            mu_min=self.least,
            mu_max=math.nan if self.mu is None else float(self.mu.max()),
            condition_number=self.most / self.least if self.least > 0 else math.nan,
            heterogeneity=float(self.g.mean()),
            grad_norm_sq=self.gradient,
            f=self.f,
            f_first=self.f0,
            at=self.at,
        )


def is_convex(r: Array | None, mu: Array | None) -> bool:
    """Whether no lower bound of curvature ``mu`` is negative by more than rounding; r bounds the curvature."""
    return mu is not None and bool((mu >= -ROUNDING * (1.0 if r is None else r)).all())


def nothing(name: str, why: str = "") -> Certificate:
    """The certificate of a method without a theorem here."""
    return Certificate("", [], [], [f"no theorem is certified for {name}" + (f": {why}" if why else "")])


def smooth(known: Known, source: str) -> Condition:
    """∇f_i is Lipschitz continuous: max r_i is known and finite."""
    return Condition.of("max r_i < ∞: every ∇f_i is Lipschitz continuous", known.most, "<", np.inf, source)


def strongly(known: Known, source: str) -> Condition:
    """Every f_i is strongly convex."""
    return Condition.of("min α_i > 0: every f_i is strongly convex", known.least, ">", 0.0, source)
