"""Pages of the site that are not files of docs/: README and other pages of the repository, the API, and source files.

MkDocs calls these functions, see .mkdocs.yml. Links of the pages lead to files of the repository, as they do on a
forge; here they are turned into links to pages of the site.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from pathlib import Path
from types import FunctionType
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"README.md": "index.md"} | {name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
NOTEBOOK_LINK = re.compile(r'(href="(?![a-z]+:)[^"#]+)\.(?:md|ipynb)(?=[#"])')
BESIDE = re.compile(r"^(\*For .*?)\n\n(!\[.*?)\n\n(\*.*?)\n\n", re.M | re.S)  # for whom and Install, picture, caption
UNSEARCHED = "---\nsearch: {exclude: true}\n---\n"  # nobody looks for a source file by its words
LANGUAGES = {".py": "python", ".toml": "toml", ".sbatch": "bash", ".sh": "bash", ".yml": "yaml", ".cff": "yaml"}

API = """# Python API

*For people who write programs with mpifed.* What they may import from `mpifed` and, for
[components of their own](extending.md), from three modules of it; everything else is private.
"""
GROUPS = {  # title -> module; its names follow from it
    "Running and reading": "mpifed",
    "Components of your own": "mpifed.extend",
    "Building blocks of methods": "mpifed.algorithms.parts",
    "What theory says of a run": "mpifed.theory",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the repository outside docs/, the API, and a page for every file that a page links to."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / path).read_text("utf-8")))
    files.append(File.generated(config, "api.md", content=api()))
    origins = [*PAGES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    linked = {target for origin in origins for target in targets(origin)}
    for target in sorted(linked - set(PAGES)):
        if not target.startswith("docs/") or target.endswith(".py"):
            files.append(File.generated(config, source_uri(target), content=source(target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn the links to files of the repository into links to pages of the site."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    if uri == "index.md":
        markdown, found = BESIDE.subn(beside, markdown, count=1)
        if not found:
            raise PluginError("README.md has no line *For ...*, picture and caption one after the other")
    origin = next((path for path, own in PAGES.items() if own == uri), f"docs/{uri}")

    def replaced(link: re.Match[str]) -> str:
        target = page_of(resolved(origin, link[2]))
        return link[1] + os.path.relpath(target, os.path.dirname(uri) or ".") + link[3]

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Let the links of a notebook, which MkDocs leaves as they are, lead to pages of the site."""
    return NOTEBOOK_LINK.sub(r"\1.html", html) if page.file.src_uri.endswith(".ipynb") else html


def beside(found: re.Match[str]) -> str:
    """The top of the start page: for whom, Install and a command above the picture, in the style of site.css."""
    left, right = found[1], f"{found[2]}\n\n{found[3]}"
    parts = "".join(f"<div markdown>\n\n{part}\n\n</div>\n" for part in (left, right))
    return f'<div class="start" markdown>\n{parts}</div>\n\n'


def targets(origin: str) -> set[str]:
    """The files of the repository that a page links to."""
    text = FENCE.sub("", (ROOT / origin).read_text("utf-8"))
    return {resolved(origin, link[1]) for link in LINK.findall(text)}


def resolved(origin: str, target: str) -> str:
    """The path from the top of the repository that a link in ``origin`` means."""
    return os.path.normpath(os.path.join(os.path.dirname(origin), target))


def page_of(path: str) -> str:
    """The page of the site that stands for a file of the repository."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and not path.endswith(".py") else source_uri(path)


def source_uri(path: str) -> str:
    return f"source/{path}.md"


def source(path: str) -> str:
    """A page that shows a file, or lists a folder."""
    if (ROOT / path).is_dir():
        names = subprocess.check_output(["git", "ls-files", path], cwd=ROOT, text=True).split()
        return f"{UNSEARCHED}# {path}\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"{UNSEARCHED}# {path}\n\n````{language}\n{(ROOT / path).read_text('utf-8')}\n````\n"


def api() -> str:
    """The page of the public names, from their docstrings."""
    lines = [API]
    for title, door in GROUPS.items():
        module = importlib.import_module(door)
        found = {name: getattr(module, name) for name in module.__all__}
        names = [name for name, value in found.items() if isinstance(value, type | FunctionType) and value.__doc__]
        lines += [f"\n## {title}\n", *(f"::: {door}.{name}\n" for name in names)]
    return "\n".join(lines)
