"""An MCP client of a Python library that logs a person in. Usage: login_client.py mcp|fastmcp URL

It opens the login in $BROWSER. Then it calls the tool that each line of its input names, and prints a line of JSON for
each: {"text": …} with the result, or {"error": …}. The first line of its output is about the connection itself.
"""

import asyncio
import json
import sys
import webbrowser
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit


def start_callback_server():
    """Returns a loopback server for one redirect, and its query once it has arrived."""
    query = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            query.update({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    return HTTPServer(("127.0.0.1", 0), Handler), query


class MemoryStorage:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


@asynccontextmanager
async def connect_mcp(url):
    import httpx2
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import OAuthClientMetadata

    server, query = start_callback_server()

    async def open_browser(authorization_url):
        webbrowser.open(authorization_url)

    async def wait_for_redirect():
        query.clear()
        await asyncio.to_thread(server.handle_request)
        if "code" not in query:
            raise RuntimeError(f"{query.get('error')}: {query.get('error_description')}")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    metadata = OAuthClientMetadata(
        client_name="Python SDK", redirect_uris=[f"http://127.0.0.1:{server.server_port}/callback"]
    )
    auth = OAuthClientProvider(url, metadata, MemoryStorage(), open_browser, wait_for_redirect)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http_client:
        async with Client(streamable_http_client(url, http_client=http_client)) as client:
            yield client


@asynccontextmanager
async def connect_fastmcp(url):
    from fastmcp import Client
    from fastmcp.client.auth import OAuth

    async with Client(url, auth=OAuth(client_name="FastMCP", callback_timeout=60)) as client:
        yield client


def describe(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return {"error": f"{type(error).__name__}: {error}"}


def reply(content):
    print(json.dumps(content), flush=True)


async def main(library, url):
    connect = {"mcp": connect_mcp, "fastmcp": connect_fastmcp}[library]
    try:
        async with connect(url) as client:
            tools = await client.list_tools()
            reply({"text": " ".join(tool.name for tool in getattr(tools, "tools", tools))})
            while line := await asyncio.to_thread(sys.stdin.readline):
                try:
                    result = await client.call_tool(line.strip(), {})
                    reply({"text": result.content[0].text})
                except Exception as error:
                    reply(describe(error))
    except Exception as error:
        reply(describe(error))


asyncio.run(main(*sys.argv[1:]))
