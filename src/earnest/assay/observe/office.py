"""Office documents as records: what stands in their cells and paragraphs, and what else a person would miss.

The parts of a package (ISO/IEC 29500-2) are read as XML. Programs write whole packages anew with other parts, orders and
defaults, so only elements that say something of their own are taken, with the attributes that say it (ISO/IEC 29500-1), and
looks (formats, widths, layout) stand in areas of their own: what is written over there is a change, but nothing is lost by it.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree import ElementTree

from earnest.assay.observe.masks import masked

Record = tuple[str, str]
LOOK: Final = " (look)"
"""The end of the area of what is only a look."""
NAME: Final = " (name)"
"""The end of the area of what has a name: another name for it is no loss, one name less is."""

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "definedName": ("name", "localSheetId"), "mergeCell": ("ref",), "dataValidation": ("type", "sqref"),
    "comment": ("ref",), "threadedComment": ("ref",), "sparkline": (), "workbookProtection": ("lockStructure",),
    "sheetProtection": ("sheet",),
    "title": (), "subject": (), "keywords": (), "description": (), "category": (), "contentStatus": (), "f": (), "v": (),
}  # fmt: skip
_NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "sheet": ("name", "state"), "table": ("displayName", "ref"), "pivotTableDefinition": ("name",), "slicer": ("name",),
    "timeline": ("name",), "cNvPr": ("name",), "docPr": ("name",),
}  # fmt: skip
_LOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditionalFormatting": ("sqref",), "autoFilter": ("ref",), "pane": ("xSplit", "ySplit", "state"),
    "col": ("min", "max", "width", "hidden"), "row": ("ht", "hidden"), "tabColor": ("rgb", "theme"),
    "pageSetup": ("orientation", "paperSize", "fitToWidth", "fitToHeight"), "calcPr": ("calcMode", "iterate"),
    "sheetView": ("showGridLines", "zoomScale", "rightToLeft"), "tableStyleInfo": ("name", "showRowStripes"),
    "hyperlink": ("ref", "location"), "from": (), "oddHeader": (), "oddFooter": (), "rowBreaks": ("count",),
}  # fmt: skip
_WHOLE: Final = frozenset(
    {"definedName", "dataValidation", "comment", "threadedComment", "sparkline", "conditionalFormatting", "from", "oddHeader",
     "oddFooter", "title", "subject", "keywords", "description", "category", "contentStatus"}
)  # fmt: skip
"""Elements of which all the text counts."""
_UNREAD: Final = re.compile(
    r"(?:^|/)(?:styles|theme\d*|sharedStrings|calcChain|app|metadata|persons?\d*)\.xml$|\.rels$|xl/charts/(?:style|colors)\d*\.xml$"
)


def is_package(names: list[str]) -> bool:
    """Whether an archive with these members is an office document."""
    return "[Content_Types].xml" in names


def records(archive: zipfile.ZipFile, names: list[str]) -> Iterator[Record]:
    """The records of a document. Raises ValueError for one whose XML is not read: broken, or with a document type."""
    shared = [_text(item) for item in _root(archive, "xl/sharedStrings.xml")] if "xl/sharedStrings.xml" in names else []
    looks = _styles(_root(archive, "xl/styles.xml")) if "xl/styles.xml" in names else []
    for name in names:
        if "/media/" in name:
            yield "media", hashlib.sha256(archive.read(name)).hexdigest()[:16]
        elif not name.endswith(".xml") or _UNREAD.search(name):
            continue
        elif name.startswith("xl/worksheets/"):
            yield from _sheet(name, _root(archive, name), shared, looks)
        elif name.startswith(("word/document", "word/header", "word/footer", "word/comments", "ppt/slides/slide")):
            yield from _paragraphs(name, _root(archive, name))
        elif name.startswith(("xl/", "docProps/core")):
            yield from _told(_general(name), _root(archive, name))


def _root(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    data = archive.read(name)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError(f"{name} has a document type")
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def _general(name: str) -> str:
    """The kind of a part: libraries number them as they like."""
    return re.sub(r"\d*\.xml$", "", name).removeprefix("xl/")


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _told(area: str, root: ElementTree.Element) -> Iterator[Record]:
    for element in root.iter():
        tag = _local(element)
        if tag in ("f", "v") and not area.startswith("charts"):
            continue  # a cell's, which has its own record
        for wanted, end in ((_KEPT, ""), (_NAMED, NAME), (_LOOKS, LOOK)):
            if tag in wanted:
                said = [f"{key}={element.get(key)}" for key in wanted[tag] if element.get(key) not in (None, "0", "visible")]
                text = _text(element) if tag in _WHOLE or not wanted[tag] else ""
                if said or text:
                    yield f"{area} {tag}{end}", " ".join(filter(None, [*said, text]))


def _sheet(area: str, root: ElementTree.Element, shared: list[str], looks: list[str]) -> Iterator[Record]:
    order = hashlib.sha256()
    for cell in root.iter():
        if _local(cell) != "c":
            continue
        parts = {_local(inner): _text(inner) for inner in cell}
        text = parts.get("v", parts.get("is", ""))
        if cell.get("t") == "s" and text.isdigit() and int(text) < len(shared):
            text = shared[int(text)]
        if parts.get("f"):
            text = f"={parts['f']}"  # what it comes to follows from other cells
        if text:
            yield area, text  # where it stands changes when rows are put in above it
            order.update(masked(text).encode() + b"\0")
        style = cell.get("s", "0")
        if style.isdigit() and int(style) < len(looks) and looks[int(style)]:
            yield f"{area}{LOOK}", looks[int(style)]
    yield f"{area} order{LOOK}", order.hexdigest()[:16]
    yield from _told(area, root)


def _styles(root: ElementTree.Element) -> list[str]:
    """What each cell format of a workbook looks like, in words; the plain one is empty."""
    lists = {_local(child): list(child) for child in root}
    codes = {one.get("numFmtId"): one.get("formatCode", "") for one in lists.get("numFmts", ())}
    found = []
    for form in lists.get("cellXfs", ()):
        said = [codes.get(form.get("numFmtId"), form.get("numFmtId") or "")]
        for key, kind in (("fontId", "fonts"), ("fillId", "fills"), ("borderId", "borders")):
            number = form.get(key) or "0"
            some = lists.get(kind, [])
            said.append(_spelled(some[int(number)]) if number.isdigit() and int(number) < len(some) else "")
        said += [_spelled(child) for child in form]
        found.append("|".join(said))
    plain = found[0] if found else ""
    return ["" if one == plain else one for one in found]


def _spelled(element: ElementTree.Element) -> str:
    inner = sorted(filter(None, (_spelled(child) for child in element)))
    own = [f"{key.rpartition('}')[2]}={value}" for key, value in sorted(element.attrib.items())]
    return f"{_local(element)}({' '.join([*own, *inner])})" if own or inner else ("" if len(element) else _local(element))


def _paragraphs(area: str, root: ElementTree.Element) -> Iterator[Record]:
    for element in root.iter():
        if _local(element) == "p":
            text = "".join(inner.text or "" for inner in element.iter() if _local(inner) == "t").strip()
            if text:
                yield area, text
    for element in root.iter():
        if _local(element) in _NAMED and element.get("name"):
            yield f"{area} {_local(element)}{NAME}", str(element.get("name"))
