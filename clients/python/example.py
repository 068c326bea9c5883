"""Runs a command in a sandbox and shows what it writes: example.py URL DIR COMMAND..."""
import asyncio
import sys

from cordon_client import Exited, Output, Sandbox, connect


async def main(url, directory, *argv):
    async with await connect(url) as client:
        process = await client.start(argv, directory, sandbox=Sandbox(directory))
        async for event in process.events():
            if isinstance(event, Output):
                (sys.stderr if event.stream == "stderr" else sys.stdout).buffer.write(event.data)
            elif isinstance(event, Exited):
                for denial in event.denials:
                    print("refused:", denial, file=sys.stderr)
        return (await process.wait()).exit_code


sys.exit(asyncio.run(main(*sys.argv[1:])))
