"""All pages by their paths: who is at the browser is asked first, and what the vault refuses becomes a page, too."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import DiscreetError
from discreet.extras import need
from discreet.gateway.console import formats
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.entrance import session_header
from discreet.gateway.console.pages.every_page import PAGES
from discreet.gateway.console.visit import Call, Refusal, Visit
from discreet.gateway.desk.paths import Paths
from discreet.gateway.desk.replies import FAILED, Refused, Reply, check_method, problem
from discreet.gateway.frames import Frame
from discreet.gateway.settings import Settings

if TYPE_CHECKING:
    from discreet.gateway.desk.http import Request

HERE = Path(__file__).parent
TYPES = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml"}

_IMPORT = re.compile(rb'from "\./([a-z_]+\.js)"')


class Item(NamedTuple):
    """A link in the navigation, and for which roles it is there."""

    path: str
    name: str
    roles: Sequence[str]


EVERYONE = ("owner", "steward", "auditor", "analyst", "viewer", "service")
NAVIGATION = (
    Item("/ask", "Ask", ("owner", "analyst", "service")),
    Item("/dashboards", "Dashboards", EVERYONE),
    Item("/history", "History", EVERYONE),
    Item("/budget", "Budget", EVERYONE),
    Item("/accounts", "Accounts", ("owner", "steward", "auditor")),
    Item("/requests", "Requests", ("owner", "steward", "analyst", "service")),
    Item("/policy", "Policy", EVERYONE),
    Item("/record", "Record", ("owner", "auditor")),
    Item("/audit", "Audit", ("owner", "auditor")),
    Item("/health", "Health", ("owner", "steward", "auditor")),
)


class Console:
    """The pages of one gateway."""

    def __init__(self, settings: Settings, pages: Sequence[Page] | None = None) -> None:
        jinja2 = need("jinja2", "gateway", "the console")
        self.settings = settings
        self._paths: Paths[Page] = Paths(PAGES if pages is None else pages)
        self._files = _read_files(HERE / "static")
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= formats.FILTERS
        self._templates.globals |= {"asset": self.asset, "navigation": self.navigation, "settings": settings}

    def has(self, path: str) -> bool:
        """Whether a path leads to a page."""
        return self._paths.find(path) is not None

    def file(self, path: str) -> Reply | None:
        """A style or a script of the pages. None if there is no such file."""
        return self._files.get(path)

    def asset(self, name: str) -> str:
        """The address of a file. It changes with its content, so browsers keep it."""
        return f"/static/{name}?{_digest(self._files[f'/static/{name}'].body).decode()}"

    @staticmethod
    def navigation(role: str) -> list[Item]:
        """The links for a role."""
        return [item for item in NAVIGATION if role in item.roles]

    def render(self, template: str, **values: Any) -> str:
        """A template with these values. All of them are escaped."""
        return str(self._templates.get_template(template).render(**values))

    def enter(self, request: Request, frame: Frame) -> Reply:
        """The first page, after the login provider has said who is there; or the login page, if the vault refuses."""
        visit = Visit(self, request, _no_vault, {})
        if frame.header.get("ok") is not True:
            refusal = Refusal(frame.header)
            return visit.page("login.html", status=refusal.status, refusal=refusal, following="/", oidc=True)
        # not a redirect: a browser sends no strict cookie with one that began at the provider's site
        headers = (session_header(visit, json.loads(frame.body)), (b"refresh", b"0; url=/"))
        return visit.page("entered.html", headers=headers)

    def refuse(self, request: Request, error: DiscreetError) -> Reply:
        """A page for what the desk refuses by itself, such as a path that leads nowhere or too many requests."""
        request.query, request.token = b"", None
        visit = Visit(self, request, _no_vault, {})
        kind = "NotAllowed" if isinstance(error, Refused) else type(error).__name__
        refusal = Refusal({"kind": kind, "code": error.code, "message": str(error)})
        headers = getattr(error, "headers", ())
        return visit.page("refused.html", status=refusal.status, refusal=refusal, headers=headers)

    async def answer(self, request: Request, call: Call) -> Reply:
        """The page for a request, whose token is that of the session in its cookie."""
        found = self._paths.find(request.path)
        assert found is not None
        visit = Visit(self, request, call, found.arguments)
        try:
            return await self._visit(visit, found.places)
        except Refusal as refusal:
            return _refused(visit, refusal)
        except Refused:
            raise
        except DiscreetError as error:
            return _refused(visit, Refusal({"kind": type(error).__name__, "code": error.code, "message": str(error)}))
        except ConnectionError:
            raise
        except Exception:  # whatever it is, it might hold a value: nothing of it is shown or written
            said = "The gateway failed. What was charged stays charged. Go back, and try again."
            return _refused(visit, Refusal({"code": "gateway-failed", "message": said}))

    async def _visit(self, visit: Visit, pages: Mapping[str, Page]) -> Reply:
        method = "GET" if visit.request.method == "HEAD" else visit.request.method
        check_method(method, pages)
        page = pages[method]
        if visit.request.token is not None and not page.open:
            try:
                visit.me = await visit.ask_vault("me")
            except Refusal as refusal:
                if refusal.code != "gateway-login":
                    raise
        if not page.open and not visit.me:
            return visit.go("/login", next=visit.path if method == "GET" and visit.path != "/" else None)
        if method == "POST":
            await visit.read_form()
        return await page.handler(visit)


async def _no_vault(*_: Any, **__: Any) -> Frame:
    raise AssertionError


def _refused(visit: Visit, refusal: Refusal) -> Reply:
    try:
        return visit.page("refused.html", status=refusal.status, refusal=refusal)
    except Exception:
        return FAILED if refusal.status == 500 else problem(refusal.kind, refusal.code, refusal.message)


def _read_files(folder: Path) -> dict[str, Reply]:
    """The files by their paths. A script names the others that it imports by addresses that change with their content,
    too: browsers keep all of them for a year.
    """
    kept = (b"cache-control", b"public, max-age=31536000, immutable")
    texts = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}

    def whole(name: str) -> bytes:
        return _IMPORT.sub(lambda found: b'from "./%s?%s"' % (found[1], _digest(whole(found[1].decode()))), texts[name])

    return {f"/static/{name}": Reply(200, TYPES[Path(name).suffix], whole(name), (kept,)) for name in texts}


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest()[:12].encode()
