class attacks:
    from mpifed.features.attack.attacks import InnerProduct as InnerProduct
    from mpifed.features.attack.attacks import LabelFlip as LabelFlip
    from mpifed.features.attack.attacks import Little as Little
    from mpifed.features.attack.attacks import Random as Random
    from mpifed.features.attack.attacks import SignFlip as SignFlip

class distributions:
    from mpifed.features.simulated_time.distributions import ConstantDistribution as ConstantDistribution
    from mpifed.features.simulated_time.distributions import ExponentialDistribution as ExponentialDistribution
    from mpifed.features.simulated_time.distributions import FileDistribution as FileDistribution
    from mpifed.features.simulated_time.distributions import ListDistribution as ListDistribution
    from mpifed.features.simulated_time.distributions import Lognormal as Lognormal
    from mpifed.features.simulated_time.distributions import Pareto as Pareto
    from mpifed.features.simulated_time.distributions import UniformDistribution as UniformDistribution

class optimizers:
    from mpifed.algorithms.parts.optimizers import SGD as SGD
    from mpifed.algorithms.parts.optimizers import Adam as Adam
    from mpifed.algorithms.parts.optimizers import AdamW as AdamW
    from mpifed.algorithms.parts.optimizers import Momentum as Momentum

class partitions:
    from mpifed.data.partition import Classes as Classes
    from mpifed.data.partition import Contiguous as Contiguous
    from mpifed.data.partition import Dirichlet as Dirichlet
    from mpifed.data.partition import DirichletClients as DirichletClients
    from mpifed.data.partition import Iid as Iid
    from mpifed.data.partition import Shards as Shards
    from mpifed.data.partition import Sizes as Sizes

class robust_means:
    from mpifed.features.robust.means import CentredClipping as CentredClipping
    from mpifed.features.robust.means import GeometricMedian as GeometricMedian
    from mpifed.features.robust.means import Krum as Krum
    from mpifed.features.robust.means import Median as Median
    from mpifed.features.robust.means import TrimmedMean as TrimmedMean

class selections:
    from mpifed.features.selection_laws.feature import Cyclic as Cyclic
    from mpifed.features.selection_laws.feature import Greedy as Greedy
    from mpifed.features.selection_laws.feature import PowerOfChoice as PowerOfChoice
    from mpifed.features.selection_laws.importance import Importance as Importance
    from mpifed.federation.participation.selection import All as All
    from mpifed.federation.participation.selection import Biased as Biased
    from mpifed.federation.participation.selection import Cover as Cover
    from mpifed.federation.participation.selection import PoissonSelection as PoissonSelection
    from mpifed.federation.participation.selection import Replay as Replay
    from mpifed.federation.participation.selection import UniformSelection as UniformSelection

class server_optimizers:
    from mpifed.algorithms.parts.server_optimizers import Adagrad as Adagrad
    from mpifed.algorithms.parts.server_optimizers import FedExP as FedExP
    from mpifed.algorithms.parts.server_optimizers import ServerAdam as ServerAdam
    from mpifed.algorithms.parts.server_optimizers import ServerMomentum as ServerMomentum
    from mpifed.algorithms.parts.server_optimizers import Yogi as Yogi

class solvers:
    from mpifed.algorithms.parts.local_solvers import SVRG as SVRG
    from mpifed.algorithms.parts.local_solvers import AdamSolver as AdamSolver
    from mpifed.algorithms.parts.local_solvers import GradientDescent as GradientDescent
    from mpifed.algorithms.parts.local_solvers import NewtonSolver as NewtonSolver
    from mpifed.algorithms.parts.local_solvers import SGDSolver as SGDSolver

class steps:
    from mpifed.algorithms.parts.step_sizes import ConstantStep as ConstantStep
    from mpifed.algorithms.parts.step_sizes import Cosine as Cosine
    from mpifed.algorithms.parts.step_sizes import Inverse as Inverse
    from mpifed.algorithms.parts.step_sizes import Log2 as Log2
    from mpifed.algorithms.parts.step_sizes import SqrtSamples as SqrtSamples
    from mpifed.algorithms.parts.step_sizes import StepDecay as StepDecay
    from mpifed.algorithms.parts.step_sizes import Warmup as Warmup
