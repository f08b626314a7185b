"""Numbers that only the tables of FedDCD show: the gap after the first round."""

from mpifed import Result


def gap_after_round_1(result: Result) -> float:
    """f − f* of the model after one round; nan where the run has none.

    The authors' trace has 0.019 for FedDCD on MNIST with τ = 30.
    """
    gaps = result.rounds.get("objective_gap")
    return float("nan") if gaps is None or len(gaps) < 2 else float(gaps[1])


MEASURES = {gap_after_round_1.__name__: gap_after_round_1}
