"""Data by their classes: ``mpifed.data.Digits(clients=20)``."""

from typing import TYPE_CHECKING

from mpifed.core.members import members

if TYPE_CHECKING:
    from mpifed.data.sources.arrays import Arrays as Arrays
    from mpifed.data.sources.file import File as File
    from mpifed.data.sources.frame import Frame as Frame
    from mpifed.data.sources.gaussian import Gaussian as Gaussian
    from mpifed.data.sources.linreg_noniid import LinregNoniid as LinregNoniid
    from mpifed.data.sources.public_images import Digits as Digits
    from mpifed.data.sources.public_images import Fmnist as Fmnist
    from mpifed.data.sources.public_images import MedicalMnist as MedicalMnist
    from mpifed.data.sources.public_images import Mnist as Mnist
    from mpifed.data.sources.public_tables import A9a as A9a
    from mpifed.data.sources.public_tables import Adult as Adult
    from mpifed.data.sources.public_tables import Mushrooms as Mushrooms
    from mpifed.data.sources.public_tables import Phishing as Phishing
    from mpifed.data.sources.public_tables import Qot as Qot
    from mpifed.data.sources.public_tables import Rcv1 as Rcv1
    from mpifed.data.sources.public_tables import Sct as Sct
    from mpifed.data.sources.public_tables import W8a as W8a
    from mpifed.data.sources.quadratic import LowerBound as LowerBound
    from mpifed.data.sources.quadratic import RandomQuadratic as RandomQuadratic
    from mpifed.data.sources.rdatasets import Rdatasets as Rdatasets
    from mpifed.data.sources.synthetic import Synthetic as Synthetic
    from mpifed.data.sources.synthetic_images import ImageClasses as ImageClasses
    from mpifed.data.sources.torch_dataset import TorchDataset as TorchDataset
else:
    __getattr__, __dir__ = members("mpifed.data", "mpifed.data.base:Data")
