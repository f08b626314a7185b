"""FedEPM with λ given as a multiple of the threshold λ* of Theorem III.1."""

from typing import Annotated, Any

from msgspec import Meta

from mpifed.algorithms.fedepm import FedEPM
from mpifed.extend import Federation
from mpifed.features.certificate.minimum import find_minimum


class Threshold(FedEPM):
    """FedEPM with λ = ratio · λ*, λ* = max |(∇f_i(x*))_j| found before the first round.  Source: (11)."""

    ratio: Annotated[float, Meta(gt=0, description="λ/λ*")] = 1.0

    def init_server(self, fed: Federation) -> Any:
        x = find_minimum(fed, self, fed.initial()).x
        _, largest = fed.inspect(self.certify_gradients, args=(x.astype(fed.dtype),))
        return super().init_server(fed)._replace(lam=self.ratio * float(largest.max()))
