"""Public image data: digits, MNIST, Fashion-MNIST, Medical MNIST."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError, needed
from mpifed.core.promises import Keeps, keeping
from mpifed.core.typing import Array
from mpifed.data.dataset import Clients, Dataset, Test
from mpifed.data.download import find
from mpifed.data.formats.arrays import read_samples
from mpifed.data.formats.images import NO_PILLOW, FolderImages, find_images, pixels, read_idx
from mpifed.data.formats.on_disk import reading
from mpifed.data.partition import Partition, Shards
from mpifed.data.pool import Pooled

LACKING = 'data = "digits" needs scikit-learn, which contains them: pip install "mpifed[data]"'


class ImageSet(Pooled):
    """Images of classes: two shards of one class each per client, 20 % of each client's images for testing (flame)."""

    usual: ClassVar[Partition] = Shards(per_client=2, pure=True)

    clients: Clients = 50
    test: Test = 0.2


class Digits(ImageSet, tag="digits"):
    """Handwritten digits, 1797 images of 8 x 8 = 64 pixels x/16, bundled with scikit-learn: no download needed.

    Default partition, as in flame: two shards of one class each per client; 80/20 for training and testing at each.
    """

    # Pixels over a constant.
    keeps = Keeps.EVERYTHING

    def check(self) -> None:
        if find_spec("sklearn") is None:
            raise UserError(LACKING)

    def load(self, seed: int, dtype: str) -> Dataset:
        bunch: Any = needed("sklearn.datasets", LACKING).load_digits()
        return self.deal(bunch.data / 16, bunch.target, seed, dtype, "scikit-learn's digits")


class IdxImages(ImageSet):
    """Images in the four files of MNIST, plain or gzip; pixels are (x/255 - mean)/deviation, or x/255."""

    # Both scales are constants known without the data.
    options = keeping("pixels", "part")

    scale: ClassVar[tuple[float, float]]  # mean and deviation

    pixels: Annotated[
        Literal["standardised", "unit"],
        Meta(description="standardised: (x/255 - mean)/deviation of the data set; unit: x/255, as in feddcd"),
    ] = "standardised"
    part: Annotated[
        Literal["auto", "train", "test", "both"],
        Meta(description="train-*: 60,000 images; test: t10k-*, 10,000; auto: train if it exists, else test"),
    ] = "auto"

    def load(self, seed: int, dtype: str) -> Dataset:
        read = [self.read(part) for part in self.parts()]
        if len({X.shape[1] for _, X, _ in read}) > 1:
            raise UserError(
                f"{read[0][0]} has images of {read[0][1].shape[1]} pixels, {read[1][0]} of {read[1][1].shape[1]}: "
                "they must come from the same data set"
            )
        X, y = (np.concatenate(arrays) for arrays in list(zip(*read, strict=True))[1:])
        scale = self.scale if self.pixels == "standardised" else (0.0, 1.0)
        return self.deal(pixels(X, *scale), y, seed, dtype, str(read[0][0]))

    def locate(self) -> list[Path]:
        kinds = ("images-idx3", "labels-idx1")
        return [find(self.label(), *names(part, kind)) for part in self.parts() for kind in kinds]

    def parts(self) -> list[str]:
        """The first word in the names of the files to read: train, t10k or both."""
        if self.part == "auto":
            found = find(self.label(), *names("train", "images-idx3"), *names("t10k", "images-idx3"))
            return [found.name.split("-")[0]]
        return {"train": ["train"], "test": ["t10k"], "both": ["train", "t10k"]}[self.part]

    def read(self, part: str) -> tuple[Path, Array, Array]:
        path = find(self.label(), *names(part, "images-idx3"))
        labels = find(self.label(), *names(part, "labels-idx1"))
        X, y = read_idx(path, 3), read_idx(labels, 1)
        return path, *read_samples({"X": X.reshape(len(X), X.shape[1] * X.shape[2]), "y": y}, path, "")


def names(part: str, kind: str) -> list[str]:
    """Possible names of a file: compressed or not, and with a full stop instead of the hyphen, as on some servers."""
    return [f"{part}-{kind}-ubyte.gz", f"{part}-{kind}-ubyte", f"{part}-{kind.replace('-', '.')}-ubyte"]


class Mnist(IdxImages, tag="mnist"):
    """MNIST, handwritten digits of 28 x 28 = 784 pixels (x/255 - 0.1307)/0.3081 (flame section V; LeCun et al. 1998).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Pixels by mean and deviation that are constants known without the data.
    keeps = Keeps.EVERYTHING

    scale = (0.1307, 0.3081)


class Fmnist(IdxImages, tag="fmnist"):
    """Fashion-MNIST, clothes of 28 x 28 = 784 pixels (x/255 - 0.2860)/0.3530 (flame section V; Xiao et al. 2017).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Sources: FLAME, 2023, arXiv 2311.06756; Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017, arXiv 1708.07747.
    """

    # Pixels by mean and deviation that are constants known without the data.
    keeps = Keeps.EVERYTHING

    scale = (0.2860, 0.3530)


class MedicalMnist(ImageSet, tag="medical-mnist"):
    """Medical MNIST, 58,954 images of 64 x 64 pixels (x/255 - 0.5)/0.5 in six classes (flame section V; Kaggle).

    Each class is a folder of JPEG or PNG images; classes are numbered in the alphabetical order of the folders. A row
    of X is an image (3, 64, 64) in row-major order, 12,288 features. A rank opens the images of its own clients only.
    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Pixels over a constant.
    keeps = Keeps.EVERYTHING
    options = keeping("colour", "size")

    colour: Annotated[bool, Meta(description="true: three channels, as the CNN of flame expects; false: one, grey")] = (
        True
    )
    size: Annotated[int, Meta(ge=1, le=1024, description="side in pixels; images of another size are resized")] = 64

    def locate(self) -> list[Path]:
        return [find("medical-mnist", "")]

    def check(self) -> None:
        super().check()
        if find_spec("PIL") is None:
            raise UserError(NO_PILLOW)

    def load(self, seed: int, dtype: str) -> Dataset:
        (root,) = self.locate()
        with reading(root, "the data set medical-mnist"):
            paths, y = find_images(root)
        if not paths:
            raise UserError(
                f"{root} has no class folders with .jpeg, .jpg or .png images: "
                "it should contain AbdomenCT, BreastMRI, CXR, ChestCT, Hand, HeadCT"
            )
        return self.deal(FolderImages(paths, self.size, self.colour), y, seed, dtype, str(root))
