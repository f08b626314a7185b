"""Public data sets: a row for each, with its downloads and its files, and the search for these in MPIFED_DATA."""

import itertools
import os
from pathlib import Path
from typing import NamedTuple

from mpifed.core.errors import UserError


class Download(NamedTuple):
    """A published file of a data set, or a zip archive of which only the members ``files`` are extracted."""

    url: str
    sha256: str | None  # of the download; None: none is published
    files: tuple[str, ...]


class PublicSet(NamedTuple):
    """A public data set: its downloads, and the files that are read.

    ``files``: groups of files that are read together; the first group counts whose first file exists. ``login``: advice
    for a set behind a login, in place of downloads. ``shared``: a second folder to look in, of several sets.
    """

    downloads: tuple[Download, ...] = ()
    files: tuple[tuple[str, ...], ...] = ()
    login: str = ""
    shared: str = ""


def mnist_set(base: str, *sums: str) -> PublicSet:
    """Return the row of a data set in four files like those of MNIST, with their checksums ``sums``."""
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return PublicSet(tuple(Download(base + name, digest, (name,)) for name, digest in zip(names, sums, strict=True)))


def libsvm_set(name: str) -> PublicSet:
    """Return the row of a table of two classes in the LIBSVM collection."""
    files = ((name,), (f"{name}.gz",), (f"{name}.bz2",))
    return PublicSet((Download(f"{LIBSVM}binary/{name}", None, (name,)),), files, shared="libsvm")


UCI = "https://archive.ics.uci.edu/static/public/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
ADULT = "7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb"
PUBLIC = {
    "qot": PublicSet(
        (Download(f"{UCI}508/qsar+oral+toxicity.zip", None, ("qsar_oral_toxicity.csv",)),),
        (("toxicity.mat", "toxicityclass.mat"), ("qsar_oral_toxicity.csv",)),
    ),
    "adult": PublicSet(
        (Download(f"{UCI}2/adult.zip", ADULT, ("adult.data", "adult.test")),),
        (("adult.mat", "adultclass.mat"), ("adult.data", "adult.test")),
    ),
    "mnist": mnist_set(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "fmnist": mnist_set(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    "rcv1": PublicSet(
        tuple(
            Download(f"{LIBSVM}{kind}/rcv1_train.{kind}.bz2", None, (f"rcv1_train.{kind}.bz2",))
            for kind in ("binary", "multiclass")
        )
    ),
    **{name: libsvm_set(name) for name in ("a9a", "w8a", "phishing", "mushrooms")},
    "sct": PublicSet(
        files=(("train.csv",),),
        login="download train.csv of kaggle.com/c/santander-customer-transaction-prediction to DIR/sct, "
        "then set MPIFED_DATA=DIR",
    ),
    "medical-mnist": PublicSet(
        files=(("",),),  # the folder itself
        login="download kaggle.com/datasets/andrewmvd/medical-mnist and unpack it so that its class folders "
        "(AbdomenCT, BreastMRI …) are in DIR/medical-mnist, then set MPIFED_DATA=DIR",
    ),
}


def find_files(name: str) -> list[Path]:
    """Return the files of a public data set that are read; UserError where one is not there."""
    groups = {group[0]: group for group in PUBLIC[name].files}
    path = find_data_file(name, *groups)
    return [path, *(find_data_file(name, other) for other in groups.get(path.name, ())[1:])]


def find_data_file(name: str, *files: str) -> Path:
    """Return the first of ``files`` that exists in $MPIFED_DATA/name ("": the folder itself), or UserError."""
    root = os.environ.get("MPIFED_DATA", "")
    one = PUBLIC[name]
    folders = [folder for folder in (name, one.shared) if root and folder]
    for folder, file in itertools.product(folders, files):
        path = Path(os.path.expanduser(root), folder, file)
        if os.path.isfile(path) or (not file and os.path.isdir(path)):
            return path
    where = Path(root) / name if root else f"$MPIFED_DATA/{name}, because MPIFED_DATA is not set"
    hint = one.login or f"python -m mpifed data get {name} --to DIR downloads it, then set MPIFED_DATA=DIR"
    raise UserError(f'data = "{name}" finds no {" or ".join(files) or "images"} in {where}: {hint}')
