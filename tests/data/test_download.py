"""Downloads are checked, and leave nothing behind when they fail."""

import bz2
import functools
import hashlib
import http.server
import stat
import threading
import zipfile
from pathlib import Path

import pytest

from mpifed.core.errors import UserError
from mpifed.data import download
from mpifed.data.download import fetch
from mpifed.data.public import PUBLIC, Download, PublicSet
from tests.helpers.image_files import REAL


@pytest.fixture
def publish(monkeypatch):
    """Says where the files of a set are."""
    return lambda url, sha256=None, files=("a.csv",), name="qot": monkeypatch.setitem(
        PUBLIC, name, PublicSet((Download(url, sha256, files),))
    )


@pytest.fixture
def archive(tmp_path, publish):
    """Publishes a zip archive of these members; its checksum."""

    def write(members=("qsar.csv",), files=("qsar.csv",), sha256=""):
        with zipfile.ZipFile(tmp_path / "set.zip", "w") as out:
            for member in members:
                info = zipfile.ZipInfo(member)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16  # as if they were links
                out.writestr(info, f"{member}: 1;0;positive\n")
            out.writestr("../evil.txt", "outside")
        digest = hashlib.sha256((tmp_path / "set.zip").read_bytes()).hexdigest()
        publish((tmp_path / "set.zip").as_uri(), digest if sha256 == "" else sha256, files)
        return digest

    return write


def test_fetch_puts_the_members_wanted_in_place_and_nothing_else(tmp_path, archive):
    digest = archive(members=("a.csv", "b.csv", "c.csv"), files=("a.csv", "c.csv"))
    to = tmp_path / "deep/data"
    (to / "qot").mkdir(parents=True)
    (to / "qot/c.csv").symlink_to(tmp_path / "outside")
    assert fetch("qot", to) == {to / "qot" / name: f"SHA-256 {digest}, as published" for name in ("a.csv", "c.csv")}
    assert (to / "qot/c.csv").read_text() == "c.csv: 1;0;positive\n"
    assert not (to / "qot/c.csv").is_symlink()
    assert not (tmp_path / "outside").exists()
    assert sorted(p.name for p in (tmp_path / "deep").rglob("*")) == ["a.csv", "c.csv", "data", "qot"]
    (to / "qot/a.csv").write_text("mine")
    (to / "qot/c.csv").unlink()
    assert [note == "exists already" for note in fetch("qot", to).values()] == [True, False]
    assert (to / "qot/a.csv").read_text() == "mine"  # what is there is left alone
    digest = archive(sha256=None)
    assert [*fetch("qot", tmp_path / "to").values()] == [f"SHA-256 {digest}; none is published to compare it with"]


def test_fetch_leaves_nothing_behind_when_something_is_wrong(tmp_path, archive, monkeypatch):
    def refused(sentence):
        with pytest.raises(UserError, match=sentence):
            fetch("qot", tmp_path / "to")

    archive(sha256="0" * 64)
    refused(r"set\.zip has the SHA-256 .*: it should be 0000.*, so it was deleted")
    archive(members=("../../qsar.csv",))
    refused(r"qot cannot be downloaded from file:.*set\.zip to .*qsar\.csv")
    archive(sha256=None)
    head, mark, rest = (tmp_path / "set.zip").read_bytes().partition(b"PK\1\2")  # its member is said to be larger
    (tmp_path / "set.zip").write_bytes(head + mark + rest[:16] + 2 * (1 << 20).to_bytes(4, "little") + rest[24:])
    refused(r"qot cannot be downloaded from .*: \w.*$")  # each Python has other words for it
    archive()
    monkeypatch.setattr(download, "LARGEST", 100)
    refused(r"set\.zip has more than")
    (tmp_path / "set.zip").write_text("<html>not here any more</html>")
    refused(r"the server did not send a \.zip file")
    assert list((tmp_path / "to/qot").iterdir()) == []


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; of what is called "half" only a half, of "junk" what is no HTTP, of "odd" no number of bytes."""

    def do_GET(self):
        if "junk" in self.path:
            self.wfile.write(b"no such protocol\n")
        elif "half" in self.path or "odd" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "1000" if "half" in self.path else "many")
            self.end_headers()
            self.wfile.write(b"BZh" + bytes(497))
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """The address of a server of tmp_path on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=tmp_path)) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_fetch_over_http(tmp_path, publish, server):
    (tmp_path / "x.bz2").write_bytes(bz2.compress(b"1 1:1\n"))
    reasons = {"none": "HTTP Error 404", "half": "broke off after 500 of 1000 bytes", "junk": "", "odd": ""}
    for file, reason in reasons.items():
        publish(f"{server}/{file}.bz2", files=(f"{file}.bz2",))
        sentence = f"qot cannot be downloaded from {server}/{file}.bz2 to .*{reason}"
        with pytest.raises(UserError, match=sentence) as caught:
            fetch("qot", tmp_path / "to")
        assert "\n" not in str(caught.value)
    publish(f"{server}/x.bz2", files=("x.bz2",))
    (path,) = fetch("qot", tmp_path / "to")
    assert path.read_bytes() == (tmp_path / "x.bz2").read_bytes()
    assert [path.name for path in (tmp_path / "to/qot").iterdir()] == ["x.bz2"]


def test_fetch_refuses_what_it_does_not_know_or_cannot_reach(tmp_path, publish):
    with pytest.raises(UserError, match=r"unknown data set 'qott'; did you mean 'qot'\?"):
        fetch("qott", tmp_path)
    (tmp_path / "file").write_text("")
    for url, to, reason in (
        ((tmp_path / "none").as_uri(), tmp_path, "No such file"),
        ("http://127.0.0.1:9/a.csv", tmp_path, "Connection refused"),
        ((tmp_path / "none").as_uri(), tmp_path / "file", "Not a directory"),
    ):
        publish(url)
        with pytest.raises(UserError, match=rf"qot cannot be downloaded from {url} to .*a\.csv: {reason}"):
            fetch("qot", to)
    for name in ("sct", "medical-mnist"):
        login = rf"{name} cannot be downloaded without a login: download .*kaggle\.com/.* DIR/{name}.* MPIFED_DATA=DIR"
        with pytest.raises(UserError, match=login):
            fetch(name, tmp_path)


def test_every_set_has_a_safe_address_and_sums_are_those_of_sha256():
    for source in [source for one in PUBLIC.values() for source in one.downloads]:
        assert source.url.startswith(("https://", "http://fashion-mnist"))
        assert source.sha256 is None or len(source.sha256) == 64
    for source in PUBLIC["mnist"].downloads[2:]:
        path = Path(REAL, "mnist", source.files[0])
        assert not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() == source.sha256
