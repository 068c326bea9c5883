"""Runs a command in a sandbox, shows what it writes as it comes, and what was refused: run.py DIR COMMAND..."""
import asyncio
import sys

import cordon


async def main(directory: str, *argv: str) -> int:
    async with cordon.spawn() as client:
        async with client.start(argv, directory) as process:
            async for event in process:
                if isinstance(event, cordon.Output):
                    (sys.stderr if event.stream == "stderr" else sys.stdout).buffer.write(event.data)
            exited = await process.wait()
    for denial in exited.denials:
        what = denial["path"] or denial["host"]  # a command may give names that control a terminal
        print(f"refused: {denial['operation']} {what!r} - {denial['remedy']}", file=sys.stderr)
    return exited.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
