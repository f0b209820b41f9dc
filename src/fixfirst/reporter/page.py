"""A report as one HTML page that needs nothing else: figures, style and script are in it."""

from pathlib import Path

from fixfirst.reporter.document import Document

TEMPLATE = "page.html"


def page(document: Document, version: str) -> str:
    """Everything but the figures, which we drew, is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    drawn = {figure.name: Markup(figure.inline()) for figure in document.figures}
    return environment.get_template(TEMPLATE).render(document=document, drawn=drawn, version=version)
