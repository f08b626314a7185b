"""The check of the built site's links: what it calls dead is dead, and nothing else is."""

import runpy

from tests.helpers.commands import ROOT

LINKS = runpy.run_path(str(ROOT / "docs" / "links.py"))


def test_dead_links_and_anchors_of_pages_notebooks_and_the_error_page_are_found(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1> <a href="notebooks/run.html#end">x</a> <img src="lost.png">')
    (tmp_path / "notebooks" / "run.html").write_text(
        '<a name="end"></a><a href="../a.html#top">x</a><a href="../a.md">x</a><a href="../a.html#not">x</a>'
        '<a href="#end">x</a><a href="#gone">x</a>'
        '<a href="https://example.org/no.html">x</a><a href="mailto:a@b.c">x</a>'
    )
    (tmp_path / "404.html").write_text('<a href="/a.html">x</a><a href="/b.html">x</a>')
    assert LINKS["dead"](tmp_path) == [
        "404.html: /b.html",
        "a.html: lost.png",
        "notebooks/run.html: ../a.md",
        "notebooks/run.html: ../a.html#not",
        "notebooks/run.html: #gone",
    ]
