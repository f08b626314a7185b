"""Check the links of the built site: every link, anchor, picture and script of its own is there, notebooks included.

MkDocs checks the links of pages that it makes from Markdown. It does not see those of notebooks, of raw HTML and of the
theme, so the pages are read again as they were written. MkDocs calls ``on_post_build``, see .mkdocs.yml.
"""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ANCHORS = ("id", "name")
TOP = {"", "__consent", "__tabbed"}  # anchors that every browser or the theme knows
SHOWN = 20  # dead links in the message


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ANCHORS and value:
                self.anchors.add(value)
            if key in ("href", "src") and value and tag != "base":
                self.links.append(value)


def on_post_build(config: Any) -> None:
    """End the build with a list of the dead links, if there are any."""
    found = dead(Path(config["site_dir"]))
    if found:
        from mkdocs.exceptions import PluginError

        more = [] if len(found) <= SHOWN else [f"and {len(found) - SHOWN} more"]
        raise PluginError("\n".join(["links that lead nowhere:", *found[:SHOWN], *more]))


def dead(site: Path) -> list[str]:
    """``page: link`` for every link of a page to a file or an anchor of the site that is not there."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in dict.fromkeys(page.links)
        if not leads(site, path, link, pages)
    ]


def leads(site: Path, path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file, and its anchor to an element there; links to other sites are not followed."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    folder = site if parts.path.startswith("/") else path.parent  # 404.html may stand in for a page of any folder
    target = Path(os.path.normpath(folder / unquote(parts.path).lstrip("/"))) if parts.path else path
    if target.is_dir():
        target /= "index.html"
    anchor = unquote(parts.fragment)
    return target.is_file() and (target not in pages or anchor in TOP or anchor in pages[target].anchors)
