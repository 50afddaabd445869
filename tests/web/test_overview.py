"""The overview: what stands on it, in which order, and what it tells a person who looks elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import HttpServer
from web.visiting import ASKS, Visitor

SHOWN_NAMES = "() => [...document.querySelectorAll('.tile-link')].map(one => one.textContent)"


@pytest.mark.night
def test_twenty_sessions_stand_in_tiles_of_one_height(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    for number in range(19):
        page_server.new(f"s{number}", "cat", wait=False)
    page_server.new("asks", *ASKS)
    one = visit()
    one.open()
    one.tile("asks").get_by_role("button", name="yes").wait_for()
    one.page.wait_for_function("() => document.querySelectorAll('.tile').length === 20")
    heights = one.page.evaluate("() => [...document.querySelectorAll('.tile')].map(one => one.offsetHeight)")
    assert len(set(heights)) == 1
    assert one.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.night
def test_who_needs_a_person_stands_first(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("a", "bash")
    page_server.new("z", *ASKS)
    one = visit()
    one.open()
    one.page.wait_for_function(f"() => ({SHOWN_NAMES})().join() === 'z,a'")
    one.tile("z").get_by_text("Deploy to production?").wait_for()
    assert one.tile("z").locator(".status").inner_text() == "asking confirm"


@pytest.mark.night
def test_a_question_is_answered_by_its_button(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("deploy", *ASKS)
    one = visit()
    one.open()
    one.page.wait_for_function("() => document.title === '(1) tmuxctl'")
    assert ">1</text>" in (one.page.locator("#favicon").get_attribute("href") or "")
    one.tile("deploy").get_by_role("button", name="yes").click()
    one.tile("deploy").get_by_text("you said y").wait_for()


@pytest.mark.night
def test_a_short_answer_beside_a_long_one_is_read_whole(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    long = "yes, and always allow access to everything that lies below this folder of mine"
    page_server.new("pick", "bash", "-c", f'select one in yes "{long}" no; do break; done; exec cat')
    for about in ({}, {"viewport": {"width": 390, "height": 844}}):
        one = visit(**about)
        one.open()
        buttons = one.tile("pick").locator(".answer bdi")
        buttons.nth(2).wait_for()
        cut = buttons.evaluate_all("found => found.map(one => one.scrollWidth > one.clientWidth)")
        assert cut == [False, True, False]
        assert one.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_the_title_says_no_number_when_none_asks(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("calm", "bash")
    one = visit()
    one.open()
    one.tile("calm").wait_for()
    assert one.page.title() == "tmuxctl"
    assert one.page.locator("#favicon").get_attribute("href") == "/favicon.svg"


@pytest.mark.night
def test_tiles_stand_still_under_a_pointer(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    for name in ("a", "b", "c"):
        page_server.new(name, "bash")
    one = visit()
    one.open()
    one.page.wait_for_function(f"() => ({SHOWN_NAMES})().join() === 'a,b,c'")
    one.tile("a").hover()
    page_server.post("/v1/sessions/c/send", {"text": "read -p 'Go on? [y/N] ' x"})
    one.tile("c").get_by_role("button", name="yes").wait_for()
    assert one.page.evaluate(SHOWN_NAMES) == ["a", "b", "c"]
    one.page.get_by_role("button", name="Sort again").wait_for()
    one.page.mouse.move(5, 5)
    one.page.wait_for_function(f"() => ({SHOWN_NAMES})().join() === 'c,a,b'")


@pytest.mark.night
def test_sessions_are_found_by_words_and_tags(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("web", "cat", tag=["shop"])
    page_server.new("db", "cat", tag=["shop", "slow"])
    page_server.new("other", "cat")
    one = visit()
    one.open()
    one.page.wait_for_function("() => document.querySelectorAll('.tile').length === 3")
    one.page.keyboard.press("/")
    one.page.keyboard.type("oth")
    one.page.wait_for_function(f"() => ({SHOWN_NAMES})().join() === 'other'")
    one.page.keyboard.press("Escape")
    one.page.get_by_role("button", name="#slow").click()
    one.page.wait_for_function(f"() => ({SHOWN_NAMES})().join() === 'db'")
    one.page.get_by_label("Filter the sessions").fill("nothing like this")
    one.page.get_by_text("No session matches").wait_for()
    one.page.get_by_role("button", name="Clear the filter").click()
    one.page.wait_for_function("() => document.querySelectorAll('.tile').length === 3")


@pytest.mark.night
def test_the_shape_of_the_list_is_remembered(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("work", "cat")
    one = visit()
    one.open()
    one.page.get_by_role("button", name="Rows").click()
    one.page.locator("li.row").wait_for()
    one.page.reload()
    one.page.locator("li.row").wait_for()


@pytest.mark.night
def test_colours_are_chosen_and_remembered(visit: Callable[..., Visitor]) -> None:
    one = visit(color_scheme="light")
    one.open()
    one.page.get_by_role("button", name="Colours").click()
    one.page.get_by_role("button", name="Colours: light").click()
    one.page.reload()
    one.page.get_by_role("button", name="Colours: dark").wait_for()
    colour = one.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(20, 22, 26)"


TOLD = """
window.told = [];
window.Notification = class { constructor(title, options) { window.told.push(`${title}: ${options.body}`); } close() {} };
Notification.permission = "granted";
Notification.requestPermission = async () => "granted";
navigator.serviceWorker.getRegistration = async () => undefined;
"""


@pytest.mark.night
def test_a_notification_comes_once_for_each_question(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("before", *ASKS)
    page_server.new("shell", "bash")
    one = visit()
    one.page.add_init_script(TOLD)
    one.open()
    one.tile("before").wait_for()
    one.page.get_by_role("button", name="Notifications").click()
    page_server.post("/v1/sessions/shell/send", {"text": "read -p 'Go on? [y/N] ' x"})
    one.page.wait_for_function("() => window.told.length")
    assert one.page.evaluate("() => window.told") == ["shell asks: Go on? [y/N]"]
    one.page.reload()
    one.tile("shell").get_by_role("button", name="yes").wait_for()
    assert one.page.evaluate("() => window.told") == []


@pytest.mark.night
def test_what_is_looked_at_needs_no_notification(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    one = visit()
    one.page.add_init_script(TOLD)
    one.open()
    one.tile("shell").wait_for()
    one.page.get_by_role("button", name="Notifications").click()
    one.tile("shell").get_by_role("link").click()
    one.await_terminal()
    one.page.keyboard.type("read -p 'Go on? [y/N] ' x\n")
    one.page.get_by_role("button", name="yes").wait_for()
    assert one.page.evaluate("() => window.told") == []
