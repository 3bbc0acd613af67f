"""The page from this machine and as one file."""

import contextlib
import http.client
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from attnflow import lab
from attnflow.cli.commands import app
from attnflow.errors import InvalidInput
from tests.lab.serving import served
from tests.lab.v8 import page_file, script

LARGEST = 150_000


@pytest.fixture
def port():
    with served(lab.Server()) as server:
        yield server.server_port


def ask(port, path, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def test_files_of_the_page_are_served_with_a_strict_policy(port):
    for path, kind in (("/", "text/html"), ("/main.js", "text/javascript"), ("/style.css?x", "text/css")):
        status, headers, body = ask(port, path)
        assert status == 200
        assert headers["Content-Type"].startswith(kind)
        assert body
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(("expose", "words"), [(None, "in use"), ("192.0.2.1", "`expose`")])
def test_a_place_that_cannot_be_had_is_said(port, expose, words):
    with pytest.raises(InvalidInput, match=words):
        lab.Server(port, expose=expose)


def test_nothing_else_is_served(port):
    for path in ("/../server.py", "/..%2fserver.py", "/page/main.js", "//etc/passwd", "/main"):
        assert ask(port, path)[0] == 404
    for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{port}", "127.0.0.1"):
        assert ask(port, "/", host=host)[0] == 403
    assert ask(port, "/", host=f"localhost:{port}")[0] == 200
    assert ask(port, "/", method="POST")[0] == 501


def test_the_page_is_opened_in_the_browser_unless_that_is_declined(faults):
    addresses = []
    faults.replace("open a page in the browser", addresses.append)
    faults.fail("serve the lab", KeyboardInterrupt)
    answer, _ = (CliRunner().invoke(app, ["lab", option]) for option in ("--open", "--no-open"))
    assert answer.exit_code == 0
    assert addresses == answer.stdout.splitlines()[:1]


def test_one_file_holds_everything():
    html = lab.single_file()
    assert len(html.encode()) <= LARGEST
    assert not re.search(r'(?:src|href)="(?!data:)', html)
    assert not re.search(r"^(?:import|export) ", html, flags=re.M)
    assert "eval(" not in html
    assert html.count("</script>") == 3  # no module ends its script early


def test_modules_ask_for_names_that_exist():
    """`script` leaves no import or export; every imported name is exported where it comes from."""
    for entry in ("main", "worker"):
        text = script(entry)
        for names, module in re.findall(r"^const \{([^}]*)\} = modules\.(\w+);", text, flags=re.M):
            exported = re.findall(
                r"^export (?:async )?(?:function\*?|const|class) (\w+)", page_file(f"{module}.js"), flags=re.M
            )
            assert {name.strip() for name in names.split(",")} <= set(exported)


def test_what_stands_in_for_the_server_has_the_same_names():
    """One file has `alone` where the served page has `remote`."""
    exported = r"^export (?:async )?(?:function\*?|const|class) (\w+)"
    names = [sorted(re.findall(exported, page_file(f"{name}.js"), flags=re.M)) for name in ("remote", "alone")]
    assert names[0] == names[1]
    assert "WebSocket(" not in lab.single_file()


def test_the_command_exports_and_serves(tmp_path):
    command = [sys.executable, "-m", "attnflow", "lab"]
    file = tmp_path / "lab.html"
    subprocess.run([*command, "--export", str(file)], check=True, capture_output=True)
    assert file.read_text(encoding="utf-8") == lab.single_file()
    with subprocess.Popen(
        [*command, "--no-open"], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    ) as process:
        address = process.stdout.readline().strip()
        status, _, _ = ask(int(re.match(r"http://127\.0\.0\.1:(\d+)/\?token=", address)[1]), "/")
        process.terminate()
    assert status == 200
