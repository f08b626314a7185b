"""A problem whose gradients have noise."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature, Housing
from mpifed.features.gradient_noise.noisy import Noisy
from mpifed.federation.host import Host


class GradientNoise(Feature):
    """Normal noise in the gradients of local steps."""

    # Noise follows from seed, client, round and call, and is added where the client lives.
    keeps = Keeps.EVERYTHING

    def host(self, host: Host, housing: Housing) -> None:
        host.views.append(Noisy(self.config.seed, getattr(self.config.problem, "noise", 0.0)))
