"""Tables of the classes of small families, such as ``mpifed.steps``; families.pyi says the same to type checkers."""

from types import ModuleType

from mpifed.core.members import lazy_members


def make_table(family: str, title: str, example: str) -> ModuleType:
    """Make a module whose attributes are the classes of ``family``, "module:Class", imported at their first use."""
    name = f"mpifed.{example.partition('.')[0]}"
    module = ModuleType(name, f"{title} by their classes: ``mpifed.{example}``.")
    module.__getattr__, module.__dir__ = lazy_members(name, family)
    return module


attacks = make_table("mpifed.features.attack.attacks:Attack", "Attacks", "attacks.SignFlip(clients=0.2)")
distributions = make_table(
    "mpifed.features.simulated_time.distributions:Distribution", "Distributions", "distributions.Lognormal(median=1e4)"
)
optimizers = make_table("mpifed.algorithms.parts.optimizers:Optimizer", "Optimisers", "optimizers.Adam(beta1=0.8)")
partitions = make_table("mpifed.data.partition:Partition", "Partitions", "partitions.Dirichlet(alpha=0.3)")
robust_means = make_table(
    "mpifed.features.robust.means:RobustMean", "Robust means", "robust_means.TrimmedMean(share=0.2)"
)
selections = make_table(
    "mpifed.federation.participation.selection:Selection", "Selections", "selections.UniformSelection(share=0.2)"
)
server_optimizers = make_table(
    "mpifed.algorithms.parts.server_optimizers:ServerOptimizer",
    "Optimisers of FedOpt's server",
    "server_optimizers.Yogi(lr=0.03)",
)
solvers = make_table("mpifed.algorithms.parts.local_solvers:Solver", "Solvers", "solvers.NewtonSolver(tol=1e-6)")
steps = make_table("mpifed.algorithms.parts.step_sizes:Step", "Steps", "steps.ConstantStep(a=0.1)")
