"""What a model does with a terminal: starts a program, looks at its screen, types, and ends it: session.py DIR"""
import asyncio
import sys

import cordon


async def main(directory: str) -> None:
    async with cordon.spawn() as client:
        async with client.sessions.start("python3 -q", directory, until=">>> ") as session:
            answer = await session.write("6 * 7\n", until="42")
            print(answer.text)
            print("the screen shows:", (await session.screen()).lines[:2])
            await session.write("exit()\n")
            answer = await session.wait()
    print("ended with", answer.exit_code)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
