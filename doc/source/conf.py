"""Settings of Sphinx (`make docs`): MyST pages, OpenStack's theme, options and policies read from the code."""

import re
import sys
from pathlib import Path

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from program_options import ProgramOptions  # noqa: E402 (where doc/ is in the path)

API_REF = HERE / "reference" / "api-ref"
"""Where the pages of api-ref/ are copied to for the build: Sphinx takes no page from outside of its folder."""

project = "pondstack"
author = "the pondstack project"
project_copyright = "the pondstack project; Apache License 2.0"
language = "en"

extensions = ["myst_parser", "openstackdocstheme", "oslo_config.sphinxext", "oslo_policy.sphinxext"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
myst_ref_domains = ["std"]  # the domain of oslo.config fails on a link to what is no option of its
nitpicky = True
exclude_patterns = ["_build"]
templates_path: list[str] = []
html_static_path: list[str] = []
suppress_warnings: list[str] = []

html_theme = "openstackdocs"
html_title = "pondstack"
html_theme_options = {"show_other_versions": False, "display_global_toc_section": True, "sidebar_mode": "toctree"}
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
html_last_updated_fmt = ""
openstackdocs_pdf_link = False
smartquotes_action = "qe"  # two hyphens begin an option
pygments_style = "native"
CLI = HERE / "cli"
"""A page for each program; its title is NAME: what it is."""
_TITLES = [re.match(r"# ([\w-]+): (.+)\n", path.read_text()) for path in sorted(CLI.glob("pondstack-*.md"))]
man_pages = [(f"cli/{title[1]}", title[1], title[2], [author], "1") for title in _TITLES if title]
version = release = re.findall(r"^version = (.+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)[0]


def copy_api_ref(_app: Sphinx) -> None:
    """Copy api-ref/*.md below reference/, links adapted; files that are up to date stay untouched."""
    API_REF.mkdir(exist_ok=True)
    pages = {path.name: path.read_text() for path in (ROOT / "api-ref").glob("*.md")}
    for name, text in pages.items():
        text = text.replace("](../doc/source/", "](../../").replace("](samples/", "](../../../../api-ref/samples/")
        if name == "index.md":
            nouns = "\n".join(sorted(page.removesuffix(".md") for page in pages if page != "index.md"))
            text += f"\n```{{toctree}}\n:hidden:\n\n{nouns}\n```\n"
        copy = API_REF / name
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)
    for stale in {path.name for path in API_REF.glob("*.md")} - set(pages):
        (API_REF / stale).unlink()


def link_to_the_copy(_app: Sphinx, _name: str, content: list[str]) -> None:
    """Let links to api-ref/, which are right in the tree, lead to the copy."""
    content[0] = re.sub(r"\]\((?:\.\./)+api-ref/(\w+\.md)", r"](/reference/api-ref/\1", content[0])


def leave_titles_of_links(app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """In a man page a link to another page is that page's title only."""
    if app.builder.format == "man":
        for link in list(doctree.findall(nodes.reference)):
            if "://" not in link.get("refuri", ""):
                link.replace_self(link.children)


def setup(app: Sphinx) -> None:
    """Connect the hooks, and know the directive of programs' options."""
    app.connect("builder-inited", copy_api_ref)
    app.connect("source-read", link_to_the_copy)
    app.connect("doctree-resolved", leave_titles_of_links)
    app.add_directive("program-options", ProgramOptions)
    app.add_lexer("mermaid", TextLexer)  # drawn by what reads Markdown in a repository; a listing here
