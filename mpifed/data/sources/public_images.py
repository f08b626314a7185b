"""Public image data: digits, MNIST, Fashion-MNIST, Medical MNIST."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError, import_required
from mpifed.core.promises import Supports, supporting
from mpifed.core.typing import Array
from mpifed.data.dataset import ClientCount, Dataset, TestFraction
from mpifed.data.download import find_data_file
from mpifed.data.formats.arrays import read_samples
from mpifed.data.formats.images import NO_PILLOW, FolderImages, find_images, read_idx, scale_pixels
from mpifed.data.formats.on_disk import reading
from mpifed.data.partition import Partition, Shards
from mpifed.data.pool import PooledData

LACKING = 'data = "digits" needs scikit-learn, which contains them: pip install "mpifed[data]"'


class ImageSet(PooledData):
    """Base of image data: two shards of one class each per client, 20 % of each client's images for testing (flame)."""

    default_partition: ClassVar[Partition] = Shards(per_client=2, pure=True)

    clients: ClientCount = 50
    test: TestFraction = 0.2


class Digits(ImageSet, tag="digits"):
    """Handwritten digits, 1797 images of 8 x 8 = 64 pixels x/16, bundled with scikit-learn: no download needed.

    Default partition, as in flame: two shards of one class each per client; 80/20 for training and testing at each.
    """

    # Divided by a constant.
    supports = Supports.EVERYTHING

    def check(self) -> None:
        if find_spec("sklearn") is None:
            raise UserError(LACKING)

    def load(self, seed: int, dtype: str) -> Dataset:
        bunch: Any = import_required("sklearn.datasets", LACKING).load_digits()
        return self.deal(bunch.data / 16, bunch.target, seed, dtype, "scikit-learn's digits")


class IdxImages(ImageSet):
    """Base of images in four files like those of MNIST, plain or gzip: pixels (x/255 - mean)/deviation, or x/255."""

    # Both scales are constants known without the data.
    options = supporting("pixels", "part")

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
        parts = [self.read(part) for part in self.parts()]
        if len({X.shape[1] for _, X, _ in parts}) > 1:
            raise UserError(
                f"{parts[0][0]} has images of {parts[0][1].shape[1]} pixels, {parts[1][0]} of {parts[1][1].shape[1]}: "
                "they must come from the same data set"
            )
        X, y = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[1:])
        scale = self.scale if self.pixels == "standardised" else (0.0, 1.0)
        return self.deal(scale_pixels(X, *scale), y, seed, dtype, str(parts[0][0]))

    def locate(self) -> list[Path]:
        contents = ("images-idx3", "labels-idx1")
        return [
            find_data_file(self.label(), *file_names(part, content)) for part in self.parts() for content in contents
        ]

    def parts(self) -> list[str]:
        """Return the first words in the names of the files to read: train, t10k or both."""
        if self.part == "auto":
            path = find_data_file(self.label(), *file_names("train", "images-idx3"), *file_names("t10k", "images-idx3"))
            return [path.name.split("-")[0]]
        return {"train": ["train"], "test": ["t10k"], "both": ["train", "t10k"]}[self.part]

    def read(self, part: str) -> tuple[Path, Array, Array]:
        """Return the path of the images of a part, X (d, n) of bytes, and y (d,)."""
        path = find_data_file(self.label(), *file_names(part, "images-idx3"))
        labels = find_data_file(self.label(), *file_names(part, "labels-idx1"))
        X, y = read_idx(path, 3), read_idx(labels, 1)
        return path, *read_samples({"X": X.reshape(len(X), X.shape[1] * X.shape[2]), "y": y}, path, "")


def file_names(part: str, content: str) -> list[str]:
    """Return possible names of a file: compressed or not, and with a full stop for the hyphen, as on some servers."""
    return [f"{part}-{content}-ubyte.gz", f"{part}-{content}-ubyte", f"{part}-{content.replace('-', '.')}-ubyte"]


class Mnist(IdxImages, tag="mnist"):
    """MNIST, handwritten digits of 28 x 28 = 784 pixels (x/255 - 0.1307)/0.3081 (flame section V; LeCun et al. 1998).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Scaled by constants that are known without the data.
    supports = Supports.EVERYTHING

    scale = (0.1307, 0.3081)


class Fmnist(IdxImages, tag="fmnist"):
    """Fashion-MNIST, clothes of 28 x 28 = 784 pixels (x/255 - 0.2860)/0.3530 (flame section V; Xiao et al. 2017).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Sources: FLAME, 2023, arXiv 2311.06756; Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017, arXiv 1708.07747.
    """

    # Scaled by constants that are known without the data.
    supports = Supports.EVERYTHING

    scale = (0.2860, 0.3530)


class MedicalMnist(ImageSet, tag="medical-mnist"):
    """Medical MNIST, 58,954 images of 64 x 64 pixels (x/255 - 0.5)/0.5 in six classes (flame section V; Kaggle).

    Each class is a folder of JPEG or PNG images; classes are numbered in the alphabetical order of the folders. A row
    of X is an image (3, 64, 64) in row-major order, 12,288 features. A rank opens the images of its own clients only.
    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Divided by a constant.
    supports = Supports.EVERYTHING
    options = supporting("colour", "size")

    colour: Annotated[bool, Meta(description="true: three channels, as the CNN of flame expects; false: one, grey")] = (
        True
    )
    size: Annotated[int, Meta(ge=1, le=1024, description="side in pixels; images of another size are resized")] = 64

    def locate(self) -> list[Path]:
        return [find_data_file("medical-mnist", "")]

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
