"""The viewer and Zarr over HTTP behind nginx: common configurations work, and wrong ones cause a helpful message."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from conftest import SAMPLE, running
from test_viewer import run_browser_tests

NGINX = next((path for path in ("/usr/sbin/nginx", "/usr/bin/nginx") if os.path.exists(path)), None)
UPGRADE = (
    "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def certificate(folder: pathlib.Path, name: str) -> str:
    """A certificate for a name, as nginx wants it named."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return f"ssl_certificate {cert}; ssl_certificate_key {key};"


@contextlib.contextmanager
def nginx(folder: pathlib.Path, servers: str) -> Iterator[None]:
    """Runs nginx with these servers until the end of the block."""
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(
        f"""
        daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
        events {{ worker_connections 256; }}
        http {{
            access_log off;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
            {servers}
        }}"""
    )
    process = subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf"), "-p", str(folder)], stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(0.5)
        assert process.poll() is None, process.stderr and process.stderr.read()
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def status(url: str, token: str | None = None, **headers: str) -> tuple[int, str]:
    import ssl

    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=given), timeout=20, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.skipif(NGINX is None, reason="nginx is not there")
def test_configurations_of_nginx(home, tmp_path):
    """Five configurations and their usual mistakes: default headers, `Host $host`, https, a path, a public name."""
    ports = {name: free_port() for name in ("default", "bare", "host", "https", "path", "kept", "public", "unknown")}
    public = f"https://viz.example.org:{ports['public']}/"
    kept = f"http://127.0.0.1:{ports['kept']}/deep/run42/"
    proxied = f"http://127.0.0.1:{ports['default']}/"
    view = ("view", "synthetic:waves?shape=24,24,24&dtype=u8", "--listen", "127.0.0.1:0", "--json")
    told = (*view, "--public-url", public, "--public-url", kept, "--public-url", proxied)
    with running(home, *view) as plain, running(home, *told) as known:
        assert known.lines[0]["url"].startswith(f"{public}#token="), "the public address is printed"
        token = {plain: plain.lines[0]["token"], known: known.lines[0]["token"]}
        inside = f"http://127.0.0.1:{plain.lines[0]['url'].split('/')[2].split(':')[1]}"
        # The local address, from the runtime file of the running server.
        notes = [json.loads(path.read_text()) for path in (home / "run" / "corridor").glob("*.json")]
        inside_known = next(f"http://{note['address']}" for note in notes if note["token"] == token[known])
        tls = certificate(tmp_path, "viz.example.org")
        local = certificate(tmp_path, "localhost")
        servers = f"""
            server {{ listen 127.0.0.1:{ports["default"]}; location / {{ proxy_pass {inside_known}; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["unknown"]}; location / {{ proxy_pass {inside}; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["bare"]}; location / {{ proxy_pass {inside}; proxy_set_header Host $http_host; }} }}
            server {{ listen 127.0.0.1:{ports["host"]}; location / {{
                proxy_pass {inside}; proxy_set_header Host $host; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["https"]} ssl; {local} location / {{
                proxy_pass {inside}; proxy_set_header Host $http_host; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["path"]}; location /run42/ {{
                proxy_pass {inside}/; proxy_set_header Host $http_host; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["kept"]}; location /deep/run42 {{ proxy_pass {inside_known}; {UPGRADE} }} }}
            server {{ listen 127.0.0.1:{ports["public"]} ssl; {tls} location / {{
                proxy_pass {inside_known}; proxy_set_header Host $http_host; {UPGRADE} }} }}"""
        visits = [
            ("default", f"{proxied}#token={token[known]}", None, 200),
            ("default-not-told", f"http://127.0.0.1:{ports['unknown']}/#token={token[plain]}", "--public-url", 200),
            ("no-websocket", f"http://127.0.0.1:{ports['bare']}/#token={token[plain]}", "no WebSocket comes through", 200),
            ("host", f"http://localhost:{ports['host']}/#token={token[plain]}", None, 200),
            ("https", f"https://localhost:{ports['https']}/#token={token[plain]}", None, 200),
            ("path", f"http://127.0.0.1:{ports['path']}/run42/#token={token[plain]}", None, 200),
            ("path-kept", f"{kept}#token={token[known]}", None, 200),
            ("path-kept-no-slash", f"{kept[:-1]}#token={token[known]}", None, 200),
            ("public", f"{public}#token={token[known]}", None, 200),
        ]
        listed = [dict(zip(("name", "url", "says", "status"), one, strict=True)) for one in visits]
        with nginx(tmp_path / "nginx", servers):
            run_browser_tests("unused", "viewer-proxies", "proxies", CORRIDOR_E2E_PROXIES=json.dumps(listed))
            for address, whose in [
                (f"http://127.0.0.1:{ports['default']}", known),
                (f"http://localhost:{ports['host']}", plain),
                (f"https://localhost:{ports['https']}", plain),
                (f"http://127.0.0.1:{ports['path']}/run42", plain),
                (kept[:-1], known),
            ]:
                code, text = status(f"{address}/zarr/waves/zarr.json", token[whose])
                assert (code, json.loads(text)["node_type"]) == (200, "group"), address
                assert status(f"{address}/zarr/waves/zarr.json")[0] == 401, address
            code, text = status(f"https://127.0.0.1:{ports['public']}/", Host="viz.example.org", Accept="text/html")
            assert (code, "not-started" in text) == (200, True)
        # An unknown host name: the page names the option to set, and never inserts the name as markup.
        code, text = status(f"{inside}/", Host="other.example.org", Accept="text/html,*/*")
        assert code == 403 and "<code>--public-url https://other.example.org/</code>" in text
        code, text = status(f"{inside}/nothing/here", Accept="text/html,*/*")
        assert code == 404 and "adds a path" in text
        # JupyterHub's proxies: with the path removed, and with it.
        port = inside.rsplit(":", 1)[1]
        assert status(f"{inside}/user/x/proxy/absolute/{port}/healthz") == (200, "ok\n")
        code, text = status(f"{inside}/user/x/proxy/absolute/{port}/", Accept="text/html")
        assert code == 200 and "./assets/" in text


def test_unencrypted_token_is_refused(home):
    """Beyond loopback plain HTTP redirects to https; a token sent over plain HTTP is refused."""
    with running(home, "serve", str(SAMPLE), "--listen", "0.0.0.0:0", "--json") as server:
        port = server.lines[0]["zarr"].split("/")[2].rsplit(":", 1)[1]
        hosts = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        others = [host for host in hosts if ":" not in host and not host.startswith("127.")]
        if not others:
            pytest.skip("no address but loopback")
        address = f"http://{others[0]}:{port}"
        token = server.lines[0]["token"]
        code, text = status(f"{address}/zarr/tooth.nhdr/zarr.json", token)
        assert code == 403 and "carried its token over the network unencrypted" in text and token not in text
        assert status(f"https://{others[0]}:{port}/zarr/tooth.nhdr/zarr.json", token)[0] == 200
        # A proxy's headers about the client's connection have the same effect.
        said = {"X_Forwarded_Proto": "http", "X_Forwarded_For": "192.0.2.7"}
        code, text = status(f"http://127.0.0.1:{port}/zarr/tooth.nhdr/zarr.json", token, **said)
        assert code == 403 and "unencrypted" in text
