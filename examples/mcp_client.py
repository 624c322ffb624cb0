"""An AI agent's side of a gateway: the tools at /mcp, called with the client of the package `mcp`.

    python examples/mcp_client.py              # starts a gateway of its own for the demo's clinic
    python examples/mcp_client.py URL TOKEN    # asks a gateway that runs, such as that of `discreet demo gateway`

A model would choose the tools and their arguments. Here a script does, and a function stands for the person.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from discreet.demo.data import make_clinic

DISCREET = [sys.executable, "-c", "from discreet.cli import main; main()"]  # the command `discreet`
QUESTION = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"


@contextmanager
def gateway():
    """The address of a gateway for the demo's clinic, and a token for an agent that may spend ε = 1 in all."""
    policy = make_clinic(Path(tempfile.mkdtemp()))
    with policy.open("a") as file:
        file.write('[gateway]\nhttp = "127.0.0.1:0"\nanswer_after = "5s"\n')
        file.write("[gateway.mcp]\nsession = 0.5\nconfirm_above = 0.1\n")
    serving = subprocess.Popen([*DISCREET, "serve", policy, "--not-isolated"], stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    try:
        serving.stdout.readline()  # ready
        url = serving.stdout.readline().split()[-1]
        for words in (("open", "agent", "--role", "service", "--epsilon", "1"), ("token", "agent", "--epsilon", "1")):
            done = subprocess.run([*DISCREET, "account", policy, *words], capture_output=True, text=True, check=True)
        yield url, done.stdout.strip()
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait()
        serving.stdout.close()


async def ask_a_person(context, shown):
    """What a client does with a question that a person must confirm. Yours shows it, and waits for a click."""
    print("--- a person reads:", shown.message, "--- and confirms", sep="\n")
    return ElicitResult(action="accept", content={"confirm": True})


async def main(url, token):
    """Look, plan, ask, ask again, and ask for more than an agent may decide alone."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
        place = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(place, elicitation_callback=ask_a_person) as client:
            print("tools:", *(tool.name for tool in (await client.list_tools()).tools))

            async def call(tool, **arguments):
                return (await client.call_tool(tool, arguments)).structured_content

            tables = await call("tables")
            print("tables:", *(table["name"] for table in tables["tables"]))
            plan = await call("plan", sql=QUESTION, epsilon=0.05)
            print("it would cost", plan["guarantee"], "with an error of", plan["columns"][1]["error"])
            why = "Where do our patients live?"
            answer = await call("ask", sql=QUESTION, epsilon=0.05, why=why)
            print(answer["rows"])
            again = await call("ask", sql=QUESTION, epsilon=0.05, why=why)
            print("again, for free:", again["receipt"] == answer["receipt"])
            more = await call("ask", sql=QUESTION, epsilon=0.3, why="The first answer was not exact enough.")
            print(more["rows"])
            rows = await call("ask", sql="SELECT * FROM people", epsilon=0.05, why="Show me everybody.")
            loop = await call("ask", sql=f"{QUESTION} HAVING n > 1", epsilon=0.4, why="A loop goes on.")
            print("refused:", rows["code"], loop["code"])
            print("left in this session:", (await call("budget"))["mcp"]["left"])


if len(sys.argv) == 3:
    asyncio.run(main(*sys.argv[1:]))
else:
    with gateway() as (own_url, own_token):
        asyncio.run(main(own_url, own_token))
