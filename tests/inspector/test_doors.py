"""Who may ask, and from where: everything else is refused before anything is looked up."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest

from tests.inspector.asking import HOST, PORT, ask
from timeline.errors import InvalidArgument
from timeline.inspector import inspector
from timeline.inspector.doors import TokenDoor
from timeline.inspector.serving import Place
from timeline.integrations.loopback import loopback_hosts

if TYPE_CHECKING:
    from starlette.requests import Request

    from timeline.ports import EventStore

ALL = "/v1/conversations"
ROOT = "/"
EVERYWHERE = str(IPv4Address(0))


@pytest.fixture
def door() -> TokenDoor:
    """Give a door with a token of its own."""
    return TokenDoor(PORT)


@pytest.fixture
def guarded(store: EventStore, door: TokenDoor) -> Any:
    """Give the inspector as `timeline inspect` serves it."""
    return inspector(store, auth=door, hosts=loopback_hosts(PORT))


@pytest.mark.parametrize("path", [ALL, ROOT, "/v1/openapi.json", "/nowhere"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"evil.example:{PORT}"},
        {"host": "127.0.0.1:9999"},
        {"host": f"127.0.0.1.evil.example:{PORT}"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
async def test_a_request_of_a_foreign_host_or_origin_is_refused(
    guarded: Any, door: TokenDoor, headers: dict[str, str], path: str
) -> None:
    """Also with the token: by DNS rebinding a page of another site asks under a name of its own."""
    answer = await ask(guarded, path, headers={"authorization": f"Bearer {door.token}", **headers})
    assert (answer.status, answer.json["type"]) == (403, "foreign-request")


@pytest.mark.parametrize(
    "header",
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "cf-connecting-ip"],
)
async def test_without_a_door_nothing_is_answered_through_a_proxy(store: EventStore, header: str) -> None:
    """It may name a loopback host, and ask for anybody; with a door, that decides."""
    passed_on = {header: "203.0.113.9"}
    answer = await ask(inspector(store), ALL, headers=passed_on)
    assert (answer.status, answer.json["type"]) == (403, "foreign-request")
    assert (await ask(inspector(store, auth=lambda _: True), ALL, headers=passed_on)).status == 200


async def test_a_link_on_another_site_opens_the_page(guarded: Any, door: TokenDoor) -> None:
    """Who follows it sees what is opened."""
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = await ask(guarded, ROOT, headers={"authorization": f"Bearer {door.token}", **link})
    assert answer.status == 200


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
async def test_loopback_names_with_our_port_are_ours(guarded: Any, door: TokenDoor, host: str) -> None:
    """And so is a page of ours, by its origin."""
    headers = {"authorization": f"Bearer {door.token}", "host": host, "origin": f"http://{host}"}
    assert (await ask(guarded, ALL, headers=headers)).status == 200


@pytest.mark.parametrize("path", [ALL, ROOT, "/v1/conversations/a/blocks", "/nowhere"])
@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "Basic eDp5", "Bearer \xe9"])
async def test_without_the_token_nothing_is_answered(guarded: Any, path: str, authorization: str) -> None:
    """Not even whether there is something at an address."""
    answer = await ask(guarded, path, headers={"authorization": authorization})
    assert (answer.status, answer.json["type"]) == (403, "not-let-in")


async def test_the_token_in_the_address_becomes_a_cookie_that_no_script_reads(guarded: Any, door: TokenDoor) -> None:
    """The answer is a redirect without the token, so that it stays in no history and no referrer."""
    entered = await ask(guarded, ROOT, {"token": door.token, "view": "log"})
    assert (entered.status, entered.headers["location"]) == (303, "./?view=log")
    cookie, *flags = entered.headers["set-cookie"].split("; ")
    assert {flag.lower() for flag in flags} == {"httponly", "path=/", "samesite=strict"}
    assert door.token not in cookie
    assert cookie.startswith(f"timeline-inspector-{PORT}=")
    assert (await ask(guarded, ALL, headers={"cookie": cookie})).status == 200
    assert (await ask(guarded, ALL, headers={"cookie": cookie + "x"})).status == 403


async def test_the_token_of_the_browser_that_we_open_lets_in_once(guarded: Any, door: TokenDoor) -> None:
    """Other users of the machine see the command line that opened it."""
    once = door.once()
    assert [(await ask(guarded, ROOT, {"token": once})).status for _ in range(2)] == [303, 403]
    assert (await ask(guarded, ALL, headers={"authorization": f"Bearer {once}"})).status == 403


async def test_a_redirect_never_leads_away(guarded: Any, door: TokenDoor) -> None:
    """An address that begins with two slashes is no host."""
    answer = await ask(guarded, "//evil.example/a:b", {"token": door.token})
    assert (answer.status, answer.headers["location"]) == (303, "./a%3Ab")


@pytest.mark.parametrize("token", ["short", "with\nline end of its own", "ä" * 20])
def test_a_token_that_can_be_guessed_is_refused(token: str) -> None:
    """It is all that keeps others out."""
    with pytest.raises(InvalidArgument, match="16"):
        TokenDoor(PORT, token)


@pytest.mark.parametrize("address", ["192.168.1.5", EVERYWHERE, "10.0.0.1", "example.org", "::"])
async def test_without_auth_a_server_that_others_reach_fails_at_the_first_request(
    store: EventStore, address: str
) -> None:
    """The application finds out before anybody else does."""
    with pytest.raises(InvalidArgument, match="auth="):
        await ask(inspector(store), ALL, server=(address, PORT))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "/run/app.sock"])
async def test_without_auth_a_server_on_loopback_answers_loopback_names(store: EventStore, address: str) -> None:
    """A foreign Host is refused there too."""
    app = inspector(store)
    assert (await ask(app, ALL, server=(address, PORT))).status == 200
    assert (await ask(app, ALL, server=(address, PORT), headers={"host": "evil.example"})).status == 403


async def test_an_application_decides_who_may_ask_by_a_function_of_its_own(store: EventStore) -> None:
    """Anything but True keeps a request out, also a coroutine's answer; its own hosts are as it says."""

    async def auth(request: Request) -> bool:
        return request.headers.get("x-user") == "ada"

    app = inspector(store, auth=auth, hosts=["agents.example"])
    for host, user, status in (
        ("agents.example", "ada", 200),
        ("agents.example", "eve", 403),
        ("evil.example", "ada", 403),
    ):
        answer = await ask(app, ALL, headers={"host": host, "x-user": user}, server=("10.0.0.1", 80))
        assert answer.status == status, (host, user)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_written(guarded: Any, door: TokenDoor, method: str) -> None:
    """By no method, at no address."""
    headers = {"authorization": f"Bearer {door.token}"}
    assert (await ask(guarded, ALL, method=method, headers=headers)).status == 405


async def test_every_answer_says_what_a_browser_may_do_with_it(guarded: Any, door: TokenDoor) -> None:
    """Problems too: nothing is loaded from elsewhere, framed, guessed or passed on."""
    for path, bearer in ((ALL, door.token), (ALL, "no"), ("/nowhere", door.token)):
        headers = (await ask(guarded, path, headers={"authorization": f"Bearer {bearer}"})).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("place", "cure"),
    [
        (Place(host=EVERYWHERE), "--token"),
        (Place(host="192.168.1.5", token="a" * 20), "--behind-proxy"),
        (Place(host="::"), "--token"),
    ],
)
def test_an_address_that_others_reach_needs_a_token_and_an_encrypted_line(place: Place, cure: str) -> None:
    """Neither is turned off by forgetting it."""
    with pytest.raises(InvalidArgument, match=cure):
        place.check()


@pytest.mark.parametrize(
    "place",
    [
        Place(),
        Place(host="::1"),
        Place(host=EVERYWHERE, token="a" * 20, behind_proxy=True),
        Place(host=EVERYWHERE, token="a" * 20, certificate="c.pem", key="k.pem"),
    ],
)
def test_a_safe_place_is_served(place: Place) -> None:
    """Loopback needs neither."""
    place.check()
