"""The player of animations in a browser, under the policy of its page."""

import pytest

from tests.lab import browser
from tests.plots import test_pages

folders, pytestmark = test_pages.folders, test_pages.pytestmark


@pytest.mark.long
def test_the_player_works_under_the_policy_and_no_other_script_does(folders, tmp_path):
    """The same page with a script in its body is refused that script, and nothing else."""
    hostile = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'><p style='color: red' id=red>red</p>"
    (tmp_path / "hostile.html").write_text(test_pages.as_page("hostile", hostile), encoding="utf-8")
    frame = test_pages.animation(test_pages.PLAIN, tmp_path)._repr_html_()
    (tmp_path / "frame.html").write_text(f"<!doctype html><body>{frame}", encoding="utf-8")
    with browser.browser() as page:
        for path in (folders[0] / "run" / "report.html", folders[0] / "a.html"):
            page.requests.clear()
            page.open(path.as_uri(), "document.querySelector('.player input')?.max > 0")
            assert page.ask("getComputedStyle(document.querySelector('.stage')).position") == "relative"
            assert page.ask(
                "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 300, 150).data.some(Boolean)"
            )
            page.ask("document.querySelector('.player button').click()")
            page.until("document.querySelector('.player input').value > 0")
            assert page.ask("typeof window.hit") == "undefined"
            assert not page.errors
            assert all(
                address.startswith("data:")
                for address in page.requests
                if address not in ("about:blank", path.as_uri())
            )
        page.open((tmp_path / "frame.html").as_uri(), "frames.length == 1 && document.readyState == 'complete'")
        assert page.ask("document.querySelector('iframe').contentDocument === null")
        assert not page.errors
        page.open((tmp_path / "hostile.html").as_uri(), "document.readyState == 'complete'")
        assert page.ask("typeof window.hit") == "undefined"
        assert page.ask("getComputedStyle(document.querySelector('#red')).color") != "rgb(255, 0, 0)"
        assert len(page.errors) == 4  # the script, the picture, its handler and the style
