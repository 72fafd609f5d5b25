"""How the site is built: `make docs`, or `python -m sphinx -W docs docs/_build/html`."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "agg")

project = "inlier"
author = "the maintainers of inlier"
copyright = author
release = version = version_of("inlier")

extensions = [
    "benchmark_results",
    "mathml",
    "myst_parser",
    "numpydoc",
    "public_names",
    "repository_links",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
]
exclude_patterns = ["_build", "**/*.ipynb", "gallery/*.py", "gallery/searchindex*"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
suppress_warnings = ["config.cache"]  # a class in sphinx_gallery_conf cannot be pickled, and need not be
default_role = "autolink"

# ---- pages: Markdown that also reads well where it lies
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
html_math_renderer = "mathml"  # browsers draw MathML: nothing is fetched
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# ---- reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

# ---- gallery: scripts of examples/, run while the site is built
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/(?!single_cells)[a-z]\w*\.py$",  # which needs packages that hold others back: shown, not run
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "doc_module": ("inlier",),
    "backreferences_dir": "gallery/of",
    "inspect_global_variables": False,
    "default_thumb_file": str(HERE / "_static" / "logo.png"),
    "write_computation_times": False,
    "matplotlib_animations": False,
}

# ---- llms.txt: the pages for coding agents, one line each, and all of them as one text
llms_txt_title = "inlier"
llms_txt_summary = "Given two sets of paired points, which pairs are real? A Python library and command line."
llms_txt_uri_template = "_sources/{docname}{suffix}{sourcelink_suffix}"
llms_txt_exclude = ["gallery/*", "api/generated/*", "changelog", "constants", "code-of-conduct", "releasing"]

# ---- looks
html_theme = "pydata_sphinx_theme"
html_title = "inlier"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "inlier"},
    "github_url": "https://github.com/OWNER/inlier",
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark-high-contrast",
}
html_sidebars = {"index": [], "start": [], "benchmarks": [], "changelog": []}
html_context = {"default_mode": "auto"}
