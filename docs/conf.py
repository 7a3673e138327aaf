"""Sphinx configuration of the documentation site.

    python -m sphinx -W --keep-going docs build/docs

`_ext/site_pages.py` writes what is generated from the package itself into docs/_generated/.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "Driple"
author = "the Driple authors"
project_copyright = "the Driple authors, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "site_pages",
    "llms_text",
    "plain_docstrings",
    "repository_links",
]
exclude_patterns = ["_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Driple"
html_show_sphinx = False
smartquotes = False  # -- begins a flag

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Seconds to import, and no page needs them.
autodoc_mock_imports = ["tensorflow", "lightning", "transformers"]
napoleon_use_ivar = True
napoleon_attr_annotations = False  # the signature has the types, in short form
napoleon_google_docstring = True
napoleon_numpy_docstring = False
maximum_signature_line_length = 80
default_role = "code"
html_theme_options = {"navigation_with_keys": True}
# Several modules have a class of one name; a link in a signature then has two targets.
# Decisions and studies quote tables and titles whose levels are their own.
suppress_warnings = ["ref.python", "myst.header"]
